//! Reading a history, and saying what is wrong with one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Header, Record, SCHEMA, Source};

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
        let text =
            fs::read_to_string(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        Self::parse(&text)
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
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let total = text.lines().count();
        let (_, first) = lines.next().ok_or(ReadError::Empty)?;
        let header = parse_header(first, total == 1 && !text.ends_with('\n'))?;
        let mut records = Vec::with_capacity(total.saturating_sub(1));
        let mut order = Order::default();
        for (number, line) in lines {
            let last_without_end = number == total && !text.ends_with('\n');
            let record: Record = match serde_json::from_str(line) {
                Ok(record) if !last_without_end => record,
                Ok(_) => return Err(ReadError::Torn { line: number }),
                Err(_) if number == total => return Err(ReadError::Torn { line: number }),
                Err(source) => return Err(ReadError::Malformed { line: number, source }),
            };
            order.check(number, &record)?;
            records.push(record);
        }
        Ok(Self { header, records })
    }
}

fn parse_header(line: &str, torn: bool) -> Result<Header, ReadError> {
    let value: serde_json::Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(_) if torn => return Err(ReadError::Torn { line: 1 }),
        Err(source) => return Err(ReadError::NoHeader(source)),
    };
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(found) if found != SCHEMA => Err(ReadError::OtherSchema { found: found.to_owned() }),
        _ => serde_json::from_value(value).map_err(ReadError::NoHeader),
    }
}

/// What comes next, in the file and per source.
#[derive(Default)]
struct Order {
    last: u64,
    sources: BTreeMap<Source, u64>,
}

impl Order {
    fn check(&mut self, line: usize, record: &Record) -> Result<(), ReadError> {
        let expected = self.last + 1;
        if record.seq != expected {
            return Err(ReadError::Gap { line, expected, found: record.seq });
        }
        self.last = record.seq;
        let last = self.sources.entry(record.source.clone()).or_default();
        let expected = *last + 1;
        if record.source_seq != expected {
            let origin = record.source.clone();
            return Err(ReadError::SourceGap { line, origin, expected, found: record.source_seq });
        }
        *last = record.source_seq;
        Ok(())
    }
}
