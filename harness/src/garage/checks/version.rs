//! Layout versions only move forward.

use std::collections::BTreeMap;

use onewriter_history::{Event, History, Record};

use super::roles::Roles;
use crate::checks::{Check, Finding, Witness};

/// Within one incarnation of a node's layout its version never goes back. A wipe or purge begins a new incarnation.
#[derive(Debug)]
pub struct VersionsMoveForward;

/// A node's identity with the incarnation of its layout.
type Lifetime = (String, u64);

impl Check for VersionsMoveForward {
    fn name(&self) -> &'static str {
        "versions-move-forward"
    }

    fn claim(&self) -> &'static str {
        "a node's layout version never goes back within one incarnation of its layout"
    }

    fn judge(&self, history: &History) -> Vec<Finding> {
        let (roles, _) = Roles::of(history);
        let mut nodes_of_calls = BTreeMap::new();
        let mut highest: BTreeMap<Lifetime, u64> = BTreeMap::new();
        let mut findings = Vec::new();
        for record in &history.records {
            let Some((mesh, lifetime, version)) = observed(record, &mut nodes_of_calls) else { continue };
            let known = highest.entry(lifetime.clone()).or_insert(version);
            if version < *known {
                let message =
                    format!("node {} went back from layout version {known} to {version}", lifetime.0);
                let witness = Witness::around(history, record);
                findings.push(Finding::violation(roles.cell(&mesh, record.seq), message, Some(witness)));
            }
            *known = version;
        }
        findings
    }
}

fn moves_the_version(value: &serde_json::Value) -> bool {
    let event = value.get("event").and_then(serde_json::Value::as_str).unwrap_or_default();
    matches!(event, "applied" | "merged" | "replaced" | "reset")
}

/// The mesh, node and layout version that a record shows, if it shows one.
fn observed(
    record: &Record,
    nodes_of_calls: &mut BTreeMap<u64, (String, String)>,
) -> Option<(String, Lifetime, u64)> {
    match &record.event {
        Event::CallBegin(begin) => {
            nodes_of_calls.insert(begin.call, (begin.mesh.clone(), begin.node_id.clone()));
            Some((begin.mesh.clone(), (begin.node_id.clone(), begin.incarnation), begin.layout_version))
        }
        Event::CallEnd(end) => {
            let (mesh, node) = nodes_of_calls.remove(&end.call)?;
            Some((mesh, (node, end.incarnation), end.layout_version))
        }
        // The other layout events (retired, conflict, …) speak of versions that are not the node's current one.
        Event::State(state) if state.subject == "layout" && moves_the_version(&state.value) => {
            let node = state.value.get("nodeId")?.as_str()?.to_owned();
            let incarnation = state.value.get("incarnation")?.as_u64()?;
            let version = state.value.get("to")?.as_u64()?;
            Some((state.mesh.clone()?, (node, incarnation), version))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call};
    use super::*;

    #[test]
    fn a_version_that_goes_back_is_a_violation() {
        let read = |version| call("east").get("/v2/GetClusterLayout").version(version);
        let example = Example::new().call(read(1)).call(read(2)).call(read(1));
        let findings = VersionsMoveForward.judge(&example.history());
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
        assert_eq!(VersionsMoveForward.judge(&retired("retired").history()), []);
        assert_eq!(VersionsMoveForward.judge(&retired("merged").history()).len(), 1);
    }

    #[test]
    fn a_new_incarnation_may_begin_at_zero() {
        let example = Example::new()
            .call(call("east").get("/v2/GetClusterLayout").version(3))
            .call(call("east").get("/v2/GetClusterLayout").version(0).incarnation(1));
        assert_eq!(VersionsMoveForward.judge(&example.history()), []);
    }
}
