//! A Follower makes zero layout writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onewriter_history::Record;

use super::calls::{layout_write, of_site, request};
use super::standing::{Confirmed, Standing, Standings};
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen, Witness};

/// No site makes a layout write while it is a Follower. Attempts count, whatever the answer (design record, "Decision"
/// and D3: zero layout writes).
///
/// A site that was demoted is a Follower from the moment its status says so. What it writes between the API server's
/// commit of the demotion and that status is a *race window*: it is noted with its length and is no violation.
#[derive(Debug, Clone, Copy)]
pub struct FollowerNeverWrites;

impl Check for FollowerNeverWrites {
    fn name(&self) -> &'static str {
        "follower-never-writes"
    }

    fn claim(&self) -> &'static str {
        "a site declared Follower makes no layout write"
    }

    fn needs(&self) -> &'static str {
        "the declared roles of every mesh, and after a demotion the status that confirms it"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Following::default())
    }
}

#[derive(Default)]
struct Following {
    standings: Standings,
    /// Writes in race windows that are not over, by mesh and site.
    windows: BTreeMap<(String, String), Window>,
    /// Meshes in which a site called and nobody had declared roles.
    undeclared: BTreeSet<String>,
}

struct Window {
    first: Arc<Record>,
    writes: u64,
    witness: Witness,
}

impl Judge for Following {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        match self.standings.take(seen) {
            Ok(Some(confirmed)) => self.window_ends(&confirmed, seen.record, found),
            Ok(None) => {}
            Err(_) => {
                let message = format!("the declaration of roles at #{} cannot be read", seen.record.seq);
                found.add(Finding::unknown(None, message, None));
            }
        }
        if let Some(call) = request(seen.record).filter(|call| of_site(call).is_some())
            && !self.standings.is_declared(&call.mesh)
            && !self.undeclared.contains(&call.mesh)
        {
            self.undeclared.insert(call.mesh.clone());
        }
        self.judge_write(seen, found);
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, found: &mut Found) {
        self.tell_unconfirmed(mesh, found);
        self.tell_undeclared(mesh, found);
        self.undeclared.remove(mesh);
        self.standings.forget(mesh);
    }

    fn end(&mut self, _recent: &Recent, found: &mut Found) {
        let open: BTreeSet<String> = self.windows.keys().map(|(mesh, _)| mesh.clone()).collect();
        for mesh in &open {
            self.tell_unconfirmed(mesh, found);
        }
        for mesh in &self.undeclared {
            self.tell_undeclared(mesh, found);
        }
    }
}

impl Following {
    fn tell_unconfirmed(&mut self, mesh: &str, found: &mut Found) {
        for ((_, site), window) in self.windows.extract_if(.., |(of, _), _| of == mesh) {
            let message = format!(
                "{site} made {} layout writes after it was demoted, and no status ever said that it follows",
                window.writes
            );
            found.add(Finding::unknown(self.standings.cell(mesh), message, Some(window.witness)));
        }
    }

    fn tell_undeclared(&self, mesh: &str, found: &mut Found) {
        if self.undeclared.contains(mesh) && !self.standings.is_declared(mesh) {
            let message = format!("sites called in mesh {mesh}, and nobody declared their roles");
            found.add(Finding::unknown(None, message, None));
        }
    }

    fn judge_write(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let Some((call, site)) =
            layout_write(seen.record).and_then(|call| Some((call, call.caller.as_deref()?)))
        else {
            return;
        };
        let cell = self.standings.cell(&call.mesh);
        match self.standings.of(&call.mesh, site) {
            Standing::Writes | Standing::Demoting { committed: false } => {}
            Standing::Demoting { committed: true } => self.in_window(&call.mesh, site, seen),
            Standing::Follows => {
                let message = format!(
                    "{site} is declared Follower and wrote the layout: {} {}",
                    call.method, call.path
                );
                found.add(Finding::violation(cell, message, seen.witness()));
            }
            Standing::Undeclared if matches!(site, "harness" | "human") => {}
            Standing::Undeclared => {
                let message = format!("{site} wrote the layout of a mesh in which it has no declared role");
                found.add(Finding::unknown(cell, message, seen.witness()));
            }
        }
    }

    fn in_window(&mut self, mesh: &str, site: &str, seen: &Seen<'_>) {
        let window = self.windows.entry((mesh.to_owned(), site.to_owned())).or_insert_with(|| Window {
            first: seen.record.clone(),
            writes: 0,
            witness: seen.recent.witness(seen.record),
        });
        window.writes += 1;
    }

