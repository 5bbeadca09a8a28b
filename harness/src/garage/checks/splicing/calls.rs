//! Splices of calls that are missing, unknown, or out of order.

use onewriter_history::Event;

use super::Events;
use super::edit::{begin, change, find, state, without_calls};

pub(super) fn no_writes(events: &Events, _pick: usize) -> Option<Events> {
    let expects = |event: &Event| {
        state(event).is_some_and(|s| {
            s.subject == "expectation" && s.value["writes"].as_array().is_some_and(|w| !w.is_empty())
        })
    };
    events.iter().any(|(_, event)| expects(event)).then_some(())?;
    without_calls(events, |call| call.layout_write)
}

pub(super) fn no_reads(events: &Events, _pick: usize) -> Option<Events> {
    let expects = |event: &Event| {
        state(event).is_some_and(|s| {
            s.subject == "expectation" && s.value["reads"].as_array().is_some_and(|r| !r.is_empty())
        })
    };
    events.iter().any(|(_, event)| expects(event)).then_some(())?;
    without_calls(events, |call| call.method == "GET" && call.path.contains("Layout"))
}

pub(super) fn anonymous(events: &Events, pick: usize) -> Option<Events> {
    let index =
        find(events, pick, |_, event| begin(event).is_some_and(|call| call.path.starts_with("/v2/")))?;
    change(events, index, |call| call.caller = None)
}

pub(super) fn end_first(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |_, event| begin(event).is_some())?;
    let call = begin(&events[index].1)?.call;
    let end =
        events.iter().position(|(_, event)| matches!(event, Event::CallEnd(end) if end.call == call))?;
    let mut spliced = events.clone();
    let (_, end) = spliced.remove(end);
    let moment = spliced[index].0;
    spliced.insert(index, (moment, end));
    Some(spliced)
}
