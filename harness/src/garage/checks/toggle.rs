//! No role goes back and forth.

use std::collections::BTreeMap;

use onewriter_history::{Event, Record};

use super::calls::layout_write;
use super::deferred::Deferred;
use super::layouts::{Change, Happened, Layouts};
use super::recorded::Recorded;
use super::slot::{ByMesh, slot};
use super::standing::Standings;
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};
use crate::garage::facts::{self, Fact};

/// Within one term no role goes from A to B and back to A, unless something asked for it: a change of the spec of a
/// GarageCluster or GarageNode by somebody else than the operator, or a step with `asks: "roles"` in its detail.
#[derive(Debug, Clone, Copy)]
pub struct NoRoleToggles;

impl Check for NoRoleToggles {
    fn name(&self) -> &'static str {
        "no-role-toggles"
    }

    fn claim(&self) -> &'static str {
        "no role goes back and forth within one writer's term unless somebody asks for it"
    }

    fn needs(&self) -> &'static str {
        "bodies of stagings, and who changed GarageClusters and GarageNodes"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Toggles::default())
    }
}

#[derive(Default)]
struct Toggles {
    standings: Standings,
    layouts: Layouts,
    recorded: Recorded,
    meshes: ByMesh<OfMesh>,
    held: Deferred<String>,
}

#[derive(Default)]
struct OfMesh {
    term: u64,
    /// When a change of roles was last asked for.
    asked: u64,
    /// Generation of each object of the operator, by site, kind and name.
    generations: BTreeMap<String, BTreeMap<String, BTreeMap<String, Option<u64>>>>,
    roles: BTreeMap<String, Staged>,
}

/// The last two different values of a role.
struct Staged {
    before: Option<Change>,
    now: Change,
    since: u64,
}

impl Judge for Toggles {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.standings.follow(seen);
        self.recorded.take(seen.record);
        self.held.pass(seen.record.mono_ns, found);
        if let Some(mesh) = self.asks(seen) {
            self.meshes.slot(&mesh).asked = seen.record.seq;
            self.held.excuse(|held| *held == mesh);
        }
        if let Some((mesh, Happened::Staged { call, changes })) = self.layouts.take(seen.record) {
            for (node, change) in changes {
                if let Some(message) = self.stage(&mesh, &node, &change, call.seq) {
                    let cell = self.standings.cell(&mesh);
                    let finding = self.finding(cell, &message, seen, &call);
                    self.held.hold(seen.record.mono_ns, mesh.clone(), finding);
                }
            }
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.standings.forget(mesh);
        self.layouts.forget(mesh);
        self.meshes.remove(mesh);
    }

    fn end(&mut self, _recent: &Recent, found: &mut Found) {
        self.held.end(found);
    }
}

impl Toggles {
    /// The mesh for which this event asks for other roles, if it does.
    fn asks(&mut self, seen: &Seen<'_>) -> Option<String> {
        if let Event::Step(step) = &seen.record.event {
            let asks = step.detail.as_ref()?.get("asks")?.as_str()? == "roles";
            return step.mesh.clone().filter(|_| asks);
        }
        let (mesh, fact) = Fact::seen(seen)?;
        let asks = !matches!(fact, Fact::Object(_)) && self.changes_spec(mesh, fact);
        asks.then(|| mesh.to_owned())
    }

    fn changes_spec(&mut self, mesh: &str, fact: &Fact) -> bool {
        let written = fact.written();
        let of_mesh = self.meshes.slot(mesh);
        let of_kind =
            slot(&mut of_mesh.generations, &written.site).and_then(|kinds| slot(kinds, fact.kind()));
        let Some(known) = of_kind.and_then(|names| slot(names, &written.name)) else { return false };
        let before = known.replace(written.generation);
        before != Some(written.generation) && !facts::is_operator(&written.by)
    }

    fn stage(&mut self, mesh: &str, node: &str, change: &Change, seq: u64) -> Option<String> {
        let term = self.standings.term(mesh);
        let of_mesh = self.meshes.slot(mesh);
        if of_mesh.term != term {
            of_mesh.term = term;
            of_mesh.roles.clear();
        }
        let Some(known) = of_mesh.roles.get_mut(node) else {
            let first = Staged { before: None, now: change.clone(), since: seq };
            of_mesh.roles.insert(node.to_owned(), first);
            return None;
        };
        if known.now == *change {
            return None;
        }
        let back = known.before.as_ref() == Some(change) && of_mesh.asked < known.since;
        let was = std::mem::replace(&mut known.now, change.clone());
        let message = back.then(|| {
            format!(
                "the role of node {node} went from {} to {} (#{}) and back, and nobody asked for it",
                in_words(change),
                in_words(&was),
                known.since
            )
        });
        (known.before, known.since) = (Some(was), seq);
        message
    }

