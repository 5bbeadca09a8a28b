//! Every refused layout write is counted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use onewriter_history::{Event, Record, State};
use serde::Deserialize as _;

use super::recorded::Recorded;
use super::roles::Roles;
use super::slot::slot;
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};
use crate::garage::facts::refusal::is_structured;
use crate::garage::facts::{self, LogFact, MetricFact};

/// The counter of blocked layout writes equals the refusals that the operator logged (design record, "Status": metrics).
///
/// An operator counts first and logs then, so what was logged before it was asked is in its answer; and what is in its
/// answer is logged a moment later. The counters begin anew with every process of the operator.
#[derive(Debug, Clone, Copy)]
pub struct RefusalsCounted;

impl Check for RefusalsCounted {
    fn name(&self) -> &'static str {
        "refusals-counted"
    }

    fn claim(&self) -> &'static str {
        "the counter of blocked layout writes equals the refusals that the operator logged"
    }

    fn needs(&self) -> &'static str {
        "the structured logs of the operators, and their metrics after the last refusal"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Refusals::default())
    }
}

/// How long after an answer a refusal that is counted in it may be logged, in nanoseconds.
const GRACE_NS: u64 = 1_000_000_000;
/// Of how many refusals the moments are remembered; those before were logged before anybody asked.
const MOMENTS: usize = 256;

#[derive(Default)]
struct Refusals {
    roles: Roles,
    recorded: Recorded,
    /// Sites whose operators log in a form that can be read.
    readable: BTreeSet<String>,
    meshes: BTreeMap<String, OfSites>,
    waiting: VecDeque<Answer>,
}

/// Refusals by site, cluster and operation.
type OfSites = BTreeMap<String, BTreeMap<String, BTreeMap<String, Logged>>>;

/// The refusals of one operation that were logged.
#[derive(Default)]
struct Logged {
    total: u64,
    moments: VecDeque<u64>,
    last: Option<Arc<Record>>,
    /// Whether the metric was read after the last one.
    is_read: bool,
}

impl Logged {
    fn add(&mut self, record: &Arc<Record>) {
        self.total += 1;
        self.is_read = false;
        self.last = Some(record.clone());
        if self.moments.len() == MOMENTS {
            self.moments.pop_front();
        }
        self.moments.push_back(record.mono_ns);
    }

    fn before(&self, mono_ns: u64) -> u64 {
        self.total - self.moments.iter().filter(|moment| **moment >= mono_ns).count() as u64
    }
}

/// A counter that is to be compared once everything that it counts must have been logged.
struct Answer {
    mesh: String,
    site: String,
    cluster: String,
    operation: String,
    counted: u64,
    record: Arc<Record>,
}

impl Judge for Refusals {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        self.recorded.take(seen.record);
        while self
            .waiting
            .front()
            .is_some_and(|answer| seen.record.mono_ns.saturating_sub(answer.record.mono_ns) > GRACE_NS)
        {
            self.compare(seen.recent, found);
        }
        match &seen.record.event {
            Event::Log(log) => {
                let Some(site) = &log.site else { return };
                if is_structured(log) && !self.readable.contains(site) {
                    self.readable.insert(site.clone());
                }
                self.logged(site, LogFact::of(log), seen.record);
            }
            Event::State(state) if state.subject == facts::METRIC => self.answered(state, seen, found),
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, recent: &Recent, found: &mut Found) {
        while !self.waiting.is_empty() {
            self.compare(recent, found);
        }
        self.tell_unread(mesh, recent, found);
        self.meshes.remove(mesh);
        self.roles.forget(mesh);
    }

    fn end(&mut self, recent: &Recent, found: &mut Found) {
        while !self.waiting.is_empty() {
            self.compare(recent, found);
        }
        for mesh in self.meshes.keys() {
            self.tell_unread(mesh, recent, found);
        }
    }
}

impl Refusals {
    fn logged(&mut self, site: &str, fact: Option<LogFact>, record: &Arc<Record>) {
        match fact {
            Some(LogFact::Refused { namespace, cluster, operation }) => {
                let sites = self.meshes.entry(namespace).or_default();
                let clusters = sites.entry(site.to_owned()).or_default();
                clusters.entry(cluster).or_default().entry(operation).or_default().add(record);
            }
            Some(LogFact::Up) => {
                self.meshes.values_mut().for_each(|sites| drop(sites.remove(site)));
                self.waiting.retain(|answer| answer.site != site);
            }
            None => {}
        }
    }

