//! One content for one version.

use std::collections::{BTreeMap, BTreeSet};

use onewriter_history::{CallEnd, Event, State};

use super::calls::{Open, Write, request};
use super::roles::Roles;
use super::slot::ByMesh;
use crate::checks::{Check, Finding, Found, Judge, OpenCalls, Recent, Seen};

/// No two nodes ever hold different contents under one version number (design record, "What Garage guarantees").
///
/// The hub tells when two versions of one number meet. Where its layout events bear a digest of the version (`content`),
/// versions that never meet are compared as well.
#[derive(Debug, Clone, Copy)]
pub struct OneContentPerVersion;

impl Check for OneContentPerVersion {
    fn name(&self) -> &'static str {
        "one-content-per-version"
    }

    fn claim(&self) -> &'static str {
        "no two nodes ever hold different contents for one layout version"
    }

    fn needs(&self) -> &'static str {
        "layout events of every mesh in which a layout was applied"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Contents::default())
    }
}

#[derive(Default)]
struct Contents {
    roles: Roles,
    open: OpenCalls<Open>,
    meshes: ByMesh<OfMesh>,
}

#[derive(Default)]
struct OfMesh {
    has_events: bool,
    applied: bool,
    clashed: BTreeSet<u64>,
    /// Digest of each version, by incarnation and number.
    contents: BTreeMap<(u64, u64), String>,
}

impl Judge for Contents {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        match &seen.record.event {
            Event::CallBegin(call) if call.layout_write && Write::of(call) == Some(Write::Apply) => {
                self.open.begin(call.call, seen.record.clone());
            }
            Event::CallEnd(end) => self.ended(end),
            Event::State(state) if state.subject == "layout" => {
                if let Some(finding) = self.event(state, seen) {
                    found.add(finding);
                }
            }
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, found: &mut Found) {
        self.tell_unseen(mesh, found);
        self.meshes.remove(mesh);
        self.roles.forget(mesh);
    }

    fn end(&mut self, _recent: &Recent, found: &mut Found) {
        for mesh in self.meshes.keys() {
            self.tell_unseen(mesh, found);
        }
    }
}

impl Contents {
    fn tell_unseen(&self, mesh: &str, found: &mut Found) {
        if self.meshes.get(mesh).is_some_and(|of_mesh| of_mesh.applied && !of_mesh.has_events) {
            let message = "a layout was applied, and what the nodes then held was not recorded";
            found.add(Finding::unknown(self.roles.cell(mesh), message, None));
        }
    }

    fn ended(&mut self, end: &CallEnd) {
        let Some(open) = self.open.end(end.call) else { return };
        if let Some(call) = request(&open).filter(|_| end.status == Some(200)) {
            self.meshes.slot(&call.mesh).applied = true;
        }
    }

    fn event(&mut self, state: &State, seen: &Seen<'_>) -> Option<Finding> {
        let mesh = state.mesh.as_deref()?;
        let text = |key: &str| state.value.get(key)?.as_str();
        let number = |key: &str| state.value.get(key)?.as_u64();
        let (event, version) = (text("event")?, number("to")?);
        let of_mesh = self.meshes.slot(mesh);
        of_mesh.has_events = true;
        let differs =
            event == "conflict" || of_mesh.differs(number("incarnation")?, version, text("content"));
        if !differs || !of_mesh.clashed.insert(version) {
            return None;
        }
        let node = text("node").unwrap_or("?");
        let message = format!(
            "two contents of layout version {version} met at node {node}: each node keeps the one it had first"
        );
        Some(Finding::violation(self.roles.cell(mesh), message, seen.witness()))
    }
}

impl OfMesh {
    fn differs(&mut self, incarnation: u64, version: u64, content: Option<&str>) -> bool {
        let Some(content) = content else { return false };
        let known = self.contents.entry((incarnation, version)).or_insert_with(|| content.to_owned());
        known != content
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged, layout};
    use super::*;
    use crate::checks::Severity;

    #[test]
    fn versions_that_meet_and_differ_are_one_violation_however_many_nodes_tell() {
        let example = Example::new()
            .layout(&layout("a", "applied", 0, 1))
            .layout(&layout("b", "applied", 0, 1))
            .layout(&layout("a", "conflict", 1, 1))
            .layout(&layout("b", "conflict", 1, 1));
        let findings = judged(&OneContentPerVersion, &example);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Violation);
    }

    #[test]
    fn digests_that_differ_are_a_violation_though_nobody_met() {
        let with = |node: &str, content: &str| {
            let mut event = layout(node, "applied", 0, 1);
            event["content"] = content.into();
            event
        };
        let same = Example::new().layout(&with("a", "x")).layout(&with("b", "x"));
        assert_eq!(judged(&OneContentPerVersion, &same), []);
        let other = Example::new().layout(&with("a", "x")).layout(&with("b", "y"));
        assert_eq!(judged(&OneContentPerVersion, &other).len(), 1);
    }

    #[test]
    fn an_apply_of_which_no_node_told_leaves_the_verdict_open() {
        let example = Example::new().call(call("east").write("/v2/ApplyClusterLayout"));
        let findings = judged(&OneContentPerVersion, &example);
        assert_eq!(findings[0].severity, Severity::Unknown);
    }
}
