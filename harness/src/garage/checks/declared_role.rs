//! A follower's node has the role that was declared for it.

use std::collections::BTreeMap;

use onewriter_history::{Event, Record, State};
use serde::Deserialize as _;

use super::calls::layout_write;
use super::deferred::Deferred;
use super::homes::Homes;
use super::layouts::{Happened, Layouts, RoleValue};
use super::recorded::Recorded;
use super::standing::{Standing, Standings};
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};
use crate::garage::facts::{self, Fact, LayoutSeen, NodeFact, SeenRole};

/// Every role of a node that a Follower runs was staged by the writer, and equals the writer's declaration of that node
/// in zone and capacity (design record, D2-A). Tags are the operator's own.
#[derive(Debug, Clone, Copy)]
pub struct FollowersRolesDeclared;

impl Check for FollowersRolesDeclared {
    fn name(&self) -> &'static str {
        "followers-roles-declared"
    }

    fn claim(&self) -> &'static str {
        "every role of a follower's node was staged by the writer as it is declared there"
    }

    fn needs(&self) -> &'static str {
        "bodies of stagings, who runs which node, the writer's GarageNodes, the layouts that nodes hold"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Declared::default())
    }
}

#[derive(Default)]
struct Declared {
    standings: Standings,
    recorded: Recorded,
    layouts: Layouts,
    homes: Homes,
    /// Declared roles by mesh, then by node and declaring site.
    wanted: BTreeMap<String, BTreeMap<(String, String), RoleValue>>,
    held: Deferred<Staged>,
}

/// A staged role whose declaration was not seen.
#[derive(Debug)]
struct Staged {
    mesh: String,
    node: String,
    site: String,
    role: RoleValue,
}

impl Judge for Declared {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.standings.follow(seen);
        self.recorded.take(seen.record);
        self.homes.take(seen.record);
        self.held.pass(seen.record.mono_ns, found);
        if let Some((mesh, Fact::Node(fact))) = Fact::seen(seen) {
            self.learn(mesh, fact);
        }
        if let Event::State(state) = &seen.record.event {
            self.look(state, seen, found);
        }
        let Some((mesh, Happened::Staged { call, changes })) = self.layouts.take(seen.record) else { return };
        for (node, change) in changes {
            if let Some(role) = change {
                self.judge_staged(&mesh, &node, role.untagged(), &call, seen, found);
            }
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.standings.forget(mesh);
        self.layouts.forget(mesh);
        self.homes.forget(mesh);
        self.wanted.remove(mesh);
    }

    fn end(&mut self, _recent: &Recent, found: &mut Found) {
        self.held.end(found);
    }
}

impl Declared {
    fn learn(&mut self, mesh: &str, fact: &NodeFact) {
        let (Some(node), Some(zone)) = (&fact.node_id, &fact.zone) else { return };
        let capacity = fact.capacity.filter(|_| !fact.gateway);
        let role = RoleValue { zone: zone.clone(), capacity, tags: Vec::new() };
        let site = &fact.written.site;
        self.held.excuse(|held| {
            (held.mesh.as_str(), &held.node, &held.site, &held.role) == (mesh, node, site, &role)
        });
        self.wanted.entry(mesh.to_owned()).or_default().insert((node.clone(), site.clone()), role);
    }

    /// Whether a Follower runs `node`, and which.
    fn follower_of(&self, mesh: &str, node: &str) -> Option<&str> {
        let home = self.homes.of(mesh, node)?;
        (self.standings.of(mesh, &home.site) == Standing::Follows).then_some(home.site.as_str())
    }

    fn judge_staged(
        &mut self,
        mesh: &str,
        node: &str,
        role: RoleValue,
        call: &Record,
        seen: &Seen<'_>,
        found: &mut Found,
    ) {
        let Some(home) = self.follower_of(mesh, node) else { return };
        let Some(site) = layout_write(call).and_then(|call| call.caller.as_deref()) else { return };
        let cell = self.standings.cell(mesh);
        let witness = seen.witness_of(call);
        if self.standings.of(mesh, site) == Standing::Follows {
            let message =
                format!("the role of {home}'s node {node} was staged by {site}, which is no writer");
            found.add(Finding::violation(cell, message, witness));
            return;
        }
        let declared = self.wanted.get(mesh).and_then(|nodes| nodes.get(&(node.to_owned(), site.to_owned())));
        if declared == Some(&role) || !self.recorded.has(facts::NODE) {
            return;
        }
        let message = match declared {
            Some(declared) => {
                format!("{site} staged {role} for {home}'s node {node}, and its declaration says {declared}")
            }
            None => format!("{site} staged {role} for {home}'s node {node}, and never declared that node"),
        };
        let finding = Finding::violation(cell, message, witness);
        let (mesh, node, site) = (mesh.to_owned(), node.to_owned(), site.to_owned());
        self.held.hold(seen.record.mono_ns, Staged { mesh, node, site, role }, finding);
    }

