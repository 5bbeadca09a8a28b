//! The status of a cluster, written only when it differs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tracing::info;

use super::super::apply::write_status;
use super::super::context::Context;
use super::super::error::ReconcileError;
use super::super::ledger::Page;
use super::observe::Picture;
use crate::api::condition::{AWAITING_LAYOUT_WRITER, Verdict, find, merge};
use crate::api::layout::LayoutSiteRole;
use crate::api::observed::{HealthStatus, LayoutWriterStatus};
use crate::api::v1beta2::{GarageCluster, GarageClusterStatus};
use crate::decision::cluster_state::{conditions, phase};
use crate::decision::factor_migration::factor;
use crate::decision::foreign_writer::{self, Content};
use crate::garage::ClusterHealth;
use crate::mutant::{self, Mutant};
use crate::resources::labels::storage_selector;

/// Writes the status if it differs from the one at hand.
pub(super) async fn write(
    context: &Context,
    cluster: &GarageCluster,
    picture: &Picture,
) -> Result<(), ReconcileError> {
    let mut page = context.ledger.open(cluster).await;
    let mut before = cluster.status.clone().unwrap_or_default();
    // Nodes record what they apply: what was read at the beginning of this pass may be older.
    before.layout_writer.clone_from(&page.record);
    let writer = record(&page, cluster, picture);
    let mut after = next(cluster, &before, picture, writer, &Time(Timestamp::now()));
    if mutant::is(Mutant::IdleChurn)
        && let Some(condition) = after.conditions.first_mut()
    {
        condition.message = format!("looked at {}", Timestamp::now());
    }
    page.put(cluster, after.layout_writer.clone());
    if after == before {
        return Ok(());
    }
    if after.phase != before.phase {
        info!(
            cluster = %cluster.name_any(),
            namespace = %cluster.namespace().unwrap_or_default(),
            phase = %after.phase,
            "GarageCluster changed its phase"
        );
    }
    write_status(&context.client, cluster, &after).await?;
    drop(page);
    tell_foreign_writer(context, cluster, &after).await;
    Ok(())
}

/// One event for each new evidence.
async fn tell_foreign_writer(context: &Context, cluster: &GarageCluster, status: &GarageClusterStatus) {
    const REASON: &str = "ForeignLayoutWriter";
    match status.layout_writer.as_ref().and_then(|writer| writer.foreign.as_ref()) {
        Some(foreign) => context.events.warn_once(cluster, REASON, "WatchLayout", &foreign.message).await,
        None => context.events.forget(cluster, REASON),
    }
}

fn next(
    cluster: &GarageCluster,
    before: &GarageClusterStatus,
    picture: &Picture,
    writer: Option<LayoutWriterStatus>,
    now: &Time,
) -> GarageClusterStatus {
    let (facts, generation) = (&picture.facts, cluster.metadata.generation);
    let selector: Vec<String> =
        storage_selector(&cluster.name_any()).iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut verdicts = conditions(facts);
    verdicts.extend(writer.as_ref().and_then(foreign_writer::verdict));
    if mutant::is(Mutant::ConditionNeverCleared)
        && find(&before.conditions, AWAITING_LAYOUT_WRITER).is_some_and(|before| before.status == "True")
    {
        verdicts.retain(|verdict| verdict.kind != AWAITING_LAYOUT_WRITER);
        verdicts.push(Verdict::new(AWAITING_LAYOUT_WRITER, true, "NodesWithoutRole", ""));
    }
    let mut after = GarageClusterStatus {
        phase: phase(facts).to_owned(),
        observed_generation: generation,
        replicas: number(picture.storage),
        ready_replicas: number(facts.ready),
        storage_ready_replicas: number(picture.storage_ready),
        selector: selector.join(","),
        storage_rollout: picture.rollout.recorded.clone(),
        storage_drain: picture.storage_drain.clone(),
        pending_gateway_tombstones: picture.tombstones.clone(),
        replication_factor: Some(factor(cluster)),
        layout_writer: writer,
        conditions: merge(&before.conditions, &verdicts, generation, now),
        ..before.clone()
    };
    if let Some(garage) = &picture.garage {
        after.layout_version = Some(garage.layout.version);
        after.health = Some(health(&garage.health));
    }
    after
}

