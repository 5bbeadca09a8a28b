//! Once nothing changes, nothing is written.

use std::collections::BTreeMap;

use onewriter_history::{Event, State};
use serde::Deserialize as _;

use super::calls::{layout_write, of_site, request};
use super::roles::Roles;
use super::slot::{ByMesh, slot};
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};
use crate::garage::facts::{self, EventFact, Fact, Quiet};

/// How often an operator may change one object in a quiet time. What came before may take that long to settle.
const SETTLING: u64 = 2;

/// How often an operator may tell the same of one object before a quiet time, without telling it once more in it being
/// churn.
const TOLD: u64 = 2;

/// In a quiet time, which a scenario announces, no site writes the layout, and no operator changes an object again and
/// again, or tells in an Event object once more what it has told again and again. A quiet time in which no operator called proves nothing.
#[derive(Debug, Clone, Copy)]
pub struct Quiescence;

impl Check for Quiescence {
    fn name(&self) -> &'static str {
        "quiescence"
    }

    fn claim(&self) -> &'static str {
        "no layout write and no API churn once nothing changes"
    }

    fn needs(&self) -> &'static str {
        "quiet times, calls in them, and writes to objects with their versions"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Quieting::default())
    }
}

#[derive(Default)]
struct Quieting {
    roles: Roles,
    quiet: BTreeMap<String, QuietTime>,
    versions: ByMesh<OfSites>,
    /// How often operators told what, by mesh.
    told: ByMesh<BTreeMap<String, u64>>,
}

/// Version of each object, by site, kind and name.
type OfSites = BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>;

#[derive(Default)]
struct QuietTime {
    calls: u64,
    changes: BTreeMap<String, u64>,
}

impl Judge for Quieting {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        match &seen.record.event {
            Event::CallBegin(_) if !self.quiet.is_empty() => self.called(seen, found),
            Event::State(state) if state.subject == facts::QUIET => self.turn(state, found),
            Event::State(state) if state.subject == facts::EVENT => self.tells(state, seen, found),
            Event::State(_) => self.written(seen, found),
            Event::Step(step) if step.title == "close the cell" => {
                if let Some(mesh) = &step.mesh {
                    self.ends(mesh, found);
                    self.versions.remove(mesh);
                }
            }
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, found: &mut Found) {
        self.ends(mesh, found);
        self.versions.remove(mesh);
        self.told.remove(mesh);
        self.roles.forget(mesh);
    }
}

impl Quieting {
    fn turn(&mut self, state: &State, found: &mut Found) {
        let (Some(mesh), Ok(quiet)) = (&state.mesh, Quiet::deserialize(&state.value)) else {
            let message = "the announcement of a quiet time cannot be read";
            found.add(Finding::unknown(state.cell.as_deref(), message, None));
            return;
        };
        if quiet.on {
            self.quiet.entry(mesh.clone()).or_default();
        } else {
            self.ends(mesh, found);
        }
    }

    fn ends(&mut self, mesh: &str, found: &mut Found) {
        let Some(time) = self.quiet.remove(mesh) else { return };
        if time.calls == 0 {
            let message = "no operator called in the quiet time: its silence proves nothing";
            found.add(Finding::unknown(self.roles.cell(mesh), message, None));
        }
    }

    fn called(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let Some((call, site)) = request(seen.record).and_then(|call| Some((call, of_site(call)?))) else {
            return;
        };
        let Some(time) = self.quiet.get_mut(&call.mesh) else { return };
        time.calls += 1;
        if layout_write(seen.record).is_some() {
            let message =
                format!("{site} wrote the layout though nothing had changed: {} {}", call.method, call.path);
            found.add(Finding::violation(self.roles.cell(&call.mesh), message, seen.witness()));
        }
    }

    fn tells(&mut self, state: &State, seen: &Seen<'_>, found: &mut Found) {
        let (Some(mesh), Ok(fact)) = (&state.mesh, EventFact::deserialize(&state.value)) else { return };
        if !facts::is_operator(&fact.by) {
            return;
        }
        let EventFact { site, regarding, reason, .. } = fact;
        let what = format!("{reason} of {regarding} at {site}");
        let Some(told) = slot(self.told.slot(mesh), &what) else { return };
        *told += 1;
        if *told == TOLD + 1 && !self.quiet.contains_key(mesh) {
            *told = TOLD;
        }
        if *told == TOLD + 1 {
            let message =
                format!("the operator keeps telling {what} in Event objects though nothing changes");
            found.add(Finding::violation(self.roles.cell(mesh), message, seen.witness()));
        }
    }

