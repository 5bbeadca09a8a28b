//! Phase and conditions of a `GarageCluster` (operator contract §4.3).

use super::awaiting::{WriterWork, verdicts};
use crate::api::condition::{GATEWAY_TOMBSTONES, READY, REPLICATION_FACTOR, STORAGE_DRAIN_READY, Verdict};
use crate::api::layout::LayoutSiteRole;
use crate::mutant::{self, Mutant};

/// What a reconcile learnt about a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// The role that the spec declares; `None` when the feature is not in use.
    pub declared: Option<LayoutSiteRole>,
    /// The role in force is Follower.
    pub follows: bool,
    /// The spec makes no sense, or a Secret is missing; says what to do.
    pub fault: Option<String>,
    /// Managed nodes that should be there.
    pub wanted: usize,
    /// Those whose pod is ready.
    pub ready: usize,
    /// Why Garage could not be read.
    pub unreachable: Option<String>,
    /// Garage's own word: `healthy`, `degraded`, `unavailable`.
    pub health: Option<String>,
    /// Managed nodes without a role.
    pub without_role: Vec<String>,
    /// Other sites that are not fully connected, each with why.
    pub unconnected: Vec<String>,
    /// Pods of an older revision are being replaced.
    pub rolling: bool,
    /// The cluster was asked to drain: whether all its nodes are prepared.
    pub drained: Option<bool>,
    /// A factor migration is in flight; says how far it is.
    pub migrating: Option<String>,
    /// The replication factor of the spec is not that of the nodes; says what to do.
    pub factor_drift: Option<String>,
    /// Stale gateway roles.
    pub tombstones: Vec<String>,
    /// Work that only the writer site may do.
    pub work: WriterWork,
}

impl ClusterFacts {
    fn pods_ready(&self) -> bool {
        self.ready >= self.wanted
    }

    /// Whether roles are missing that this site itself assigns. On a Follower a missing role is not its failure.
    fn roles_missing(&self) -> bool {
        !self.follows && !self.without_role.is_empty()
    }

    /// Whether Garage says that it is not well, and roles are there for it to mean anything.
    fn ailing(&self) -> bool {
        self.without_role.is_empty() && self.health.as_deref().is_some_and(|health| health == "unavailable")
    }
}

/// Phase of the cluster.
pub fn phase(facts: &ClusterFacts) -> &'static str {
    if facts.fault.is_some() {
        "Failed"
    } else if !facts.pods_ready() || facts.unreachable.is_some() || facts.roles_missing() {
        "Pending"
    } else if facts.ailing() {
        "Degraded"
    } else {
        "Running"
    }
}

/// Whether nothing is under way any more.
pub fn is_settled(facts: &ClusterFacts) -> bool {
    phase(facts) == "Running"
        && facts.work == WriterWork::default()
        && facts.without_role.is_empty()
        && facts.unconnected.is_empty()
        && !facts.rolling
        && facts.migrating.is_none()
        && facts.drained != Some(false)
}

/// All conditions of the cluster. Those of the layout role are stated only while the spec declares one.
pub fn conditions(facts: &ClusterFacts) -> Vec<Verdict> {
    let mut conditions = vec![ready(facts)];
    if !facts.tombstones.is_empty() {
        let message = format!("stale gateway roles: {}", facts.tombstones.join(", "));
        conditions.push(Verdict::new(GATEWAY_TOMBSTONES, true, "PendingRemoval", message));
    }
    if let Some(drained) = facts.drained {
        let (reason, message) = if drained {
            ("Completed", "no node has a role any more: the cluster may be deleted")
        } else {
            ("Draining", "the roles of all nodes leave the layout")
        };
        conditions.push(Verdict::new(STORAGE_DRAIN_READY, drained, reason, message));
    }
    if let Some(drift) = &facts.factor_drift {
        conditions.push(Verdict::new(REPLICATION_FACTOR, false, "MigrationRequired", drift.as_str()));
    }
    if let Some(role) = facts.declared {
        conditions.extend(verdicts(role, &facts.work));
    }
    conditions
}

fn ready(facts: &ClusterFacts) -> Verdict {
    let not = |reason, message: String| Verdict::new(READY, false, reason, message);
    if let Some(fault) = &facts.fault {
        return not("ReconcileFailed", fault.clone());
    }
    if let Some(migrating) = facts.migrating.as_ref().filter(|_| !facts.follows) {
        return not("FactorMigration", migrating.clone());
    }
    if !facts.pods_ready() {
        return not("NotAllReplicasReady", format!("{} of {} nodes are ready", facts.ready, facts.wanted));
    }
    if let Some(why) = &facts.unreachable {
        return not("GarageUnreachable", why.clone());
    }
    if facts.roles_missing() {
        return not("LayoutNotReady", format!("{} have no role yet", facts.without_role.join(", ")));
    }
    if mutant::is(Mutant::AwaitingUnready) && facts.work != WriterWork::default() {
        return not("AwaitingLayoutWriter", "the writer site has to act".to_owned());
    }
    let message = match facts.unconnected.as_slice() {
        [] => "all nodes are ready".to_owned(),
        sites => format!("all nodes are ready; not fully connected to {}", sites.join("; ")),
    };
    Verdict::new(READY, true, "ClusterReady", message)
}

