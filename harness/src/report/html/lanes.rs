//! Which event belongs into which lane of the timeline, and under which label.

use std::collections::BTreeMap;

use onewriter_history::{Audit, CallBegin, Event, History, State};
use serde::Serialize;
use serde_json::Value;

/// The group of lanes of what belongs to no site: the harness's own steps and declarations.
pub const RUN: &str = "run";
/// The group of calls by nobody known.
pub const UNATTRIBUTED: &str = "unattributed";

/// What kind of events a lane shows. The order is that of the lanes within a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// What the harness did on purpose.
    Step,
    /// What was declared to be so: roles, expectations.
    State,
    /// What the harness broke or mended.
    Fault,
    /// Calls that write the layout.
    LayoutWrite,
    /// All other calls.
    Call,
    /// What happened to a node's layout.
    Layout,
    /// Writes of an object's status, conditions included.
    Status,
    /// All other writes to the API server.
    Write,
    /// Pods: writes of pods, and nodes that start and stop.
    Pod,
    /// Reads of the API server that its audit log keeps.
    Read,
    /// Log lines.
    Log,
}

impl Kind {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Step,
        Self::State,
        Self::Fault,
        Self::LayoutWrite,
        Self::Call,
        Self::Layout,
        Self::Status,
        Self::Write,
        Self::Pod,
        Self::Read,
        Self::Log,
    ];

    /// How lanes of this kind are headed.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Step => "Steps",
            Self::State => "Declarations",
            Self::Fault => "Faults",
            Self::LayoutWrite => "Layout writes",
            Self::Call => "Calls",
            Self::Layout => "Layout versions",
            Self::Status => "Status writes",
            Self::Write => "API writes",
            Self::Pod => "Pods",
            Self::Read => "API reads",
            Self::Log => "Logs",
        }
    }
}

/// The lane of `event`: its group (a site, a caller of no site, or [`RUN`]) and kind. `sites` are the history's.
///
/// The end of a call is part of the call's mark; this is its lane only where the beginning is missing.
#[must_use]
pub fn of<'a>(event: &'a Event, sites: &'a [String]) -> (&'a str, Kind) {
    match event {
        Event::CallBegin(call) => {
            let kind = if call.layout_write { Kind::LayoutWrite } else { Kind::Call };
            (call.caller.as_deref().unwrap_or(UNATTRIBUTED), kind)
        }
        Event::CallEnd(_) => (UNATTRIBUTED, Kind::Call),
        Event::Step(_) => (RUN, Kind::Step),
        Event::Fault(fault) => (site_in(&fault.target, sites).unwrap_or(RUN), Kind::Fault),
        Event::Audit(audit) => (&audit.site, of_audit(audit)),
        Event::State(state) => of_state(state, sites),
        Event::Log(log) => (log.site.as_deref().unwrap_or(RUN), Kind::Log),
    }
}

fn of_audit(audit: &Audit) -> Kind {
    let resource = audit.resource.as_deref().unwrap_or_default();
    let reads = matches!(audit.verb.as_str(), "get" | "list" | "watch");
    match resource {
        _ if reads => Kind::Read,
        "pods" => Kind::Pod,
        _ if resource.starts_with("pods/") => Kind::Pod,
        _ if resource.ends_with("/status") => Kind::Status,
        _ => Kind::Write,
    }
}

fn of_state<'a>(state: &'a State, sites: &'a [String]) -> (&'a str, Kind) {
    let place = ["node", "site"].iter().find_map(|key| site_in(state.value.get(key)?.as_str()?, sites));
    let kind = match state.subject.as_str() {
        "layout" => Kind::Layout,
        "node" => Kind::Pod,
        _ => Kind::State,
    };
    (place.unwrap_or(RUN), kind)
}

/// The site that a name such as `east/namespace/pod` begins with.
fn site_in<'a>(name: &str, sites: &'a [String]) -> Option<&'a str> {
    let first = name.split('/').next()?;
    sites.iter().find(|site| *site == first).map(String::as_str)
}

/// The longest label; the event's details have the whole text.
const LONGEST: usize = 240;

