//! Every event has its place.

use std::collections::{BTreeMap, BTreeSet};

use onewriter_history::{CallBegin, Event, State};

use super::calls::{Open, Write, layout_write, request};
use super::roles::Roles;
use super::slot::ByMesh;
use crate::checks::{Check, Finding, Found, Judge, OpenCalls, Recent, Seen};

/// Events explain each other: an end has its beginning, a call reaches a node that runs, a layout changes only with an
/// event that says so, and a version is applied only by a call. What is not explained tells that the history lost
/// something, or has something that did not happen.
///
/// The gap-free numbers of sources and file are judged when a history is read.
#[derive(Debug, Clone, Copy)]
pub struct EveryEventAccounted;

impl Check for EveryEventAccounted {
    fn name(&self) -> &'static str {
        "every-event-accounted"
    }

    fn claim(&self) -> &'static str {
        "every event follows from those before it"
    }

    fn needs(&self) -> &'static str {
        "calls, layout events, starts and ends of nodes"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Accounts::default())
    }
}

#[derive(Default)]
struct Accounts {
    roles: Roles,
    /// Applies that have begun and not ended.
    open: OpenCalls<Open>,
    /// Nodes by mesh and identity.
    meshes: ByMesh<BTreeMap<String, Node>>,
    /// Nodes at which an apply was given up by its caller, and may still come to its end.
    given_up: BTreeSet<String>,
}

/// What is known of a node.
#[derive(Default)]
struct Node {
    runs: bool,
    incarnation: u64,
    version: u64,
}

impl Judge for Accounts {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        let problem = match &seen.record.event {
            Event::CallBegin(begin) => self.begins(begin, seen),
            Event::CallEnd(end) => {
                self.open.end(end.call);
                match seen.begun {
                    None => Some((None, format!("call {} ended and never began", end.call))),
                    Some(begun) => self.ends(begun, end),
                }
            }
            Event::State(state) if state.subject == "node" => {
                self.process(state);
                None
            }
            Event::State(state) if state.subject == "layout" => self.layout(state),
            _ => None,
        };
        if let Some((mesh, message)) = problem {
            let cell = mesh.as_deref().and_then(|mesh| self.roles.cell(mesh));
            found.add(Finding::unknown(cell, message, seen.witness()));
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.roles.forget(mesh);
        self.meshes.remove(mesh);
    }
}

/// What is not explained: the mesh, if it is known, and a sentence.
type Problem = Option<(Option<String>, String)>;

impl Accounts {
    fn begins(&mut self, begin: &CallBegin, seen: &Seen<'_>) -> Problem {
        let problem = if seen.begun.is_some() {
            Some(format!("two calls have the number {}", begin.call))
        } else {
            match self.meshes.get_mut(&begin.mesh).and_then(|nodes| nodes.get_mut(&begin.node_id)) {
                Some(node) if node.runs => node.see(&begin.node, begin.incarnation, begin.layout_version),
                _ => Some(format!("a call reached node {}, which does not run", begin.node)),
            }
        };
        if Write::of(begin) == Some(Write::Apply) {
            self.open.begin(begin.call, seen.record.clone());
        }
        problem.map(|message| (Some(begin.mesh.clone()), message))
    }

    fn ends(&mut self, open: &Open, end: &onewriter_history::CallEnd) -> Problem {
        let begin = request(open)?;
        if end.status.is_none() && Write::of(begin) == Some(Write::Apply) {
            self.given_up.insert(begin.node_id.clone());
        }
        let node = self.meshes.get_mut(&begin.mesh)?.get_mut(&begin.node_id)?;
        let message = node.see(&begin.node, end.incarnation, end.layout_version)?;
        Some((Some(begin.mesh.clone()), message))
    }

