//! Which facts a history says that it records.

use std::collections::BTreeSet;

use onewriter_history::{Event, Record};
use serde::Deserialize as _;

use crate::garage::facts;

/// The subjects that a run said it records. Older histories say nothing, and record none of them.
#[derive(Debug, Default)]
pub struct Recorded {
    subjects: BTreeSet<String>,
}

impl Recorded {
    /// Takes the next event.
    pub fn take(&mut self, record: &Record) {
        let Event::State(state) = &record.event else { return };
        if state.subject == facts::RECORDS {
            self.subjects.extend(Vec::<String>::deserialize(&state.value).unwrap_or_default());
        }
    }

    /// Whether facts of `subject` are recorded, so that one that is missing did not happen.
    #[must_use]
    pub fn has(&self, subject: &str) -> bool {
        self.subjects.contains(subject)
    }
}
