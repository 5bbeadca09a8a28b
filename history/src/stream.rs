//! Reading a history one event at a time, whatever its size.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::{Header, ReadError, Record, SCHEMA, Source};

/// Bytes that are read from a file at once.
const BUFFER: usize = 1 << 18;

/// A history that is read as it is asked for: an iterator over its events.
///
/// It holds one line at a time. The first error is the last item.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    path: PathBuf,
    header: Header,
    line: usize,
    buffer: Vec<u8>,
    order: Order,
    ended: bool,
}

impl Reader<BufReader<File>> {
    /// Opens the history at `path` and reads its header.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        Self::new(BufReader::with_capacity(BUFFER, file), path)
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads the header of the history in `input`; `path` names it in errors.
    pub fn new(input: R, path: &Path) -> Result<Self, ReadError> {
        let header = Header::new("");
        let path = path.to_owned();
        let mut reader =
            Self { input, path, header, line: 0, buffer: Vec::new(), order: Order::default(), ended: false };
        let complete = reader.next_line()?.ok_or(ReadError::Empty)?;
        reader.header = parse_header(&reader.buffer, !complete)?;
        Ok(reader)
    }

    /// The first line.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The first line, when the events are read.
    #[must_use]
    pub fn into_header(self) -> Header {
        self.header
    }

    /// Reads the next line into the buffer; tells whether it has an end, or none if there is no line.
    fn next_line(&mut self) -> Result<Option<bool>, ReadError> {
        self.buffer.clear();
        let read = self.input.read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|source| self.failed(source))?;
        self.line += 1;
        Ok((read > 0).then(|| self.buffer.last() == Some(&b'\n')))
    }

    fn read_record(&mut self) -> Result<Option<Record>, ReadError> {
        let Some(complete) = self.next_line()? else { return Ok(None) };
        let line = self.line;
        let record = match Record::from_line(&self.buffer) {
            Ok(record) if complete => record,
            Ok(_) => return Err(ReadError::Torn { line }),
            Err(source) => {
                let more = self.input.fill_buf().map(|rest| !rest.is_empty());
                let more = more.map_err(|source| self.failed(source))?;
                return Err(if more {
                    ReadError::Malformed { line, source }
                } else {
                    ReadError::Torn { line }
                });
            }
        };
        self.order.check(line, &record)?;
        Ok(Some(record))
    }

    fn failed(&self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.path.clone(), source }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read_record().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn parse_header(line: &[u8], torn: bool) -> Result<Header, ReadError> {
    let value: serde_json::Value = match serde_json::from_slice(line) {
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
#[derive(Debug, Default)]
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
        let last = match self.sources.get_mut(&record.source) {
            Some(last) => last,
            None => self.sources.entry(record.source.clone()).or_default(),
        };
        let expected = *last + 1;
        if record.source_seq != expected {
            let origin = record.source.clone();
            return Err(ReadError::SourceGap { line, origin, expected, found: record.source_seq });
        }
        *last = record.source_seq;
        Ok(())
    }
}