#[cfg(test)]
mod tests {
    use super::{ClusterFacts, conditions, is_settled, phase};
    use crate::api::condition::{Holds, READY};
    use crate::api::layout::LayoutSiteRole::{self, Follower, Writer};
    use crate::decision::awaiting::WriterWork;
    use rstest::rstest;

    fn facts(declared: Option<LayoutSiteRole>) -> ClusterFacts {
        ClusterFacts {
            declared,
            follows: declared == Some(Follower),
            wanted: 2,
            ready: 2,
            ..ClusterFacts::default()
        }
    }

    fn roleless(declared: Option<LayoutSiteRole>) -> ClusterFacts {
        let without_role = vec!["garage-0".to_owned()];
        let work = WriterWork { without_role: without_role.clone(), ..WriterWork::default() };
        ClusterFacts { without_role, work, health: Some("unavailable".into()), ..facts(declared) }
    }

    fn kinds(facts: &ClusterFacts) -> Vec<&'static str> {
        conditions(facts).iter().map(|verdict| verdict.kind).collect()
    }

    #[rstest]
    #[case(Some(Writer), &["Ready", "LayoutWriter", "AwaitingLayoutWriter"])]
    #[case(Some(Follower), &["Ready", "LayoutWriter", "AwaitingLayoutWriter"])]
    #[case(None, &["Ready"])]
    fn without_a_declared_role_no_trace_of_the_feature_is_left(
        #[case] declared: Option<LayoutSiteRole>,
        #[case] expected: &[&str],
    ) {
        assert_eq!(kinds(&facts(declared)), expected);
    }

    #[rstest]
    #[case(Some(Writer), Holds::No, "LayoutNotReady", "Pending")]
    #[case(None, Holds::No, "LayoutNotReady", "Pending")]
    #[case(Some(Follower), Holds::Yes, "ClusterReady", "Running")]
    fn awaiting_the_writer_never_makes_a_follower_unready(
        #[case] declared: Option<LayoutSiteRole>,
        #[case] holds: Holds,
        #[case] reason: &str,
        #[case] expected: &str,
    ) {
        let facts = roleless(declared);
        let ready = conditions(&facts).into_iter().find(|verdict| verdict.kind == READY).unwrap();
        assert_eq!((ready.holds, ready.reason), (holds, reason));
        assert_eq!(phase(&facts), expected);
        assert!(!is_settled(&facts), "work that waits for the writer is looked at again soon");
    }

    #[rstest]
    #[case(Some(Writer), "FactorMigration")]
    #[case(Some(Follower), "ClusterReady")]
    fn a_migration_makes_its_writer_unready_and_no_follower(
        #[case] declared: Option<LayoutSiteRole>,
        #[case] reason: &str,
    ) {
        let facts = ClusterFacts { migrating: Some("Purging".into()), ..facts(declared) };
        assert_eq!(conditions(&facts)[0].reason, reason);
        assert!(!is_settled(&facts));
    }

    #[rstest]
    #[case(false, Holds::No, "Draining")]
    #[case(true, Holds::Yes, "Completed")]
    fn a_cluster_that_drains_says_how_far_it_is(
        #[case] drained: bool,
        #[case] holds: Holds,
        #[case] reason: &str,
    ) {
        let facts = ClusterFacts { drained: Some(drained), ..facts(None) };
        let verdict = &conditions(&facts)[1];
        assert_eq!((verdict.kind, verdict.holds, verdict.reason), ("StorageDrainReady", holds, reason));
        assert_eq!(is_settled(&facts), drained);
    }

    #[test]
    fn a_factor_that_waits_for_its_migration_is_told_and_keeps_the_cluster_ready() {
        let facts = ClusterFacts { factor_drift: Some("migrate".into()), ..facts(None) };
        assert_eq!(kinds(&facts), ["Ready", "ReplicationFactor"]);
        assert_eq!(conditions(&facts)[0].holds, Holds::Yes);
    }

    #[rstest]
    #[case(ClusterFacts { ready: 1, ..facts(Some(Follower)) }, "NotAllReplicasReady", "Pending")]
    #[case(ClusterFacts { unreachable: Some("502".into()), ..facts(Some(Writer)) }, "GarageUnreachable", "Pending")]
    #[case(ClusterFacts { fault: Some("no Secret".into()), ..facts(None) }, "ReconcileFailed", "Failed")]
    #[case(ClusterFacts { health: Some("unavailable".into()), ..facts(None) }, "ClusterReady", "Degraded")]
    fn a_cluster_says_what_is_wrong(
        #[case] facts: ClusterFacts,
        #[case] reason: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(conditions(&facts)[0].reason, reason);
        assert_eq!(phase(&facts), expected);
    }
}
