//! Splices of annotations, quiet times, metrics and new routes.

use onewriter_history::Event;
use serde_json::{Value, json};

use super::super::calls::of_site;
use super::Events;
use super::edit::{FREE, begin, find, followers, insert, made, state, without_calls};
use crate::garage::facts;

pub(super) fn annotation_fires(events: &Events, _pick: usize) -> Option<Events> {
    let asks = |event: &Event| {
        state(event)
            .is_some_and(|s| s.subject == facts::CLUSTER && s.value["operations"] == json!(["revert-layout"]))
    };
    let asked = events.iter().position(|(_, event)| asks(event))?;
    let site = state(&events[asked].1)?.value["site"].as_str()?;
    let like = events
        .iter()
        .filter_map(|(_, event)| begin(event))
        .rfind(|call| call.caller.as_deref() == Some(site))?;
    Some(insert(events, events.len(), made(like, FREE, "/v2/RevertClusterLayout", None)))
}

pub(super) fn quiet_time(events: &Events) -> Option<(usize, usize)> {
    let turns = |on: bool| {
        move |(_, event): &(_, Event)| {
            state(event).is_some_and(|s| s.subject == facts::QUIET && s.value["on"] == on)
        }
    };
    Some((events.iter().position(turns(true))?, events.iter().position(turns(false))?))
}

pub(super) fn write_in_quiet(events: &Events, _pick: usize) -> Option<Events> {
    let (begins, ends) = quiet_time(events)?;
    let like = events[begins..ends]
        .iter()
        .find_map(|(_, event)| begin(event).filter(|call| of_site(call).is_some()))?;
    Some(insert(events, ends, made(like, FREE, "/v2/RevertClusterLayout", None)))
}

pub(super) fn silent_quiet(events: &Events, _pick: usize) -> Option<Events> {
    let (begins, ends) = quiet_time(events)?;
    let called: Vec<u64> =
        events[begins..ends].iter().filter_map(|(_, event)| Some(begin(event)?.call)).collect();
    without_calls(events, |call| called.contains(&call.call))
}

pub(super) fn unknown_post(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |index, event| {
        begin(event)
            .and_then(of_site)
            .is_some_and(|site| followers(events, index).iter().any(|other| other == site))
    })?;
    let new = made(begin(&events[index].1)?, FREE, "/v2/WriteTheRing", None);
    Some(insert(events, index, new))
}

/// The operator tells the same again and again, and once more in a quiet time.
pub(super) fn told_in_quiet(events: &Events, _pick: usize) -> Option<Events> {
    let (begins, ends) = quiet_time(events)?;
    let mut told = state(&events[ends].1)?.clone();
    facts::EVENT.clone_into(&mut told.subject);
    told.value = json!({"site": "west", "regarding": "GarageNode/n", "reason": "Roleless",
        "by": "system:serviceaccount:garage-operator-system:garage-operator"});
    let in_quiet = insert(events, ends, vec![Event::State(told.clone())]);
    Some(insert(&in_quiet, begins, vec![Event::State(told); 3]))
}

/// A refusal is logged once more than it was.
pub(super) fn refused_once_more(events: &Events, pick: usize) -> Option<Events> {
    let refused =
        |event: &Event| matches!(event, Event::Log(log) if log.line.contains("layout write blocked"));
    let index = find(events, pick, |_, event| refused(event))?;
    Some(insert(events, index, vec![events[index].1.clone()]))
}

/// Changes what the last metrics say.
fn last_metric(events: &Events, change: impl FnOnce(&mut Value)) -> Option<Events> {
    let is_metric = |event: &Event| state(event).is_some_and(|state| state.subject == facts::METRIC);
    let index = events.iter().rposition(|(_, event)| is_metric(event))?;
    let mut spliced = events.clone();
    let Event::State(state) = &mut spliced[index].1 else { return None };
    change(&mut state.value);
    Some(spliced)
}

/// A counter counts what nobody refused.
pub(super) fn counted_once_more(events: &Events, _pick: usize) -> Option<Events> {
    last_metric(events, |metric| metric["blocked"]["garage"]["ApplyClusterLayout"] = json!(1))
}

/// The gauge names another role.
pub(super) fn other_gauge(events: &Events, _pick: usize) -> Option<Events> {
    last_metric(events, |metric| metric["roles"] = json!({"garage": ["Writer"]}))
}