    fn finding(&self, cell: Option<&str>, message: &str, seen: &Seen<'_>, call: &Record) -> Finding {
        let who = layout_write(call).and_then(|call| call.caller.as_deref()).unwrap_or("nobody known");
        let witness = seen.witness_of(call);
        if self.recorded.has(facts::CLUSTER) && self.recorded.has(facts::NODE) {
            Finding::violation(cell, format!("{message}; {who} staged it"), witness)
        } else {
            let message =
                format!("{message} as far as this history tells: it does not record who changed objects");
            Finding::unknown(cell, message, witness)
        }
    }
}

fn in_words(change: &Change) -> String {
    change.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged, removal, role};
    use super::*;
    use crate::checks::Severity;
    use crate::garage::role::Role::{Follower, Writer};
    use serde_json::{Value, json};

    fn stage(change: Value) -> super::super::example::ExampleCall {
        call("east").update(&[change])
    }

    fn declared(example: Example, generation: u64, by: &str) -> Example {
        example.fact(facts::NODE, &json!({"site": "east", "name": "n", "by": by, "generation": generation}))
    }

    fn there_and(back: impl FnOnce(Example) -> Example) -> Vec<Finding> {
        let example = declared(Example::new().records().roles(Writer, Follower), 1, "admin");
        let example = example.call(stage(role("n1", "east", 10))).call(stage(removal("n1")));
        judged(&NoRoleToggles, &back(example).call(stage(role("n1", "east", 10))))
    }

    #[test]
    fn a_role_that_goes_and_comes_back_by_itself_is_a_violation() {
        let findings = there_and(|example| example);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Violation);
    }

    #[test]
    fn tags_that_go_and_come_back_by_themselves_are_a_violation() {
        let tagged = |tag: &str| json!({"id": "n1", "zone": "east", "capacity": 10, "tags": [tag, "of-all"]});
        let stages = |example: Example, tag: &str| example.call(stage(tagged(tag)));
        let example = declared(Example::new().records().roles(Writer, Follower), 1, "admin");
        let example = stages(stages(example, "imported"), "adopted");
        let findings = judged(&NoRoleToggles, &stages(example, "imported"));
        assert_eq!(findings[0].severity, Severity::Violation);
        assert!(findings[0].message.contains("with tags adopted, of-all"), "{}", findings[0].message);
    }

    #[test]
    fn tags_in_another_order_are_the_same() {
        let tagged = |tags: [&str; 2]| json!({"id": "n1", "zone": "east", "capacity": 10, "tags": tags});
        let example = declared(Example::new().records().roles(Writer, Follower), 1, "admin");
        let stages = |example: Example, tags| example.call(stage(tagged(tags)));
        let example = stages(stages(stages(example, ["a", "b"]), ["b", "a"]), ["a", "b"]);
        assert_eq!(judged(&NoRoleToggles, &example), []);
    }

    #[test]
    fn a_role_that_comes_back_because_its_declaration_changed_is_fine() {
        assert_eq!(there_and(|example| declared(example, 2, "admin")), []);
    }

    #[test]
    fn the_operators_own_changes_ask_for_nothing() {
        let operator = "system:serviceaccount:garage-operator-system:garage-operator";
        assert_eq!(there_and(|example| declared(example, 2, operator)).len(), 1);
        assert_eq!(there_and(|example| declared(example, 1, "admin")).len(), 1, "a poke changes no spec");
    }

    #[test]
    fn another_writers_term_begins_anew() {
        assert_eq!(there_and(|example| example.roles(Follower, Writer)), []);
    }

    #[test]
    fn a_declaration_that_is_recorded_a_moment_late_still_counts() {
        let example = Example::new()
            .records()
            .call(stage(role("n1", "east", 10)))
            .call(stage(role("n1", "east", 20)))
            .call(stage(role("n1", "east", 10)));
        assert_eq!(judged(&NoRoleToggles, &declared(example, 2, "admin")), []);
    }

    #[test]
    fn saying_the_same_again_and_changing_on_are_no_toggle() {
        let example = Example::new()
            .records()
            .call(stage(role("n1", "east", 10)))
            .call(stage(role("n1", "east", 10)))
            .call(stage(role("n1", "east", 20)))
            .call(stage(role("n1", "east", 30)));
        assert_eq!(judged(&NoRoleToggles, &example), []);
    }

    #[test]
    fn where_nobody_recorded_who_asks_it_cannot_be_told() {
        let example = Example::new()
            .call(stage(role("n1", "east", 10)))
            .call(stage(removal("n1")))
            .call(stage(role("n1", "east", 10)));
        assert_eq!(judged(&NoRoleToggles, &example)[0].severity, Severity::Unknown);
    }
}
