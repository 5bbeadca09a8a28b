//! What is done to histories, and which check is to notice.

use onewriter_history::{CallBegin, CallEnd, Event, State};
use serde_json::{Value, json};

use super::super::calls::{Write, of_site};
use super::Events;
use crate::garage::facts;

/// One way to splice a history.
pub(super) struct Splice {
    pub(super) name: &'static str,
    /// The check that must find a violation, or that it cannot tell.
    pub(super) noticed_by: &'static str,
    act: fn(&Events, usize) -> Option<Events>,
}

impl Splice {
    /// The spliced history; `pick` chooses among the events that it fits. None if it fits none.
    pub(super) fn apply(&self, events: &Events, pick: usize) -> Option<Events> {
        (self.act)(events, pick)
    }
}

pub(super) fn all() -> Vec<Splice> {
    let splice = |name, noticed_by, act| Splice { name, noticed_by, act };
    vec![
        splice("a write is the follower's", "follower-never-writes", write_of_follower),
        splice("the roles are lost", "follower-never-writes", |e, _| {
            without(e, |event| is_state(event, "roles"))
        }),
        splice("a write in a term with others is the other site's", "one-writer-per-term", write_of_other),
        splice("a follower's role is staged otherwise", "followers-roles-declared", staged_otherwise),
        splice("a follower's role is staged by nobody", "followers-roles-declared", never_staged),
        splice("a follower's node is declared by nobody", "followers-roles-declared", never_declared),
        splice("two versions meet", "one-content-per-version", |e, p| after_applied(e, p, "conflict")),
        splice("layout events are lost", "one-content-per-version", no_layout_events),
        splice("a version goes back", "versions-move-forward", version_goes_back),
        splice("another site applies", "staged-changes-kept", apply_of_other),
        splice("an apply is dropped", "staged-changes-kept", |e, p| after_applied(e, p, "dropped")),
        splice("a role goes and comes back", "no-role-toggles", toggles),
        splice("the removal is lost", "role-goes-first", removal_lost),
        splice("the pod goes first", "role-goes-first", pod_goes_first),
        splice("a consumed annotation fires", "consumed-annotations-stay-silent", annotation_fires),
        splice("a write in a quiet time", "quiescence", write_in_quiet),
        splice("nobody calls in a quiet time", "quiescence", silent_quiet),
        splice("a follower tries something new", "follower-routes-known", unknown_post),
        splice("the writer writes nothing", "control-wrote", no_writes),
        splice("the follower reads nothing", "control-wrote", no_reads),
        splice("a caller is unknown", "every-call-attributed", anonymous),
        splice("an end is lost", "every-call-ended", |e, p| {
            drop_one(e, p, |x| matches!(x, Event::CallEnd(_)))
        }),
        splice("a beginning is lost", "every-event-accounted", |e, p| {
            drop_one(e, p, |event| matches!(event, Event::CallBegin(_)))
        }),
        splice("an apply is of no node", "every-event-accounted", |e, p| {
            drop_one(e, p, |event| is_layout(event, "applied"))
        }),
        splice("a start is lost", "every-event-accounted", |e, p| {
            drop_one(e, p, |event| node_id(event, "started").is_some_and(|node| is_called(e, node)))
        }),
        splice("an end comes before its beginning", "every-event-accounted", end_first),
    ]
}

/// The `pick`th of the events that fit.
fn find(events: &Events, pick: usize, fits: impl Fn(usize, &Event) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..events.len()).filter(|index| fits(*index, &events[*index].1)).collect();
    (!fitting.is_empty()).then(|| fitting[pick % fitting.len()])
}

fn drop_one(events: &Events, pick: usize, fits: impl Fn(&Event) -> bool) -> Option<Events> {
    let index = find(events, pick, |_, event| fits(event))?;
    let mut spliced = events.clone();
    spliced.remove(index);
    Some(spliced)
}

fn without(events: &Events, is_lost: impl Fn(&Event) -> bool) -> Option<Events> {
    let spliced: Events = events.iter().filter(|(_, event)| !is_lost(event)).cloned().collect();
    (spliced.len() < events.len()).then_some(spliced)
}

/// Without the calls that fit, their ends included.
fn without_calls(events: &Events, fits: impl Fn(&CallBegin) -> bool) -> Option<Events> {
    let lost: Vec<u64> =
        events.iter().filter_map(|(_, event)| begin(event)).filter(|c| fits(c)).map(|c| c.call).collect();
    without(events, |event| match event {
        Event::CallBegin(begin) => lost.contains(&begin.call),
        Event::CallEnd(end) => lost.contains(&end.call),
        _ => false,
    })
}

fn insert(events: &Events, index: usize, new: Vec<Event>) -> Events {
    let moment = events[index.min(events.len() - 1)].0;
    let mut spliced = events.clone();
    spliced.splice(index..index, new.into_iter().map(|event| (moment, event)));
    spliced
}

