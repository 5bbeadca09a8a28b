//! Splices of layouts, and of nodes that leave them.

use onewriter_history::Event;
use serde_json::json;

use super::super::calls::Write;
use super::Events;
use super::edit::{
    FREE, begin, change, find, insert, is_layout, is_state, made, node_id, state, without, without_calls,
    write,
};
use super::roles::other;

pub(super) fn after_applied(events: &Events, pick: usize, name: &str) -> Option<Events> {
    let index = find(events, pick, |_, event| is_layout(event, "applied"))?;
    let mut clash = state(&events[index].1)?.clone();
    clash.value["event"] = name.into();
    clash.value["from"] = clash.value["to"].clone();
    Some(insert(events, index + 1, vec![Event::State(clash)]))
}

/// Two nodes tell that they hold a version, and of different contents.
pub(super) fn digests_differ(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |_, event| is_layout(event, "applied"))?;
    let holding = |content: &str| {
        let mut told = state(&events[index].1)?.clone();
        told.value["event"] = "merged".into();
        told.value["from"] = told.value["to"].clone();
        told.value["content"] = content.into();
        Some(Event::State(told))
    };
    Some(insert(events, index + 1, vec![holding("1f")?, holding("2e")?]))
}

pub(super) fn no_layout_events(events: &Events, _pick: usize) -> Option<Events> {
    without(events, |event| is_state(event, "layout"))
}

pub(super) fn version_goes_back(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |_, event| begin(event).is_some_and(|call| call.layout_version > 0))?;
    let known = |event: &Event, node: &str| {
        begin(event).is_some_and(|call| call.node_id == node)
            || state(event).is_some_and(|s| s.subject == "layout" && s.value["nodeId"] == node)
    };
    let node = &begin(&events[index].1)?.node_id;
    events[..index].iter().any(|(_, event)| known(event, node)).then_some(())?;
    change(events, index, |call| call.layout_version -= 1)
}

pub(super) fn apply_of_other(events: &Events, pick: usize) -> Option<Events> {
    let is_apply = |event: &Event| write(event).is_some_and(|call| Write::of(call) == Some(Write::Apply));
    let index = find(events, pick, |index, event| {
        is_apply(event) && is_layout(&events[(index + 1).min(events.len() - 1)].1, "applied")
    })?;
    change(events, index, |call| call.caller = Some(other(call.caller.as_deref())))
}

pub(super) fn toggles(events: &Events, pick: usize) -> Option<Events> {
    let is_update = |event: &Event| write(event).is_some_and(|call| Write::of(call) == Some(Write::Update));
    let index = find(events, pick, |_, event| is_update(event))?;
    let call = write(&events[index].1)?;
    let node = "ee".repeat(32);
    let stage = |number, capacity: u64| {
        let body = json!({"roles": [{"id": node, "zone": "east", "tags": [], "capacity": capacity}]});
        made(call, FREE + number, &call.path, Some(body))
    };
    let new = [stage(1, 4096), stage(2, 8192), stage(3, 4096)].concat();
    // What is asked for within the grace of two seconds excuses it: so all of that is over.
    let mut spliced = insert(events, index, new);
    for (moment, _) in &mut spliced[index + 6..] {
        moment.mono_ns += 60_000_000_000;
    }
    Some(spliced)
}

pub(super) fn removal_lost(events: &Events, pick: usize) -> Option<Events> {
    let removes = |event: &Event| {
        let roles = write(event).and_then(|call| call.body.as_ref()?.get("roles")?.as_array());
        roles.is_some_and(|roles| roles.iter().any(|role| role["remove"] == true))
    };
    let index = find(events, pick, |_, event| removes(event))?;
    let call = write(&events[index].1)?.call;
    without_calls(events, |begin| begin.call == call)
}

pub(super) fn pod_goes_first(events: &Events, pick: usize) -> Option<Events> {
    let is_removal = |event: &Event, node: &str| {
        let roles = write(event).and_then(|call| call.body.as_ref()?.get("roles")?.as_array());
        roles.is_some_and(|roles| roles.iter().any(|role| role["remove"] == true && role["id"] == node))
    };
    let removal = |index: usize, event: &Event| {
        let node = node_id(event, "stopped")?;
        events[..index].iter().position(|(_, event)| is_removal(event, node))
    };
    let index = find(events, pick, |index, event| removal(index, event).is_some())?;
    let to = removal(index, &events[index].1)?;
    let mut spliced = events.clone();
    let (_, stopped) = spliced.remove(index);
    let moment = spliced[to].0;
    spliced.insert(to, (moment, stopped));
    Some(spliced)
}

/// The versions before the removal are retired only after everybody has gone.
pub(super) fn retired_too_late(events: &Events, _pick: usize) -> Option<Events> {
    let retired = events.iter().rposition(|(_, event)| is_layout(event, "retired"))?;
    events[retired..].iter().any(|(_, event)| node_id(event, "stopped").is_some()).then_some(())?;
    let mut spliced = events.clone();
    let (_, event) = spliced.remove(retired);
    let moment = spliced[spliced.len() - 1].0;
    spliced.push((moment, event));
    Some(spliced)
}
