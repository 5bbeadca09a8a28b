//! The gauge of the site role says what is so.

use std::collections::{BTreeMap, BTreeSet};

use onewriter_history::{Event, State};
use serde::Deserialize as _;

use super::deferred::Deferred;
use super::roles::Roles;
use super::slot::{ByMesh, slot};
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};
use crate::garage::facts::{self, ClusterFact, Fact, MetricFact};
use crate::garage::role::Role;
use crate::scenario::disturbance::DISTURBANCE;

/// The gauge of the layout site role names the role that a GarageCluster's spec gives and its status confirms, and no
/// other; where neither names one, it names none (design record, "Status": metrics).
///
/// Around a change of roles nothing is judged. An operator that was ended or started again shows no role at all until it
/// has reconciled something.
#[derive(Debug, Clone, Copy)]
pub struct GaugeIsTheRole;

impl Check for GaugeIsTheRole {
    fn name(&self) -> &'static str {
        "gauge-is-the-role"
    }

    fn claim(&self) -> &'static str {
        "the gauge of the site role names the role in force"
    }

    fn needs(&self) -> &'static str {
        "the metrics of the operators, and GarageClusters over time"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Gauges::default())
    }
}

/// For how long after a change the gauge may say what was so before, in nanoseconds.
const SETTLING_NS: u64 = 2_000_000_000;

#[derive(Default)]
struct Gauges {
    roles: Roles,
    /// GarageClusters by mesh, site and name.
    meshes: ByMesh<BTreeMap<String, BTreeMap<String, Known>>>,
    /// Sites whose operator has shown no role since the harness disturbed the site.
    fresh: BTreeSet<String>,
    held: Deferred<Shown>,
}

/// What a gauge showed.
#[derive(Debug)]
struct Shown {
    mesh: String,
    site: String,
    cluster: String,
    roles: Vec<String>,
}

/// What spec and status of a cluster say, and since when.
#[derive(Default)]
struct Known {
    declared: Option<Role>,
    enforced: Option<Role>,
    gone: bool,
    since: u64,
}

impl Known {
    /// The role that the gauge must name, or that there is none to name; nothing while spec and status disagree or have
    /// changed just now.
    fn expected(&self, at: u64) -> Option<Role> {
        let settled = self.since.saturating_add(SETTLING_NS) <= at;
        let agreed = self.gone || self.declared == self.enforced;
        let role = self.enforced.filter(|_| !self.gone).unwrap_or(Role::Absent);
        (settled && agreed).then_some(role)
    }

    /// Whether a gauge may have shown `roles` because it knew of this change before it was recorded.
    fn explains(&self, roles: &[String]) -> bool {
        let of = |role: Option<Role>| role.and_then(Role::field).into_iter();
        if self.gone {
            return roles.is_empty();
        }
        [self.declared, self.enforced].into_iter().any(|role| roles.iter().map(String::as_str).eq(of(role)))
    }
}

impl Judge for Gauges {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        self.held.pass(seen.record.mono_ns, found);
        if let Some((mesh, Fact::Cluster(fact))) = Fact::seen(seen) {
            self.learn(mesh, fact, seen.record.mono_ns);
        }
        match &seen.record.event {
            Event::Fault(fault) if fault.action == DISTURBANCE => {
                self.fresh.insert(fault.target.clone());
            }
            Event::State(state) if state.subject == facts::METRIC => self.read(state, seen),
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.meshes.remove(mesh);
        self.roles.forget(mesh);
    }

    fn end(&mut self, _recent: &Recent, found: &mut Found) {
        self.held.end(found);
    }
}

impl Gauges {
    fn learn(&mut self, mesh: &str, fact: &ClusterFact, at: u64) {
        let written = &fact.written;
        let of_site = slot(self.meshes.slot(mesh), &written.site);
        let Some(known) = of_site.and_then(|names| slot(names, &written.name)) else { return };
        let now = (fact.declared, fact.enforced, written.gone);
        if (known.declared, known.enforced, known.gone) == now {
            return;
        }
        (known.declared, known.enforced, known.gone) = now;
        known.since = at;
        let known = &*known;
        self.held.excuse(|shown| {
            (shown.mesh.as_str(), &shown.site, &shown.cluster) == (mesh, &written.site, &written.name)
                && known.explains(&shown.roles)
        });
    }