/// An event in a line, fit for the little room beside a mark.
#[must_use]
pub fn label(event: &Event) -> String {
    let text = match event {
        Event::CallBegin(call) => call_label(call),
        Event::CallEnd(end) => format!("end of call {}, whose beginning is missing", end.call),
        Event::Step(step) => step.title.clone(),
        Event::Fault(fault) => format!("{} {}", fault.action, fault.target),
        Event::Audit(audit) => audit_label(audit),
        Event::State(state) => state_label(state),
        Event::Log(log) => format!("{}: {}", log.program, log.line),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn call_label(call: &CallBegin) -> String {
    let query = call.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{} {}{query} → {}", call.method, call.path, call.node)
}

fn audit_label(audit: &Audit) -> String {
    let what = audit.resource.as_deref().unwrap_or(&audit.uri);
    let object = [&audit.namespace, &audit.name].into_iter().flatten().map(String::as_str);
    let object = object.collect::<Vec<_>>().join("/");
    let user = audit.user.rsplit(':').next().unwrap_or_default();
    format!("{} {what} {object} by {user}", audit.verb)
}

fn state_label(state: &State) -> String {
    let part = |key: &str| state.value.get(key);
    let (Some(node), Some(event)) =
        (part("node").and_then(Value::as_str), part("event").and_then(Value::as_str))
    else {
        return format!("{}: {}", state.subject, state.value);
    };
    let versions = match (part("from"), part("to")) {
        (Some(from), Some(to)) => format!(" v{from} → v{to}"),
        _ => String::new(),
    };
    format!("{} {event}{versions} at {node}", state.subject)
}

/// Which cell owns which mesh. Namespaces of a cell are named like its mesh, so this serves audit entries, too.
#[must_use]
pub fn cells_by_mesh(history: &History) -> BTreeMap<&str, &str> {
    let named = history.records.iter().filter_map(|record| match &record.event {
        Event::Step(step) => Some((step.mesh.as_deref()?, step.cell.as_deref()?)),
        Event::State(state) => Some((state.mesh.as_deref()?, state.cell.as_deref()?)),
        Event::Fault(fault) => Some((fault.mesh.as_deref()?, fault.cell.as_deref()?)),
        _ => None,
    });
    named.collect()
}

/// The cell that an event belongs to, if it belongs to one.
#[must_use]
pub fn cell_of<'a>(event: &'a Event, by_mesh: &BTreeMap<&'a str, &'a str>) -> Option<&'a str> {
    let of_mesh = |mesh: Option<&'a str>| by_mesh.get(mesh?).copied();
    match event {
        Event::CallBegin(call) => of_mesh(Some(&call.mesh)),
        Event::Step(step) => step.cell.as_deref(),
        Event::Fault(fault) => fault.cell.as_deref().or_else(|| of_mesh(fault.mesh.as_deref())),
        Event::State(state) => state.cell.as_deref().or_else(|| of_mesh(state.mesh.as_deref())),
        Event::Audit(audit) => {
            // A Namespace is cluster-scoped; the cell's own is still the cell's.
            let namespace = audit.namespace.as_deref().or(match audit.resource.as_deref() {
                Some("namespaces") => audit.name.as_deref(),
                _ => None,
            });
            of_mesh(namespace)
        }
        Event::CallEnd(_) | Event::Log(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{from_value, json};

    fn event(value: Value) -> Event {
        from_value(value).unwrap()
    }

    fn audit(verb: &str, resource: &str) -> Value {
        json!({"kind": "audit", "site": "west", "auditId": "1", "stage": "ResponseComplete", "verb": verb,
            "user": "system:serviceaccount:ns:garage-operator", "uri": "/apis", "resource": resource,
            "namespace": "ns", "name": "garage"})
    }

    fn state(subject: &str, value: &Value) -> Value {
        json!({"kind": "state", "subject": subject, "value": value})
    }

    #[rstest]
    #[case::status_write(audit("patch", "example.org/things/status"), "west", Kind::Status)]
    #[case::a_pods_status_is_about_the_pod(audit("patch", "pods/status"), "west", Kind::Pod)]
    #[case::binding(audit("create", "pods/binding"), "west", Kind::Pod)]
    #[case::write(audit("create", "configmaps"), "west", Kind::Write)]
    #[case::read(audit("get", "secrets"), "west", Kind::Read)]
    #[case::layout(state("layout", &json!({"node": "east/ns/p", "event": "applied"})), "east", Kind::Layout)]
    #[case::node(state("node", &json!({"node": "west/ns/p", "event": "started"})), "west", Kind::Pod)]
    #[case::roles(state("roles", &json!({"east": "Writer"})), RUN, Kind::State)]
    #[case::a_node_of_no_known_site(state("node", &json!({"node": "moon/ns/p"})), RUN, Kind::Pod)]
    #[case::fault_of_a_node(json!({"kind": "fault", "cell": null, "action": "kill", "target": "east/ns/p"}), "east", Kind::Fault)]
    #[case::fault_between_sites(json!({"kind": "fault", "cell": null, "action": "partition", "target": "link"}), RUN, Kind::Fault)]
    fn the_lane_of(#[case] value: Value, #[case] group: &str, #[case] kind: Kind) {
        let sites = ["east".to_owned(), "west".to_owned()];
        assert_eq!(of(&event(value), &sites), (group, kind));
    }

    #[test]
    fn labels_say_what_happened_to_what() {
        assert_eq!(
            label(&event(audit("patch", "pods/status"))),
            "patch pods/status ns/garage by garage-operator"
        );
        let applied = state("layout", &json!({"node": "east/ns/p", "event": "applied", "from": 0, "to": 1}));
        assert_eq!(label(&event(applied)), "layout applied v0 → v1 at east/ns/p");
    }

    #[test]
    fn a_long_log_line_is_cut_between_characters() {
        let log = json!({"kind": "log", "site": null, "program": "p", "line": "ä".repeat(500)});
        assert_eq!(label(&event(log)).chars().count(), LONGEST + 1);
    }
}
