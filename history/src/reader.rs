//! Reading a history, and saying what is wrong with one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Header, Reader, Record, SCHEMA, Source};

/// A history could not be read as a whole.
///
/// [`ReadError::is_broken`] tells a history that lost something (a gap, a torn end) from a file that is none.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is empty.
    #[error("the history is empty: it has not even a header line")]
    Empty,
    /// The first line is no header.
    #[error("line 1 is not a history header")]
    NoHeader(#[source] serde_json::Error),
    /// The header names a schema that this program does not read.
    #[error("line 1: the history has schema `{found}`, this program reads `{SCHEMA}`")]
    OtherSchema {
        /// What the header says.
        found: String,
    },
    /// A line in the middle is no event.
    #[error("line {line} is not an event of schema `{SCHEMA}`")]
    Malformed {
        /// Line number, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// The last line is incomplete: the writer was killed, or the file was cut.
    #[error("the history is torn: its last line, {line}, is incomplete")]
    Torn {
        /// Line number, from 1.
        line: usize,
    },
    /// Events are missing or out of order.
    #[error("the history is broken at line {line}: expected event {expected}, found {found}")]
    Gap {
        /// Line number, from 1.
        line: usize,
        /// The number that should stand there.
        expected: u64,
        /// The number that stands there.
        found: u64,
    },
    /// Events of one source are missing or out of order.
    #[error(
        "the history is broken at line {line}: expected event {expected} of source `{origin}`, found {found}"
    )]
    SourceGap {
        /// Line number, from 1.
        line: usize,
        /// The source.
        origin: Source,
        /// The number that should stand there.
        expected: u64,
        /// The number that stands there.
        found: u64,
    },
}

impl ReadError {
    /// Whether this is a history that lost something, rather than a file that cannot be read as one.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Torn { .. } | Self::Gap { .. } | Self::SourceGap { .. })
    }
}

/// A history that was read whole: every line parsed, no gap in the file's order nor in any source's.
///
/// It holds every event at once; for a large file use [`Reader`].
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The first line.
    pub header: Header,
    /// The events, in order.
    pub records: Vec<Record>,
}

impl History {
    /// Reads the file at `path`.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Self::of(Reader::open(path)?)
    }

    /// Reads what a live writer has appended so far: an unfinished last line is left out instead of refused.
    pub fn read_live(path: &Path) -> Result<Self, ReadError> {
        let text =
            fs::read_to_string(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        Self::parse(&text[..whole])
    }

    /// Reads a history from its text.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        Self::of(Reader::new(text.as_bytes(), Path::new("the text"))?)
    }

    fn of<R: io::BufRead>(mut reader: Reader<R>) -> Result<Self, ReadError> {
        let records = reader.by_ref().collect::<Result<_, _>>()?;
        Ok(Self { header: reader.into_header(), records })
    }
}
