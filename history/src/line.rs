//! One line of a history, read fast.
//!
//! The derived reader of [`Record`] buffers every field of a line to find its `kind` first. Here the line is read twice
//! instead, both times straight into its fields: first the place in the order with the kind, then what that kind holds.

use jiff::Timestamp;
use serde::Deserialize;

use crate::{Event, Record, Source};

/// What every line begins with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    seq: u64,
    at: Timestamp,
    mono_ns: u64,
    source: Source,
    source_seq: u64,
    kind: Kind,
}

#[derive(Deserialize, Clone, Copy)]
enum Kind {
    #[serde(rename = "call.begin")]
    CallBegin,
    #[serde(rename = "call.end")]
    CallEnd,
    #[serde(rename = "step")]
    Step,
    #[serde(rename = "fault")]
    Fault,
    #[serde(rename = "audit")]
    Audit,
    #[serde(rename = "state")]
    State,
    #[serde(rename = "log")]
    Log,
}

impl Record {
    /// Reads one line of a history, with or without its line end.
    ///
    /// # Errors
    /// When the line is no event of this schema.
    pub fn from_line(line: &[u8]) -> serde_json::Result<Self> {
        let head: Head = serde_json::from_slice(line)?;
        let event = match head.kind {
            Kind::CallBegin => Event::CallBegin(serde_json::from_slice(line)?),
            Kind::CallEnd => Event::CallEnd(serde_json::from_slice(line)?),
            Kind::Step => Event::Step(serde_json::from_slice(line)?),
            Kind::Fault => Event::Fault(serde_json::from_slice(line)?),
            Kind::Audit => Event::Audit(serde_json::from_slice(line)?),
            Kind::State => Event::State(serde_json::from_slice(line)?),
            Kind::Log => Event::Log(serde_json::from_slice(line)?),
        };
        let Head { seq, at, mono_ns, source, source_seq, .. } = head;
        Ok(Self { seq, at, mono_ns, source, source_seq, event })
    }
}
