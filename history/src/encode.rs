//! Lines of a history, written fast.
//!
//! What comes out is to the byte what the derived writer of [`Record`](crate::Record) gives (a property test holds it to
//! that). Calls are written by hand, without a value or a string in between: two lines for each of some ten thousand
//! calls a second are what recording costs.

use serde_json::Value;

use crate::entry::{Beginning, Ending, Entry};
use crate::{Moment, Source};

/// Adds what stands behind the head of a line: `,"kind":…}` and the line end.
///
/// # Errors
/// When the event cannot be put into JSON; `text` then holds a part of it.
pub(crate) fn tail(text: &mut Vec<u8>, entry: &Entry<'_>) -> serde_json::Result<()> {
    match entry {
        Entry::Begin(begin) => beginning(text, begin)?,
        Entry::End(end) => ending(text, end),
        Entry::Event(crate::Event::CallBegin(begin)) => beginning(text, &begin.into())?,
        Entry::Event(crate::Event::CallEnd(end)) => ending(text, &end.into()),
        Entry::Event(event) => {
            let start = text.len();
            serde_json::to_writer(&mut *text, event)?;
            // It goes on where the head ends.
            text[start] = b',';
        }
    }
    text.push(b'\n');
    Ok(())
}

fn beginning(text: &mut Vec<u8>, begin: &Beginning<'_>) -> serde_json::Result<()> {
    text.extend_from_slice(b",\"kind\":\"call.begin\",\"call\":");
    number(text, begin.call);
    text.extend_from_slice(b",\"mesh\":");
    string(text, begin.mesh);
    text.extend_from_slice(b",\"caller\":");
    string_or_null(text, begin.caller);
    text.extend_from_slice(b",\"target\":");
    string(text, begin.target);
    text.extend_from_slice(b",\"node\":");
    string(text, begin.node);
    text.extend_from_slice(b",\"nodeId\":");
    string(text, begin.node_id);
    text.extend_from_slice(b",\"incarnation\":");
    number(text, begin.incarnation);
    text.extend_from_slice(b",\"token\":");
    string_or_null(text, begin.token);
    text.extend_from_slice(b",\"method\":");
    string(text, begin.method);
    text.extend_from_slice(b",\"path\":");
    string(text, begin.path);
    string_if_any(text, b",\"query\":", begin.query);
    string_if_any(text, b",\"host\":", begin.host);
    if let Some(body) = begin.body {
        value(text, body)?;
    }
    text.extend_from_slice(if begin.layout_write {
        b",\"layoutWrite\":true,\"layoutVersion\":"
    } else {
        b",\"layoutWrite\":false,\"layoutVersion\":"
    });
    number(text, begin.layout_version);
    text.extend_from_slice(b",\"layoutDigest\":");
    string(text, begin.layout_digest);
    text.push(b'}');
    Ok(())
}

fn value(text: &mut Vec<u8>, body: &Value) -> serde_json::Result<()> {
    text.extend_from_slice(b",\"body\":");
    serde_json::to_writer(text, body)
}

fn ending(text: &mut Vec<u8>, end: &Ending<'_>) {
    text.extend_from_slice(b",\"kind\":\"call.end\",\"call\":");
    number(text, end.call);
    text.extend_from_slice(b",\"status\":");
    match end.status {
        Some(status) => number(text, u64::from(status)),
        None => text.extend_from_slice(b"null"),
    }
    string_if_any(text, b",\"answerDigest\":", end.answer_digest);
    string_if_any(text, b",\"error\":", end.error);
    text.extend_from_slice(b",\"incarnation\":");
    number(text, end.incarnation);
    text.extend_from_slice(b",\"layoutVersion\":");
    number(text, end.layout_version);
    text.extend_from_slice(b",\"layoutDigest\":");
    string(text, end.layout_digest);
    text.push(b'}');
}

