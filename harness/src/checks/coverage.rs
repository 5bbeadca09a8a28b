//! What a history shows was exercised.

use std::collections::BTreeMap;

use onewriter_history::{Event, Record};

/// Counts of a history: calls, layout writes, calls by caller, events.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    events: u64,
    layout_writes: u64,
    calls: u64,
    callers: BTreeMap<String, u64>,
}

impl Coverage {
    /// Counts one event.
    pub fn take(&mut self, record: &Record) {
        self.events += 1;
        let Event::CallBegin(call) = &record.event else { return };
        self.calls += 1;
        self.layout_writes += u64::from(call.layout_write);
        let caller = call.caller.as_deref().unwrap_or("unknown");
        if let Some(count) = self.callers.get_mut(caller) {
            *count += 1;
        } else {
            self.callers.insert(caller.to_owned(), 1);
        }
    }

    /// The counts by name: `events`, `calls`, `layoutWrites`, `callsBy.NAME`.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let callers = self.callers.iter().map(|(caller, count)| (format!("callsBy.{caller}"), *count));
        let totals = [("calls", self.calls), ("layoutWrites", self.layout_writes), ("events", self.events)];
        callers.chain(totals.map(|(name, count)| (name.to_owned(), count))).collect()
    }
}
