//! The operator's writes, as the API server recorded them.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Every entry of the operator is a write: its reads are not recorded.
const OPERATOR: &str = "\"username\":\"system:serviceaccount:garage-operator-system:garage-operator\"";

/// An audit log, read on from where it was read last.
pub struct Log {
    path: PathBuf,
    read: Cell<u64>,
}

impl Log {
    /// From its present end on.
    pub fn new(path: &Path) -> Self {
        let log = Self { path: path.to_owned(), read: Cell::new(0) };
        log.new_writes();
        log
    }

    /// Writes of the operator since the last call.
    pub fn new_writes(&self) -> usize {
        let mut file = File::open(&self.path).unwrap();
        file.seek(SeekFrom::Start(self.read.get())).unwrap();
        let mut text = Vec::new();
        file.read_to_end(&mut text).unwrap();
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.read.set(self.read.get() + u64::try_from(whole).unwrap());
        let text = String::from_utf8_lossy(&text[..whole]).into_owned();
        text.lines().filter(|line| line.contains(OPERATOR)).count()
    }
}
