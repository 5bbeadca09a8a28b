//! One line of a history: an event with its place in the order.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Event, Moment};

/// Who saw an event. Each source numbers its own events without gaps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Source(String);

impl Source {
    /// The fake Garage hub, which orders every call.
    #[must_use]
    pub fn hub() -> Self {
        Self("hub".to_owned())
    }

    /// The harness itself: steps, states, faults.
    #[must_use]
    pub fn harness() -> Self {
        Self("harness".to_owned())
    }

    /// Whoever put the sources into one order.
    #[must_use]
    pub fn merge() -> Self {
        Self("merge".to_owned())
    }

    /// The audit log of one site's API server.
    #[must_use]
    pub fn audit(site: &str) -> Self {
        Self(format!("audit/{site}"))
    }

    /// The log of a program that runs at a site.
    #[must_use]
    pub fn log(site: &str, program: &str) -> Self {
        Self(format!("log/{site}/{program}"))
    }

    /// The name as it stands in the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One line of a history after the header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Place in this file, from 1, without gaps.
    pub seq: u64,
    /// Wall time, UTC.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Nanoseconds on the machine's monotonic clock.
    pub mono_ns: u64,
    /// Who saw it.
    pub source: Source,
    /// Place among the source's own events, from 1, without gaps.
    pub source_seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl Record {
    /// When it happened, on both clocks.
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment { at: self.at, mono_ns: self.mono_ns }
    }
}