    fn read(&mut self, state: &State, seen: &Seen<'_>) {
        let (Some(mesh), Ok(metric)) = (&state.mesh, MetricFact::deserialize(&state.value)) else { return };
        if metric.roles.values().any(|roles| !roles.is_empty()) {
            self.fresh.remove(&metric.site);
        }
        if self.fresh.contains(&metric.site) {
            return;
        }
        let clusters = self.meshes.get(mesh).and_then(|sites| sites.get(&metric.site));
        for (name, known) in clusters.into_iter().flatten().filter(|_| metric.error.is_none()) {
            let Some(expected) = known.expected(metric.since_ns) else { continue };
            let shown = metric.roles.get(name).map(Vec::as_slice).unwrap_or_default();
            if shown.iter().map(String::as_str).eq(expected.field()) {
                continue;
            }
            let message = format!(
                "the gauge of GarageCluster {name} at {} names {}, and its role is {}",
                metric.site,
                if shown.is_empty() { "no role".to_owned() } else { shown.join(" and ") },
                expected.field().unwrap_or("not set"),
            );
            let finding = Finding::violation(self.roles.cell(mesh), message, seen.witness());
            let (mesh, site, cluster) = (mesh.clone(), metric.site.clone(), name.clone());
            let shown = Shown { mesh, site, cluster, roles: shown.to_vec() };
            self.held.hold(seen.record.mono_ns, shown, finding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, judged};
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn cluster(example: Example, declared: &Value, enforced: &Value) -> Example {
        let fact = json!({"site": "west", "name": "garage", "declared": declared, "enforced": enforced});
        example.fact(facts::CLUSTER, &fact)
    }

    fn shown(example: Example, roles: &[&str]) -> Example {
        let fact = json!({"site": "west", "sinceNs": 9_000_000_000_u64, "roles": {"garage": roles}});
        example.fact(facts::METRIC, &fact)
    }

    fn follower(roles: &[&str]) -> Example {
        shown(cluster(Example::new().records(), &json!("Follower"), &json!("Follower")), roles)
    }

    #[rstest]
    #[case::the_role(&["Follower"], 0)]
    #[case::another(&["Writer"], 1)]
    #[case::both(&["Writer", "Follower"], 1)]
    #[case::none(&[], 1)]
    fn the_gauge_of_a_follower_names(#[case] roles: &[&str], #[case] violations: usize) {
        assert_eq!(judged(&GaugeIsTheRole, &follower(roles)).len(), violations);
    }

    #[test]
    fn a_cluster_without_a_role_has_no_gauge() {
        let absent = |roles: &[&str]| shown(cluster(Example::new(), &Value::Null, &Value::Null), roles);
        assert_eq!(judged(&GaugeIsTheRole, &absent(&[])), []);
        assert_eq!(judged(&GaugeIsTheRole, &absent(&["Writer"])).len(), 1);
    }

    #[test]
    fn while_spec_and_status_disagree_nothing_is_judged() {
        let changing = cluster(Example::new(), &json!("Writer"), &json!("Follower"));
        assert_eq!(judged(&GaugeIsTheRole, &shown(changing, &["Writer"])), []);
    }

    #[test]
    fn a_change_that_is_recorded_a_moment_late_excuses_what_the_gauge_said_before() {
        let changed = cluster(follower(&["Writer"]), &json!("Writer"), &json!("Follower"));
        assert_eq!(judged(&GaugeIsTheRole, &changed), []);
    }

    #[test]
    fn a_change_that_does_not_explain_what_the_gauge_said_excuses_nothing() {
        let gone = json!({"site": "west", "name": "garage", "declared": "Follower", "enforced": "Follower",
            "deleting": true, "gone": true});
        let ends = |roles: &[&str]| follower(roles).fact(facts::CLUSTER, &gone);
        assert_eq!(judged(&GaugeIsTheRole, &ends(&["Writer"])).len(), 1);
        assert_eq!(judged(&GaugeIsTheRole, &ends(&[])), []);
    }

    #[test]
    fn an_operator_that_was_disturbed_shows_no_role_until_it_has_shown_one() {
        let disturbed = || follower(&["Follower"]).fault(DISTURBANCE);
        assert_eq!(judged(&GaugeIsTheRole, &shown(disturbed(), &[])), []);
        assert_eq!(judged(&GaugeIsTheRole, &shown(disturbed(), &["Writer"])).len(), 1);
        let again = shown(shown(disturbed(), &["Follower"]), &[]);
        assert_eq!(judged(&GaugeIsTheRole, &again).len(), 1);
    }
}