    fn window_ends(&mut self, confirmed: &Confirmed, status: &Record, found: &mut Found) {
        let Confirmed { mesh, site, committed } = confirmed;
        let Some(window) = self.windows.remove(&(mesh.clone(), site.clone())) else { return };
        let millis = |later: &Record| later.mono_ns.saturating_sub(committed.mono_ns) / 1_000_000;
        let message = format!(
            "race window of {} ms: {site} made {} layout writes, the first {} ms after its demotion was committed, \
             before its status said Follower",
            millis(status),
            window.writes,
            millis(&window.first),
        );
        found.note(Finding::unknown(self.standings.cell(mesh), message, Some(window.witness)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call};
    use super::*;
    use crate::checks::Severity;
    use crate::garage::facts;
    use crate::garage::role::Role;
    use crate::garage::role::Role::{Absent, Follower, Writer};
    use rstest::rstest;
    use serde_json::json;

    fn judged(example: &Example) -> Vec<Finding> {
        super::super::example::judged(&FollowerNeverWrites, example)
    }

    #[rstest]
    #[case::update("/v2/UpdateClusterLayout", 200)]
    #[case::apply("/v2/ApplyClusterLayout", 200)]
    #[case::a_refused_apply_counts_too("/v2/ApplyClusterLayout", 500)]
    #[case::revert("/v2/RevertClusterLayout", 200)]
    #[case::skip("/v2/ClusterLayoutSkipDeadNodes", 400)]
    fn a_followers_write_is_a_violation_with_its_call_as_witness(#[case] path: &str, #[case] status: u16) {
        let example = Example::new()
            .roles(Writer, Follower)
            .step("wait")
            .call(call("west").get("/v2/GetClusterLayout"))
            .call(call("west").write(path).status(status));
        let findings = judged(&example);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Violation);
        let witness = findings[0].witness.as_ref().unwrap();
        assert!(witness.event.text.contains(path), "{}", witness.event.text);
        assert_eq!(witness.before.len(), 1);
        assert_eq!(witness.step.as_ref().unwrap().text, "wait");
        assert!(witness.answer.as_ref().unwrap().text.contains(&status.to_string()));
    }

    #[rstest]
    #[case::writer(Writer)]
    #[case::absent(Absent)]
    fn whoever_is_no_follower_may_write(#[case] role: Role) {
        let example =
            Example::new().roles(role, Follower).call(call("east").write("/v2/UpdateClusterLayout"));
        assert_eq!(judged(&example), []);
    }

    #[test]
    fn a_follower_may_connect_nodes() {
        let connect = call("west").post("/v2/ConnectClusterNodes");
        assert_eq!(judged(&Example::new().roles(Writer, Follower).call(connect)), []);
    }

    #[test]
    fn the_role_at_the_time_of_the_call_counts() {
        let write = || call("west").write("/v2/ApplyClusterLayout");
        let promoted = Example::new().roles(Writer, Follower).roles(Follower, Writer).call(write());
        assert_eq!(judged(&promoted), []);
        let demoted =
            Example::new().roles(Follower, Writer).call(write()).roles(Writer, Follower).call(write());
        assert_eq!(judged(&demoted).len(), 1);
    }

    #[test]
    fn a_write_in_a_mesh_without_declared_roles_leaves_the_verdict_open() {
        let findings = judged(&Example::new().call(call("west").write("/v2/ApplyClusterLayout")));
        assert_eq!(findings[0].severity, Severity::Unknown);
    }

    fn cluster(example: Example, declared: Role, enforced: Role, generation: u64, observed: u64) -> Example {
        let fact = json!({"site": "east", "name": "garage", "generation": generation, "declared": declared,
            "enforced": enforced, "observedGeneration": observed});
        example.fact(facts::CLUSTER, &fact)
    }

    /// East is a Writer, and the API server has its demotion.
    fn demoted() -> Example {
        let writer = cluster(Example::new().records().roles(Writer, Follower), Writer, Writer, 1, 1);
        cluster(writer.roles(Follower, Follower), Follower, Writer, 2, 1)
    }

    fn write() -> crate::garage::checks::example::ExampleCall {
        call("east").write("/v2/ApplyClusterLayout")
    }

    #[test]
    fn a_write_before_the_status_confirms_the_demotion_is_a_race_window_and_no_violation() {
        let confirmed = cluster(demoted().call(write()).call(write()), Follower, Follower, 2, 2);
        let judgement = super::super::example::judgement(&FollowerNeverWrites, &confirmed);
        assert_eq!(judgement.findings, []);
        assert_eq!(judgement.notes.len(), 1);
        assert!(
            judgement.notes[0].message.contains("east made 2 layout writes"),
            "{}",
            judgement.notes[0].message
        );
    }

    #[test]
    fn a_write_after_that_status_is_a_violation() {
        let confirmed = cluster(demoted(), Follower, Follower, 2, 2);
        assert_eq!(judged(&confirmed.call(write()))[0].severity, Severity::Violation);
    }

    #[test]
    fn a_status_that_speaks_of_the_spec_before_the_demotion_confirms_nothing() {
        let stale = cluster(demoted(), Follower, Follower, 2, 1).call(write());
        assert_eq!(judged(&cluster(stale, Follower, Follower, 2, 2)), []);
    }

    #[test]
    fn a_demotion_that_is_never_confirmed_leaves_the_verdict_open() {
        let findings = judged(&demoted().call(write()));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Unknown);
    }

    #[test]
    fn a_site_that_a_lost_field_makes_a_writer_is_still_a_follower() {
        let example = cluster(Example::new().records().roles(Follower, Writer), Follower, Follower, 1, 1);
        let cleared = cluster(example, Absent, Writer, 2, 2);
        assert_eq!(judged(&cleared.call(write()))[0].severity, Severity::Violation);
    }
}