    /// The harness read a layout: each follower's role in it must be one that was staged.
    fn look(&self, state: &State, seen: &Seen<'_>, found: &mut Found) {
        let (true, Some(mesh)) = (state.subject == facts::LAYOUT_SEEN, &state.mesh) else { return };
        let cell = state.cell.as_deref();
        let Ok(layout) = LayoutSeen::deserialize(&state.value) else {
            let message = format!("the layout at #{} cannot be read", seen.record.seq);
            found.add(Finding::unknown(cell, message, None));
            return;
        };
        let known = self.layouts.of(mesh);
        let version = known.map_or(0, super::layouts::OfMesh::version);
        if known.is_some_and(super::layouts::OfMesh::is_clouded) || layout.version < version {
            return;
        }
        if layout.version > version {
            let message = format!(
                "node {} holds layout version {}, and no event tells of a version after {version}",
                layout.node, layout.version
            );
            found.add(Finding::unknown(cell, message, seen.witness()));
            return;
        }
        for role in &layout.roles {
            self.look_at(mesh, role, cell, seen, found);
        }
    }

    fn look_at(&self, mesh: &str, role: &SeenRole, cell: Option<&str>, seen: &Seen<'_>, found: &mut Found) {
        let node = &role.id;
        if self.homes.of(mesh, node).is_none() {
            let message = format!("node {node} has a role, and nobody told which site runs it");
            found.add(Finding::unknown(cell, message, seen.witness()));
        }
        let Some(home) = self.follower_of(mesh, node) else { return };
        let held = RoleValue { zone: role.zone.clone(), capacity: role.capacity, tags: Vec::new() };
        let staged = self.layouts.of(mesh).and_then(|layout| layout.role(node)).map(RoleValue::untagged);
        if staged.as_ref() == Some(&held) {
            return;
        }
        let staged = staged.map_or_else(|| "nothing".to_owned(), |role| role.to_string());
        let message =
            format!("{home}'s node {node} has the role {held}, and what was staged for it is {staged}");
        found.add(Finding::violation(cell, message, seen.witness()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged, layout, removal, role};
    use super::*;
    use crate::checks::Severity;
    use crate::garage::role::Role::{Follower, Writer};
    use serde_json::json;

    const NODE: &str = "n-west";

    fn federation() -> Example {
        Example::new().records().roles(Writer, Follower).node("west", NODE, "started")
    }

    fn declared(example: Example, capacity: u64) -> Example {
        let fact = json!({"site": "east", "name": "west-garage-0", "by": "admin", "generation": 1,
            "nodeId": NODE, "external": true, "zone": "west", "capacity": capacity});
        example.fact(facts::NODE, &fact)
    }

    fn stages(example: Example, site: &str, capacity: u64) -> Example {
        example.call(call(site).node("a").update(&[role(NODE, "west", capacity)]))
    }

    fn holds(example: Example, capacity: u64) -> Example {
        let seen = json!({"node": "127.0.0.1", "version": 1,
            "roles": [{"id": NODE, "zone": "west", "capacity": capacity}]});
        let apply = call("east").node("a").write("/v2/ApplyClusterLayout");
        example.call_with(apply, &layout("a", "applied", 0, 1)).fact(facts::LAYOUT_SEEN, &seen)
    }

    fn findings(example: &Example) -> Vec<Finding> {
        judged(&FollowersRolesDeclared, example)
    }

    #[test]
    fn a_role_that_the_writer_declared_and_staged_is_fine() {
        assert_eq!(findings(&holds(stages(declared(federation(), 10), "east", 10), 10)), []);
    }

    #[test]
    fn a_declaration_that_is_recorded_a_moment_after_the_staging_counts() {
        assert_eq!(findings(&holds(declared(stages(federation(), "east", 10), 10), 10)), []);
    }

    #[test]
    fn a_role_that_differs_from_its_declaration_is_a_violation() {
        let findings = findings(&stages(declared(federation(), 10), "east", 20));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("its declaration says 10 bytes"), "{}", findings[0].message);
    }

    #[test]
    fn a_role_that_nobody_declared_is_a_violation() {
        assert_eq!(findings(&stages(federation(), "east", 10)).len(), 1);
    }

    #[test]
    fn a_role_that_a_follower_staged_is_a_violation() {
        assert_eq!(findings(&stages(declared(federation(), 10), "west", 10)).len(), 1);
    }

    #[test]
    fn a_role_that_is_there_and_was_never_staged_is_a_violation() {
        assert_eq!(findings(&holds(declared(federation(), 10), 10)).len(), 1);
    }

    #[test]
    fn a_role_that_nodes_hold_otherwise_than_staged_is_a_violation() {
        assert_eq!(findings(&holds(stages(declared(federation(), 10), "east", 10), 20)).len(), 1);
    }

    #[test]
    fn a_version_of_which_no_event_tells_leaves_the_verdict_open() {
        let seen = json!({"node": "127.0.0.1", "version": 1, "roles": []});
        let findings = findings(&federation().fact(facts::LAYOUT_SEEN, &seen));
        assert_eq!(findings[0].severity, Severity::Unknown);
    }

    #[test]
    fn the_writers_own_nodes_and_removals_are_not_its_matter() {
        let example = federation()
            .node("east", "n-east", "started")
            .call(call("east").update(&[role("n-east", "east", 10), removal(NODE)]));
        assert_eq!(findings(&example), []);
    }
}
