//! Finding events in a history, and changing them.

use onewriter_history::{CallBegin, CallEnd, Event, State};
use serde_json::Value;

use super::super::calls::of_site;
use super::Events;

/// The `pick`th of the events that fit.
pub(super) fn find(events: &Events, pick: usize, fits: impl Fn(usize, &Event) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..events.len()).filter(|index| fits(*index, &events[*index].1)).collect();
    (!fitting.is_empty()).then(|| fitting[pick % fitting.len()])
}

pub(super) fn drop_one(events: &Events, pick: usize, fits: impl Fn(&Event) -> bool) -> Option<Events> {
    let index = find(events, pick, |_, event| fits(event))?;
    let mut spliced = events.clone();
    spliced.remove(index);
    Some(spliced)
}

pub(super) fn without(events: &Events, is_lost: impl Fn(&Event) -> bool) -> Option<Events> {
    let spliced: Events = events.iter().filter(|(_, event)| !is_lost(event)).cloned().collect();
    (spliced.len() < events.len()).then_some(spliced)
}

/// Without the calls that fit, their ends included.
pub(super) fn without_calls(events: &Events, fits: impl Fn(&CallBegin) -> bool) -> Option<Events> {
    let lost: Vec<u64> =
        events.iter().filter_map(|(_, event)| begin(event)).filter(|c| fits(c)).map(|c| c.call).collect();
    without(events, |event| match event {
        Event::CallBegin(begin) => lost.contains(&begin.call),
        Event::CallEnd(end) => lost.contains(&end.call),
        _ => false,
    })
}

pub(super) fn insert(events: &Events, index: usize, new: Vec<Event>) -> Events {
    let moment = events[index.min(events.len() - 1)].0;
    let mut spliced = events.clone();
    spliced.splice(index..index, new.into_iter().map(|event| (moment, event)));
    spliced
}

pub(super) fn change(events: &Events, index: usize, change: impl FnOnce(&mut CallBegin)) -> Option<Events> {
    let mut spliced = events.clone();
    let Event::CallBegin(begin) = &mut spliced[index].1 else { return None };
    change(begin);
    Some(spliced)
}

pub(super) fn begin(event: &Event) -> Option<&CallBegin> {
    match event {
        Event::CallBegin(begin) => Some(begin),
        _ => None,
    }
}

pub(super) fn write(event: &Event) -> Option<&CallBegin> {
    begin(event).filter(|call| call.layout_write && of_site(call).is_some())
}

pub(super) fn state(event: &Event) -> Option<&State> {
    match event {
        Event::State(state) => Some(state),
        _ => None,
    }
}

pub(super) fn is_state(event: &Event, subject: &str) -> bool {
    state(event).is_some_and(|state| state.subject == subject)
}

pub(super) fn is_layout(event: &Event, name: &str) -> bool {
    state(event).is_some_and(|state| state.subject == "layout" && state.value["event"] == name)
}

pub(super) fn node_id<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    let state = state(event).filter(|state| state.subject == "node" && state.value["event"] == name)?;
    state.value["nodeId"].as_str()
}

pub(super) fn is_called(events: &Events, node: &str) -> bool {
    events.iter().filter_map(|(_, event)| begin(event)).any(|call| call.node_id == node)
}

/// A finished call like `like`.
pub(super) fn made(like: &CallBegin, call: u64, path: &str, body: Option<Value>) -> Vec<Event> {
    let begin = CallBegin {
        call,
        method: "POST".to_owned(),
        path: path.to_owned(),
        body,
        layout_write: path.contains("ClusterLayout"),
        ..like.clone()
    };
    let end = CallEnd {
        call,
        status: Some(200),
        answer_digest: None,
        error: None,
        incarnation: like.incarnation,
        layout_version: like.layout_version,
        layout_digest: like.layout_digest.clone(),
    };
    vec![Event::CallBegin(begin), Event::CallEnd(end)]
}

/// Numbers that no call of a history has.
pub(super) const FREE: u64 = 1 << 40;

/// The sites that may not write at `index`, by the last declaration.
pub(super) fn followers(events: &Events, index: usize) -> Vec<String> {
    let declared = events[..index].iter().rev().find(|(_, event)| is_state(event, "roles"));
    let roles = declared.and_then(|(_, event)| state(event)).and_then(|state| state.value.as_object());
    let follower = |(site, role): (&String, &Value)| (role == "Follower").then(|| site.clone());
    roles.into_iter().flatten().filter_map(follower).collect()
}
