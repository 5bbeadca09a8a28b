//! Appending to a history.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Event, Header, Moment, Record, Source};

/// A history could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file could not be created.
    #[error("cannot create the history {}", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line could not be appended.
    #[error("cannot append to the history {}", .path.display())]
    Append {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An event could not be put into JSON.
    #[error("cannot encode a line of the history")]
    Encode(#[from] serde_json::Error),
}

/// An open history that one source appends to.
///
/// Every line is handed to the kernel in one write before [`Journal::append`] returns, so killing the process tears
/// at most the line being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    source: Source,
    next: u64,
}

impl Journal {
    /// Begins a new file of mode 0600 with `header`. An existing file is an error: histories are never overwritten.
    pub fn create(path: impl Into<PathBuf>, header: &Header, source: Source) -> Result<Self, WriteError> {
        let path = path.into();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| WriteError::Create { path: path.clone(), source })?;
        let mut journal = Self { path, file, source, next: 1 };
        journal.write_line(header)?;
        Ok(journal)
    }

    /// Appends an event that happens now, and returns its sequence number.
    pub fn append(&mut self, event: Event) -> Result<u64, WriteError> {
        self.append_at(Moment::now(), event)
    }

    /// Appends an event that happened at `moment`, and returns its sequence number.
    pub fn append_at(&mut self, moment: Moment, event: Event) -> Result<u64, WriteError> {
        let seq = self.next;
        let record = Record {
            seq,
            at: moment.at,
            mono_ns: moment.mono_ns,
            source: self.source.clone(),
            source_seq: seq,
            event,
        };
        self.write_line(&record)?;
        self.next += 1;
        Ok(seq)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write_line(&mut self, line: &impl Serialize) -> Result<(), WriteError> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes).map_err(|source| WriteError::Append { path: self.path.clone(), source })
    }
}
