//! Layout versions only move forward.

use std::collections::BTreeMap;

use onewriter_history::{Event, State};

use super::calls::request;
use super::roles::Roles;
use super::slot::ByMesh;
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};

/// Within one incarnation of a node's layout its version never goes back. A wipe or purge begins a new incarnation.
#[derive(Debug, Clone, Copy)]
pub struct VersionsMoveForward;

impl Check for VersionsMoveForward {
    fn name(&self) -> &'static str {
        "versions-move-forward"
    }

    fn claim(&self) -> &'static str {
        "a node's layout version never goes back within one incarnation of its layout"
    }

    fn needs(&self) -> &'static str {
        "layout versions of calls and layout events"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Versions::default())
    }
}

#[derive(Default)]
struct Versions {
    roles: Roles,
    /// The last version of each node's layout, by mesh, node and incarnation.
    meshes: ByMesh<BTreeMap<String, BTreeMap<u64, u64>>>,
}

/// What a record shows of a node's layout.
struct Observed<'a> {
    mesh: &'a str,
    node: &'a str,
    incarnation: u64,
    version: u64,
}

impl Judge for Versions {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        match &seen.record.event {
            Event::CallBegin(begin) => {
                let (mesh, node) = (&begin.mesh, &begin.node_id);
                let (incarnation, version) = (begin.incarnation, begin.layout_version);
                self.observe(&Observed { mesh, node, incarnation, version }, seen, found);
            }
            Event::CallEnd(end) => {
                let Some(begin) = seen.begun.and_then(|begun| request(begun)) else { return };
                let (mesh, node) = (&begin.mesh, &begin.node_id);
                let (incarnation, version) = (end.incarnation, end.layout_version);
                self.observe(&Observed { mesh, node, incarnation, version }, seen, found);
            }
            Event::State(state) => {
                if let Some(observed) = of_layout_event(state) {
                    self.observe(&observed, seen, found);
                }
            }
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.roles.forget(mesh);
        self.meshes.remove(mesh);
    }
}

impl Versions {
    fn observe(&mut self, observed: &Observed<'_>, seen: &Seen<'_>, found: &mut Found) {
        let Observed { mesh, node, incarnation, version } = *observed;
        let nodes = self.meshes.slot(mesh);
        let known = match nodes.get_mut(node) {
            Some(incarnations) => incarnations.entry(incarnation).or_insert(version),
            None => nodes.entry(node.to_owned()).or_default().entry(incarnation).or_insert(version),
        };
        if version < *known {
            let message = format!("node {node} went back from layout version {known} to {version}");
            found.add(Finding::violation(self.roles.cell(mesh), message, seen.witness()));
        }
        *known = version;
    }
}

/// The other layout events (retired, conflict, …) speak of versions that are not the node's current one.
fn of_layout_event(state: &State) -> Option<Observed<'_>> {
    let text = |key: &str| state.value.get(key)?.as_str();
    let number = |key: &str| state.value.get(key)?.as_u64();
    let moves = matches!(text("event")?, "applied" | "merged" | "replaced" | "reset");
    if state.subject != "layout" || !moves {
        return None;
    }
    let (incarnation, version) = (number("incarnation")?, number("to")?);
    Some(Observed { mesh: state.mesh.as_deref()?, node: text("nodeId")?, incarnation, version })
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged};
    use super::*;

    #[test]
    fn a_version_that_goes_back_is_a_violation() {
        let read = |version| call("east").get("/v2/GetClusterLayout").version(version);
        let example = Example::new().call(read(1)).call(read(2)).call(read(1));
        let findings = judged(&VersionsMoveForward, &example);
        assert_eq!(findings.len(), 1, "one step back is one finding: {findings:?}");
        assert!(findings[0].message.contains("from layout version 2 to 1"), "{}", findings[0].message);
    }

    #[test]
    fn a_retired_version_is_not_the_nodes_own() {
        let retired = |event: &str| {
            Example::new()
                .call(call("east").get("/v2/GetClusterLayout").version(2))
                .layout(&serde_json::json!({"nodeId": "aa".repeat(32), "incarnation": 0, "event": event, "from": 1, "to": 1}))
        };
        assert_eq!(judged(&VersionsMoveForward, &retired("retired")), []);
        assert_eq!(judged(&VersionsMoveForward, &retired("merged")).len(), 1);
    }

    #[test]
    fn a_new_incarnation_may_begin_at_zero() {
        let example = Example::new()
            .call(call("east").get("/v2/GetClusterLayout").version(3))
            .call(call("east").get("/v2/GetClusterLayout").version(0).incarnation(1));
        assert_eq!(judged(&VersionsMoveForward, &example), []);
    }
}