    fn process(&mut self, state: &State) {
        let text = |key: &str| state.value.get(key).and_then(serde_json::Value::as_str);
        let (Some(mesh), Some(node), Some(event)) = (&state.mesh, text("nodeId"), text("event")) else {
            return;
        };
        let runs = matches!(event, "started" | "resumed" | "frozen");
        self.meshes.slot(mesh).entry(node.to_owned()).or_default().runs = runs;
    }

    fn layout(&mut self, state: &State) -> Problem {
        let text = |key: &str| state.value.get(key)?.as_str();
        let number = |key: &str| state.value.get(key)?.as_u64();
        let (node, name, event) = (text("nodeId")?, text("node").unwrap_or("?"), text("event")?);
        let (incarnation, from, to) = (number("incarnation")?, number("from")?, number("to")?);
        if !matches!(event, "applied" | "merged" | "replaced" | "reset") {
            return None;
        }
        let mesh = state.mesh.clone()?;
        let known = self.meshes.slot(&mesh).entry(node.to_owned()).or_default();
        let moved = (event != "reset").then(|| known.see(name, incarnation, from)).flatten();
        (known.incarnation, known.version) = (incarnation, to);
        let unmade = event == "applied" && !self.is_being_applied(node) && !self.given_up.remove(node);
        let message = match moved {
            Some(moved) => moved,
            None if unmade => format!("node {name} applied layout version {to}, and nobody had asked it to"),
            None => return None,
        };
        Some((state.mesh.clone(), message))
    }

    fn is_being_applied(&self, node: &str) -> bool {
        let applies = |open: &Open| {
            layout_write(open)
                .is_some_and(|call| call.node_id == node && Write::of(call) == Some(Write::Apply))
        };
        self.open.values().any(applies)
    }
}

impl Node {
    fn see(&mut self, name: &str, incarnation: u64, version: u64) -> Option<String> {
        let known = (self.incarnation, self.version);
        (self.incarnation, self.version) = (incarnation, version);
        (known != (incarnation, version)).then(|| {
            format!(
                "the layout of node {name} went from version {} to {version}, and no event tells of it",
                known.1
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, ExampleCall, call, judged, layout};
    use super::*;
    use crate::checks::Severity;

    fn started() -> Example {
        Example::new().node("east", "a", "started")
    }

    fn read(version: u64) -> ExampleCall {
        call("east").node("a").get("/v2/GetClusterLayout").version(version)
    }

    fn apply() -> ExampleCall {
        call("east").node("a").write("/v2/ApplyClusterLayout").versions(0, 1)
    }

    fn open(example: &Example) -> usize {
        let findings = judged(&EveryEventAccounted, example);
        assert!(findings.iter().all(|finding| finding.severity == Severity::Unknown));
        findings.len()
    }

    #[test]
    fn a_history_in_which_everything_follows_is_fine() {
        let example = started().call(read(0)).call_with(apply(), &layout("a", "applied", 0, 1)).call(read(1));
        assert_eq!(open(&example), 0);
    }

    #[test]
    fn a_layout_that_changes_without_an_event_leaves_the_verdict_open() {
        assert_eq!(open(&started().call(read(0)).call(read(1))), 1);
        assert_eq!(open(&started().call(apply()).call(read(1))), 1, "told once");
    }

    #[test]
    fn a_version_that_nobody_asked_for_leaves_the_verdict_open() {
        assert_eq!(open(&started().layout(&layout("a", "applied", 0, 1))), 1);
        assert_eq!(open(&started().layout(&layout("a", "merged", 0, 1))), 0, "it came from another node");
    }

    #[test]
    fn a_call_to_a_node_that_does_not_run_leaves_the_verdict_open() {
        assert_eq!(open(&Example::new().call(read(0))), 1);
        assert_eq!(open(&started().node("east", "a", "stopped").call(read(0))), 1);
        assert_eq!(open(&started().node("east", "a", "frozen").call(read(0))), 0);
    }

    #[test]
    fn an_end_without_a_beginning_leaves_the_verdict_open() {
        assert_eq!(open(&started().end_of(7)), 1);
    }
}