fn change(events: &Events, index: usize, change: impl FnOnce(&mut CallBegin)) -> Option<Events> {
    let mut spliced = events.clone();
    let Event::CallBegin(begin) = &mut spliced[index].1 else { return None };
    change(begin);
    Some(spliced)
}

fn begin(event: &Event) -> Option<&CallBegin> {
    match event {
        Event::CallBegin(begin) => Some(begin),
        _ => None,
    }
}

fn write(event: &Event) -> Option<&CallBegin> {
    begin(event).filter(|call| call.layout_write && of_site(call).is_some())
}

fn state(event: &Event) -> Option<&State> {
    match event {
        Event::State(state) => Some(state),
        _ => None,
    }
}

fn is_state(event: &Event, subject: &str) -> bool {
    state(event).is_some_and(|state| state.subject == subject)
}

fn is_layout(event: &Event, name: &str) -> bool {
    state(event).is_some_and(|state| state.subject == "layout" && state.value["event"] == name)
}

fn node_id<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    let state = state(event).filter(|state| state.subject == "node" && state.value["event"] == name)?;
    state.value["nodeId"].as_str()
}

fn is_called(events: &Events, node: &str) -> bool {
    events.iter().filter_map(|(_, event)| begin(event)).any(|call| call.node_id == node)
}

/// The sites that may not write at `index`, by the last declaration.
fn followers(events: &Events, index: usize) -> Vec<String> {
    let declared = events[..index].iter().rev().find(|(_, event)| is_state(event, "roles"));
    let roles = declared.and_then(|(_, event)| state(event)).and_then(|state| state.value.as_object());
    let follower = |(site, role): (&String, &Value)| (role == "Follower").then(|| site.clone());
    roles.into_iter().flatten().filter_map(follower).collect()
}

fn write_of_follower(events: &Events, pick: usize) -> Option<Events> {
    let index =
        find(events, pick, |index, event| write(event).is_some() && !followers(events, index).is_empty())?;
    let follower = followers(events, index).into_iter().next();
    change(events, index, |call| call.caller = follower)
}

fn other(site: Option<&str>) -> String {
    if site == Some("east") { "west" } else { "east" }.to_owned()
}

fn write_of_other(events: &Events, pick: usize) -> Option<Events> {
    // The first term only: it has several writes in every history that has any.
    let term = events.iter().position(|(_, event)| is_state(event, "roles"))?;
    let ends = events[term + 1..].iter().position(|(_, event)| is_state(event, "roles"));
    let ends = ends.map_or(events.len(), |ends| term + 1 + ends);
    let index = find(events, pick, |index, event| (term..ends).contains(&index) && write(event).is_some())?;
    change(events, index, |call| call.caller = Some(other(call.caller.as_deref())))
}

/// Whether this Update stages a role for a node that a follower runs.
fn stages_for_follower(events: &Events, index: usize) -> Option<usize> {
    let call = write(&events[index].1).filter(|call| Write::of(call) == Some(Write::Update))?;
    let followers = followers(events, index);
    let roles = call.body.as_ref()?.get("roles")?.as_array()?;
    roles.iter().position(|role| {
        role.get("zone").is_some()
            && followers.iter().any(|site| home(events, &role["id"]).as_ref() == Some(site))
    })
}

fn home(events: &Events, node: &Value) -> Option<String> {
    let started = events.iter().find(|(_, event)| node_id(event, "started") == node.as_str())?;
    let name = state(&started.1)?.value["node"].as_str()?;
    name.split('/').next().map(str::to_owned)
}

fn staged_otherwise(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |index, _| stages_for_follower(events, index).is_some())?;
    let role = stages_for_follower(events, index)?;
    change(events, index, |call| {
        if let Some(body) = &mut call.body {
            body["roles"][role]["capacity"] = json!(4096);
        }
    })
}

fn never_staged(events: &Events, pick: usize) -> Option<Events> {
    let seen = events.iter().rposition(|(_, event)| {
        is_state(event, facts::LAYOUT_SEEN)
            && state(event).is_some_and(|s| s.value["roles"].as_array().is_some_and(|r| !r.is_empty()))
    })?;
    let index = find(events, pick, |index, _| index < seen && stages_for_follower(events, index).is_some())?;
    let call = write(&events[index].1)?.call;
    without_calls(events, |begin| begin.call == call)
}

fn never_declared(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |index, _| stages_for_follower(events, index).is_some())?;
    let role = stages_for_follower(events, index)?;
    let node = write(&events[index].1)?.body.as_ref()?["roles"][role]["id"].clone();
    without(events, |event| {
        state(event).is_some_and(|s| s.subject == facts::NODE && s.value["nodeId"] == node)
    })
}