/// The record after this pass: that of the ledger, if it was made from a newer spec than this pass looked at.
fn record(page: &Page, cluster: &GarageCluster, picture: &Picture) -> Option<LayoutWriterStatus> {
    if page.is_ahead_of(cluster) { page.record.clone() } else { layout_writer(page.record.as_ref(), picture) }
}

/// The role in force and what is known of other writers, told only while the spec declares a role.
fn layout_writer(before: Option<&LayoutWriterStatus>, picture: &Picture) -> Option<LayoutWriterStatus> {
    let facts = &picture.facts;
    facts.declared?;
    let role = if facts.follows && !mutant::is(Mutant::StatusRoleWrong) {
        LayoutSiteRole::Follower
    } else {
        LayoutSiteRole::Writer
    };
    // While nodes lose their layout on purpose, no version means anything.
    let live = picture.garage.as_ref().filter(|_| facts.migrating.is_none());
    let live = live.map(|garage| Content::of(&garage.layout));
    Some(foreign_writer::observe(before, role, live.as_ref(), &picture.elsewhere))
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn health(health: &ClusterHealth) -> HealthStatus {
    HealthStatus {
        status: health.status.clone(),
        connected_nodes: health.connected_nodes,
        known_nodes: health.known_nodes,
        storage_nodes: health.storage_nodes,
        storage_nodes_up: health.storage_nodes_up,
        partitions: health.partitions,
        partitions_quorum: health.partitions_quorum,
        partitions_all_ok: health.partitions_all_ok,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::ledger::Page;
    use super::super::observe::Picture;
    use super::{layout_writer, next, record};
    use crate::api::layout::LayoutSiteRole::{self, Follower, Writer};
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec, GarageClusterStatus};
    use crate::decision::cluster_state::ClusterFacts;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;
    use rstest::rstest;

    fn status(
        declared: Option<LayoutSiteRole>,
        before: &GarageClusterStatus,
        second: i64,
    ) -> GarageClusterStatus {
        let cluster = GarageCluster::new("garage", GarageClusterSpec::default());
        let facts = ClusterFacts { declared, follows: declared == Some(Follower), ..ClusterFacts::default() };
        let picture = Picture { facts, ..Picture::default() };
        let writer = layout_writer(before.layout_writer.as_ref(), &picture);
        next(&cluster, before, &picture, writer, &Time(Timestamp::from_second(second).unwrap()))
    }

    #[rstest]
    #[case(Some(Writer), Some(Writer))]
    #[case(Some(Follower), Some(Follower))]
    #[case(None, None)]
    fn the_role_in_force_is_told_only_where_one_is_declared(
        #[case] declared: Option<LayoutSiteRole>,
        #[case] told: Option<LayoutSiteRole>,
    ) {
        let status = status(declared, &GarageClusterStatus::default(), 1);
        assert_eq!(status.layout_writer.map(|writer| writer.role), told);
    }

    #[rstest]
    #[case::it_began_before_the_promotion(2, Writer)]
    #[case::it_saw_the_promotion_taken_back(4, Follower)]
    fn a_pass_takes_back_only_what_was_recorded_of_an_older_spec(
        #[case] looked_at: i64,
        #[case] recorded: LayoutSiteRole,
    ) {
        let of = |generation: i64| {
            let mut cluster = GarageCluster::new("garage", GarageClusterSpec::default());
            cluster.metadata.generation = Some(generation);
            cluster
        };
        let sees = |role: LayoutSiteRole| {
            let facts =
                ClusterFacts { declared: Some(role), follows: role == Follower, ..ClusterFacts::default() };
            Picture { facts, ..Picture::default() }
        };
        let mut page = Page::default();
        page.put(&of(3), record(&Page::default(), &of(3), &sees(Writer)));

        let after = record(&page, &of(looked_at), &sees(Follower));

        assert_eq!(after.map(|writer| writer.role), Some(recorded));
    }

    #[test]
    fn the_same_picture_leaves_the_status_as_it_is() {
        let first = status(Some(Follower), &GarageClusterStatus::default(), 1);
        assert_eq!(status(Some(Follower), &first, 99), first);
    }

    #[test]
    fn a_role_that_is_no_longer_declared_leaves_no_trace() {
        let declared = status(Some(Follower), &GarageClusterStatus::default(), 1);
        assert_eq!(status(None, &declared, 2), status(None, &GarageClusterStatus::default(), 1));
    }
}