    fn answered(&mut self, state: &State, seen: &Seen<'_>, found: &mut Found) {
        let (Some(mesh), Ok(metric)) = (&state.mesh, MetricFact::deserialize(&state.value)) else {
            let message = format!("the metrics at #{} cannot be read", seen.record.seq);
            found.add(Finding::unknown(state.cell.as_deref(), message, None));
            return;
        };
        if metric.error.is_some() {
            return;
        }
        let Some(clusters) = slot(&mut self.meshes, mesh).and_then(|sites| slot(sites, &metric.site)) else {
            return;
        };
        for (cluster, operations) in &metric.blocked {
            for operation in operations.keys() {
                let known = clusters.entry(cluster.clone()).or_default();
                known.entry(operation.clone()).or_default();
            }
        }
        for (cluster, operations) in clusters {
            for (operation, logged) in operations {
                let counted = metric.blocked.get(cluster).and_then(|of| of.get(operation)).copied();
                let counted = counted.unwrap_or_default();
                logged.is_read = true;
                let before = logged.before(metric.since_ns);
                if before > counted {
                    let message = differs(&metric.site, cluster, operation, before, counted);
                    found.add(Finding::violation(self.roles.cell(mesh), message, seen.witness()));
                    continue;
                }
                self.waiting.push_back(Answer {
                    mesh: mesh.clone(),
                    site: metric.site.clone(),
                    cluster: cluster.clone(),
                    operation: operation.clone(),
                    counted,
                    record: seen.record.clone(),
                });
            }
        }
    }

    /// Compares the answer that waits for longest with what was logged until its grace was over.
    fn compare(&mut self, recent: &Recent, found: &mut Found) {
        let Some(answer) = self.waiting.pop_front() else { return };
        let Answer { mesh, site, cluster, operation, counted, record } = answer;
        let logged =
            self.meshes.get(&mesh).and_then(|sites| sites.get(&site)?.get(&cluster)?.get(&operation));
        let logged = logged.map_or(0, |logged| logged.before(record.mono_ns.saturating_add(GRACE_NS)));
        if logged >= counted {
            return;
        }
        let message = differs(&site, &cluster, &operation, logged, counted);
        let (cell, witness) = (self.roles.cell(&mesh), Some(recent.witness(&record)));
        found.add(if self.readable.contains(&site) {
            Finding::violation(cell, message, witness)
        } else {
            let message =
                format!("{message}, as far as this history tells: it has no structured log of that operator");
            Finding::unknown(cell, message, witness)
        });
    }

    /// Refusals after which nobody read the metric prove nothing.
    fn tell_unread(&self, mesh: &str, recent: &Recent, found: &mut Found) {
        if !self.recorded.has(facts::METRIC) {
            return;
        }
        for (site, clusters) in self.meshes.get(mesh).into_iter().flatten() {
            let unread = clusters.values().flat_map(BTreeMap::iter).find(|(_, logged)| !logged.is_read);
            let Some((operation, Logged { last: Some(last), .. })) = unread else { continue };
            let message = format!(
                "{site} logged that it refused {operation}, and its metrics were never read after that"
            );
            found.add(Finding::unknown(self.roles.cell(mesh), message, Some(recent.witness(last))));
        }
    }
}

fn differs(site: &str, cluster: &str, operation: &str, logged: u64, counted: u64) -> String {
    format!(
        "{site} logged {logged} refusals of {operation} for GarageCluster {cluster}, and its metric counts {counted}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, judged};
    use super::*;
    use crate::checks::Severity;
    use serde_json::json;

    fn begun() -> Example {
        Example::new().records().up("west")
    }

    fn metric(example: Example, counted: u64) -> Example {
        let fact = json!({"site": "west", "sinceNs": u64::MAX, "roles": {},
            "blocked": {"garage": {"UpdateClusterLayout": counted}}});
        example.fact(facts::METRIC, &fact)
    }

    fn findings(example: &Example) -> Vec<Finding> {
        judged(&RefusalsCounted, example)
    }

    #[test]
    fn as_many_as_were_logged_are_counted() {
        assert_eq!(findings(&metric(begun().refused("west").refused("west"), 2)), []);
    }

    #[test]
    fn a_refusal_that_is_not_counted_is_a_violation() {
        let findings = findings(&metric(begun().refused("west").refused("west"), 1));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Violation);
        assert!(findings[0].message.contains("logged 2 refusals"), "{}", findings[0].message);
    }

    #[test]
    fn a_count_without_a_refusal_is_a_violation() {
        assert_eq!(findings(&metric(begun().refused("west"), 2))[0].severity, Severity::Violation);
    }

    #[test]
    fn a_refusal_that_is_logged_a_moment_later_is_excused() {
        assert_eq!(findings(&metric(metric(begun(), 1).refused("west"), 1)), []);
    }

    #[test]
    fn a_new_process_counts_from_nothing() {
        assert_eq!(findings(&metric(metric(begun().refused("west"), 1).up("west"), 0)), []);
    }

    #[test]
    fn metrics_that_nobody_read_leave_the_verdict_open() {
        assert_eq!(findings(&begun().refused("west"))[0].severity, Severity::Unknown);
        let down = json!({"site": "west", "sinceNs": u64::MAX, "error": "connection refused"});
        let findings = findings(&begun().refused("west").fact(facts::METRIC, &down));
        assert_eq!(findings[0].severity, Severity::Unknown);
    }

    #[test]
    fn an_operator_whose_log_cannot_be_read_leaves_the_verdict_open() {
        assert_eq!(findings(&metric(Example::new().records(), 1))[0].severity, Severity::Unknown);
    }
}
