//! Appending to a history.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::encode::{self, Heads};
use crate::{Entry, Event, Header, Moment, Source};

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
    /// The history has its end already.
    #[error("the history has its end already")]
    Ended,
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
    lines: Lines,
}

/// Numbers the events of a source and puts them into lines.
#[derive(Debug)]
pub(crate) struct Lines {
    heads: Heads,
    next: u64,
}

impl Lines {
    /// The sequence number of the last line; 0 before the first.
    pub(crate) const fn last(&self) -> u64 {
        self.next - 1
    }

    /// Adds the line of an event that happened at `moment` to `text`, and returns its sequence number. `tail` is what
    /// [`encode::tail`] made of it.
    pub(crate) fn add(&mut self, moment: Moment, tail: &[u8], text: &mut Vec<u8>) -> u64 {
        let seq = self.next;
        self.heads.add(text, seq, moment);
        text.extend_from_slice(tail);
        self.next += 1;
        seq
    }
}

impl Journal {
    /// Begins a new file of mode 0600 with `header`. An existing file is an error: histories are never overwritten.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "whoever begins a history is done with its source's name"
    )]
    pub fn create(path: impl Into<PathBuf>, header: &Header, source: Source) -> Result<Self, WriteError> {
        let path = path.into();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| WriteError::Create { path: path.clone(), source })?;
        let mut journal = Self { path, file, lines: Lines { heads: Heads::new(&source), next: 1 } };
        let mut line = serde_json::to_vec(header)?;
        line.push(b'\n');
        journal.write(&line)?;
        Ok(journal)
    }

    /// Appends an event that happens now, and returns its sequence number.
    pub fn append(&mut self, event: Event) -> Result<u64, WriteError> {
        self.append_at(Moment::now(), event)
    }

    /// Appends an event that happened at `moment`, and returns its sequence number.
    pub fn append_at(&mut self, moment: Moment, event: Event) -> Result<u64, WriteError> {
        let mut tail = Vec::with_capacity(512);
        encode::tail(&mut tail, &Entry::Event(event))?;
        let mut line = Vec::with_capacity(tail.len() + 128);
        let seq = self.lines.add(moment, &tail, &mut line);
        self.write(&line)?;
        Ok(seq)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn into_parts(self) -> (PathBuf, File, Lines) {
        (self.path, self.file, self.lines)
    }

    fn write(&mut self, text: &[u8]) -> Result<(), WriteError> {
        self.file.write_all(text).map_err(|source| WriteError::Append { path: self.path.clone(), source })
    }
}
