//! The calls of a history.

use onewriter_history::{CallBegin, Event, History, Record};

/// The requests in `history`, each with its record.
pub fn requests(history: &History) -> impl Iterator<Item = (&Record, &CallBegin)> {
    history.records.iter().filter_map(|record| match &record.event {
        Event::CallBegin(begin) => Some((record, begin)),
        _ => None,
    })
}

/// The requests that are layout writes, whatever their answers.
pub fn layout_writes(history: &History) -> impl Iterator<Item = (&Record, &CallBegin)> {
    requests(history).filter(|(_, call)| call.layout_write)
}

/// Whether Garage answers this request without asking for a token (Garage admin reference §1, special endpoints).
pub fn needs_no_token(call: &CallBegin) -> bool {
    call.method == "OPTIONS" || matches!(call.path.as_str(), "/health" | "/metrics" | "/check")
}