fn number(text: &mut Vec<u8>, value: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn string_or_null(text: &mut Vec<u8>, value: Option<&str>) {
    match value {
        Some(value) => string(text, value),
        None => text.extend_from_slice(b"null"),
    }
}

fn string_if_any(text: &mut Vec<u8>, name: &[u8], value: Option<&str>) {
    if let Some(value) = value {
        text.extend_from_slice(name);
        string(text, value);
    }
}

fn string(text: &mut Vec<u8>, value: &str) {
    text.push(b'"');
    // Looking at all of it without leaving early is faster than it looks: many bytes at a time.
    if value.bytes().fold(false, |any, byte| any | needs_escape(byte)) {
        escaped(text, value);
    } else {
        text.extend_from_slice(value.as_bytes());
    }
    text.push(b'"');
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn escaped(text: &mut Vec<u8>, value: &str) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in value.bytes() {
        match byte {
            b'"' => text.extend_from_slice(b"\\\""),
            b'\\' => text.extend_from_slice(b"\\\\"),
            0x08 => text.extend_from_slice(b"\\b"),
            b'\t' => text.extend_from_slice(b"\\t"),
            b'\n' => text.extend_from_slice(b"\\n"),
            0x0c => text.extend_from_slice(b"\\f"),
            b'\r' => text.extend_from_slice(b"\\r"),
            control @ 0..0x20 => {
                text.extend_from_slice(b"\\u00");
                text.push(DIGITS[usize::from(control >> 4)]);
                text.push(DIGITS[usize::from(control & 0xf)]);
            }
            other => text.push(other),
        }
    }
}

/// The heads of a source's lines: place in the order, clocks, source.
#[derive(Debug)]
pub(crate) struct Heads {
    /// `,"source":"…","sourceSeq":`, which never changes.
    source: Vec<u8>,
    /// The second in which the last line was, and how it is written: `2026-03-01T12:00:00`.
    second: (i64, Vec<u8>),
}

impl Heads {
    pub(crate) fn new(source: &Source) -> Self {
        let mut text = b",\"source\":".to_vec();
        string(&mut text, source.as_str());
        text.extend_from_slice(b",\"sourceSeq\":");
        Self { source: text, second: (i64::MIN, Vec::new()) }
    }

    /// Adds the head of a line, up to the comma before its `kind`.
    pub(crate) fn add(&mut self, text: &mut Vec<u8>, seq: u64, moment: Moment) {
        let mut buffer = itoa::Buffer::new();
        let seq = buffer.format(seq).as_bytes();
        text.extend_from_slice(b"{\"seq\":");
        text.extend_from_slice(seq);
        text.extend_from_slice(b",\"at\":\"");
        self.time(text, moment.at);
        text.extend_from_slice(b"\",\"monoNs\":");
        number(text, moment.mono_ns);
        text.extend_from_slice(&self.source);
        text.extend_from_slice(seq);
    }

    /// Adds a time as `jiff` prints it. Only the fraction differs between most neighbours.
    fn time(&mut self, text: &mut Vec<u8>, at: jiff::Timestamp) {
        let (second, fraction) = (at.as_second(), at.subsec_nanosecond());
        let Some(mut fraction) = u32::try_from(fraction).ok().filter(|_| second >= 0) else {
            // Before 1970 seconds and fractions are counted backwards.
            text.extend_from_slice(at.to_string().as_bytes());
            return;
        };
        if self.second.0 != second {
            let whole = at.to_string();
            // `YYYY-MM-DDThh:mm:ss`
            self.second = (second, whole.as_bytes()[..19].to_vec());
        }
        text.extend_from_slice(&self.second.1);
        if fraction > 0 {
            let mut digits = *b".000000000";
            for digit in digits[1..].iter_mut().rev() {
                *digit += u8::try_from(fraction % 10).unwrap_or(0);
                fraction /= 10;
            }
            let length = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
            text.extend_from_slice(&digits[..length]);
        }
        text.push(b'Z');
    }
}