    fn written(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let Some((mesh, fact)) = Fact::seen(seen) else { return };
        let written = fact.written();
        let of_site = slot(self.versions.slot(mesh), &written.site);
        let of_kind = of_site.and_then(|kinds| slot(kinds, fact.kind()));
        let Some(version) = of_kind.and_then(|names| slot(names, &written.name)) else { return };
        let unchanged = version.is_empty() || *version == written.resource_version;
        version.clone_from(&written.resource_version);
        let Some(time) = self.quiet.get_mut(mesh) else { return };
        if unchanged || !facts::is_operator(&written.by) {
            return;
        }
        let object = format!("{} {} at {}", fact.kind(), written.name, written.site);
        let changes = time.changes.entry(object.clone()).or_default();
        *changes += 1;
        if *changes == SETTLING + 1 {
            let message = format!("the operator keeps changing {object} though nothing else changes");
            found.add(Finding::violation(self.roles.cell(mesh), message, seen.witness()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged};
    use super::*;
    use crate::checks::Severity;
    use crate::garage::role::Role::{Follower, Writer};
    use serde_json::json;

    const OPERATOR: &str = "system:serviceaccount:garage-operator-system:garage-operator";

    fn quiet(example: Example, on: bool) -> Example {
        example.fact(facts::QUIET, &json!({"on": on}))
    }

    fn begun() -> Example {
        quiet(Example::new().records().roles(Writer, Follower), true)
            .call(call("west").get("/v2/GetClusterStatus"))
    }

    fn written(example: Example, by: &str, version: u64) -> Example {
        let fact =
            json!({"site": "west", "name": "garage", "by": by, "resourceVersion": version.to_string()});
        example.fact(facts::CLUSTER, &fact)
    }

    #[test]
    fn a_layout_write_in_a_quiet_time_is_a_violation_also_of_a_writer() {
        let write = || call("east").write("/v2/ApplyClusterLayout");
        assert_eq!(judged(&Quiescence, &begun().call(write())).len(), 1);
        assert_eq!(judged(&Quiescence, &quiet(begun(), false).call(write())), []);
    }

    #[test]
    fn an_object_that_the_operator_changes_again_and_again_is_churn() {
        let churn = (1..=5).fold(begun(), |example, version| written(example, OPERATOR, version));
        assert_eq!(judged(&Quiescence, &churn).len(), 1);
    }

    fn told(example: Example, by: &str, reason: &str) -> Example {
        let fact = json!({"site": "west", "by": by, "regarding": "GarageNode/n", "reason": reason});
        example.fact(facts::EVENT, &fact)
    }

    #[test]
    fn an_operator_that_tells_the_same_again_and_again_is_churn() {
        let often =
            |by: &str| (0..4).fold(Example::new().records(), |example, _| told(example, by, "Roleless"));
        let told_in_quiet = |by: &str, reason: &str| {
            let begun = quiet(often(by), true).call(call("west").get("/v2/GetClusterStatus"));
            judged(&Quiescence, &told(told(begun, by, reason), by, reason)).len()
        };
        assert_eq!(told_in_quiet(OPERATOR, "Roleless"), 1, "one finding, however often");
        assert_eq!(told_in_quiet(OPERATOR, "SomethingElse"), 0);
        assert_eq!(told_in_quiet("admin", "Roleless"), 0);
    }

    #[test]
    fn writes_that_change_nothing_and_writes_of_others_are_fine() {
        let same = (1..=5).fold(begun(), |example, _| written(example, OPERATOR, 7));
        assert_eq!(judged(&Quiescence, &same), []);
        let poked = (1..=5).fold(begun(), |example, version| written(example, "admin", version));
        assert_eq!(judged(&Quiescence, &poked), []);
    }

    #[test]
    fn a_quiet_time_in_which_nobody_called_proves_nothing() {
        let example = quiet(quiet(Example::new(), true), false);
        assert_eq!(judged(&Quiescence, &example)[0].severity, Severity::Unknown);
    }

    #[test]
    fn the_teardown_of_the_cell_ends_its_quiet_time() {
        let closed = begun().step("close the cell").call(call("east").write("/v2/UpdateClusterLayout"));
        assert_eq!(judged(&Quiescence, &closed), []);
    }
}
