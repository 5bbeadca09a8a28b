//! Splices of who writes, and of the roles that are staged.

use onewriter_history::Event;
use serde_json::{Value, json};

use super::super::calls::Write;
use super::Events;
use super::edit::{
    FREE, change, find, followers, insert, is_state, made, node_id, state, without, without_calls, write,
};
use crate::garage::facts;

pub(super) fn write_of_follower(events: &Events, pick: usize) -> Option<Events> {
    let index =
        find(events, pick, |index, event| write(event).is_some() && !followers(events, index).is_empty())?;
    let follower = followers(events, index).into_iter().next();
    change(events, index, |call| call.caller = follower)
}

pub(super) fn other(site: Option<&str>) -> String {
    if site == Some("east") { "west" } else { "east" }.to_owned()
}

pub(super) fn write_of_other(events: &Events, pick: usize) -> Option<Events> {
    // The first term only: it has several writes in every history that has any.
    let term = events.iter().position(|(_, event)| is_state(event, "roles"))?;
    let ends = events[term + 1..].iter().position(|(_, event)| is_state(event, "roles"));
    let ends = ends.map_or(events.len(), |ends| term + 1 + ends);
    let index = find(events, pick, |index, event| (term..ends).contains(&index) && write(event).is_some())?;
    change(events, index, |call| call.caller = Some(other(call.caller.as_deref())))
}

/// Whether this Update stages a role for a node that a follower runs.
pub(super) fn stages_for_follower(events: &Events, index: usize) -> Option<usize> {
    let call = write(&events[index].1).filter(|call| Write::of(call) == Some(Write::Update))?;
    let followers = followers(events, index);
    let roles = call.body.as_ref()?.get("roles")?.as_array()?;
    roles.iter().position(|role| {
        role.get("zone").is_some()
            && followers.iter().any(|site| home(events, &role["id"]).as_ref() == Some(site))
    })
}

pub(super) fn home(events: &Events, node: &Value) -> Option<String> {
    let started = events.iter().find(|(_, event)| node_id(event, "started") == node.as_str())?;
    let name = state(&started.1)?.value["node"].as_str()?;
    name.split('/').next().map(str::to_owned)
}

pub(super) fn staged_otherwise(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |index, _| stages_for_follower(events, index).is_some())?;
    let role = stages_for_follower(events, index)?;
    change(events, index, |call| {
        if let Some(body) = &mut call.body {
            body["roles"][role]["capacity"] = json!(4096);
        }
    })
}

pub(super) fn never_staged(events: &Events, pick: usize) -> Option<Events> {
    let seen = events.iter().rposition(|(_, event)| {
        is_state(event, facts::LAYOUT_SEEN)
            && state(event).is_some_and(|s| s.value["roles"].as_array().is_some_and(|r| !r.is_empty()))
    })?;
    let index = find(events, pick, |index, _| index < seen && stages_for_follower(events, index).is_some())?;
    let call = write(&events[index].1)?.call;
    without_calls(events, |begin| begin.call == call)
}

pub(super) fn never_declared(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |index, _| stages_for_follower(events, index).is_some())?;
    let role = stages_for_follower(events, index)?;
    let node = write(&events[index].1)?.body.as_ref()?["roles"][role]["id"].clone();
    without(events, |event| {
        state(event).is_some_and(|s| s.subject == facts::NODE && s.value["nodeId"] == node)
    })
}

/// A site writes right after its demotion, which its status confirms, or never does.
pub(super) fn write_after_demotion(events: &Events, confirmed: bool) -> Option<Events> {
    let demoted = |event: &Event| {
        let value = state(event).filter(|state| state.subject == "roles").map(|state| &state.value);
        value.is_some_and(|roles| roles["east"] == "Follower")
    };
    let declared = events.iter().position(|(_, event)| demoted(event))?;
    let told = declared + 1;
    let mut spliced = events.clone();
    let Event::State(status) = &mut spliced.get_mut(told)?.1 else { return None };
    (status.subject == facts::CLUSTER && status.value["site"] == "east").then_some(())?;
    if !confirmed {
        status.value["enforced"] = "Writer".into();
        status.value["observedGeneration"] = 0.into();
    }
    let like =
        events.iter().filter_map(|(_, event)| write(event)).find(|c| c.caller.as_deref() == Some("east"))?;
    Some(insert(&spliced, told + 1, made(like, FREE, "/v2/RevertClusterLayout", None)))
}