fn after_applied(events: &Events, pick: usize, name: &str) -> Option<Events> {
    let index = find(events, pick, |_, event| is_layout(event, "applied"))?;
    let mut clash = state(&events[index].1)?.clone();
    clash.value["event"] = name.into();
    clash.value["from"] = clash.value["to"].clone();
    Some(insert(events, index + 1, vec![Event::State(clash)]))
}

fn no_layout_events(events: &Events, _pick: usize) -> Option<Events> {
    without(events, |event| is_state(event, "layout"))
}

fn version_goes_back(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |_, event| begin(event).is_some_and(|call| call.layout_version > 0))?;
    let known = |event: &Event, node: &str| {
        begin(event).is_some_and(|call| call.node_id == node)
            || state(event).is_some_and(|s| s.subject == "layout" && s.value["nodeId"] == node)
    };
    let node = &begin(&events[index].1)?.node_id;
    events[..index].iter().any(|(_, event)| known(event, node)).then_some(())?;
    change(events, index, |call| call.layout_version -= 1)
}

fn apply_of_other(events: &Events, pick: usize) -> Option<Events> {
    let is_apply = |event: &Event| write(event).is_some_and(|call| Write::of(call) == Some(Write::Apply));
    let index = find(events, pick, |index, event| {
        is_apply(event) && is_layout(&events[(index + 1).min(events.len() - 1)].1, "applied")
    })?;
    change(events, index, |call| call.caller = Some(other(call.caller.as_deref())))
}

/// A finished call like `like`.
fn made(like: &CallBegin, call: u64, path: &str, body: Option<Value>) -> Vec<Event> {
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
const FREE: u64 = 1 << 40;

fn toggles(events: &Events, pick: usize) -> Option<Events> {
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

fn removal_lost(events: &Events, pick: usize) -> Option<Events> {
    let removes = |event: &Event| {
        let roles = write(event).and_then(|call| call.body.as_ref()?.get("roles")?.as_array());
        roles.is_some_and(|roles| roles.iter().any(|role| role["remove"] == true))
    };
    let index = find(events, pick, |_, event| removes(event))?;
    let call = write(&events[index].1)?.call;
    without_calls(events, |begin| begin.call == call)
}

fn pod_goes_first(events: &Events, pick: usize) -> Option<Events> {
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

fn annotation_fires(events: &Events, _pick: usize) -> Option<Events> {
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

fn quiet_time(events: &Events) -> Option<(usize, usize)> {
    let turns = |on: bool| {
        move |(_, event): &(_, Event)| {
            state(event).is_some_and(|s| s.subject == facts::QUIET && s.value["on"] == on)
        }
    };
    Some((events.iter().position(turns(true))?, events.iter().position(turns(false))?))
}

fn write_in_quiet(events: &Events, _pick: usize) -> Option<Events> {
    let (begins, ends) = quiet_time(events)?;
    let like = events[begins..ends]
        .iter()
        .find_map(|(_, event)| begin(event).filter(|call| of_site(call).is_some()))?;
    Some(insert(events, ends, made(like, FREE, "/v2/RevertClusterLayout", None)))
}

fn silent_quiet(events: &Events, _pick: usize) -> Option<Events> {
    let (begins, ends) = quiet_time(events)?;
    let called: Vec<u64> =
        events[begins..ends].iter().filter_map(|(_, event)| Some(begin(event)?.call)).collect();
    without_calls(events, |call| called.contains(&call.call))
}

fn unknown_post(events: &Events, pick: usize) -> Option<Events> {
    let index = find(events, pick, |index, event| {
        begin(event)
            .and_then(of_site)
            .is_some_and(|site| followers(events, index).iter().any(|other| other == site))
    })?;
    let new = made(begin(&events[index].1)?, FREE, "/v2/WriteTheRing", None);
    Some(insert(events, index, new))
}

fn no_writes(events: &Events, _pick: usize) -> Option<Events> {
    let expects = |event: &Event| {
        state(event).is_some_and(|s| {
            s.subject == "expectation" && s.value["writes"].as_array().is_some_and(|w| !w.is_empty())
        })
    };
    events.iter().any(|(_, event)| expects(event)).then_some(())?;
    without_calls(events, |call| call.layout_write)
}

fn no_reads(events: &Events, _pick: usize) -> Option<Events> {
    let expects = |event: &Event| {
        state(event).is_some_and(|s| {
            s.subject == "expectation" && s.value["reads"].as_array().is_some_and(|r| !r.is_empty())
        })
    };
    events.iter().any(|(_, event)| expects(event)).then_some(())?;
    without_calls(events, |call| call.method == "GET" && call.path.contains("Layout"))
}

fn anonymous(events: &Events, pick: usize) -> Option<Events> {
    let index =
        find(events, pick, |_, event| begin(event).is_some_and(|call| call.path.starts_with("/v2/")))?;
    change(events, index, |call| call.caller = None)
}

fn end_first(events: &Events, pick: usize) -> Option<Events> {
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
