//! The status of a node: what a reconcile saw, written only when it differs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use tracing::info;

use super::super::apply::write_status;
use super::super::context::Context;
use super::super::endpoints::service_endpoint;
use super::super::error::ReconcileError;
use crate::api::condition::merge;
use crate::api::v1beta1::{GarageNode, GarageNodeStatus};
use crate::api::v1beta2::GarageCluster;
use crate::decision::node_state::{Drain, NodeFacts, Obstacle, conditions, phase};
use crate::garage::{ClusterLayout, ClusterStatus};

/// What a reconcile saw of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Observation {
    /// What the phase and the conditions follow from.
    pub(super) facts: NodeFacts,
    /// What Garage said; `None` when it was not asked.
    pub(super) seen: Option<Seen>,
}

/// What Garage said about a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    layout_version: i64,
    zone: Option<String>,
}

impl Observation {
    /// Garage was not asked, or did not answer.
    pub(super) fn obstructed(obstacle: Obstacle) -> Self {
        Self { facts: NodeFacts { obstacle: Some(obstacle), ..NodeFacts::default() }, seen: None }
    }

    /// The node is on its way out, and Garage was not asked or did not answer.
    pub(super) fn draining(drain: Drain) -> Self {
        Self { facts: NodeFacts { drain: Some(drain), ..NodeFacts::default() }, seen: None }
    }

    /// What Garage says about the node `id`.
    pub(super) fn seen(
        id: &str,
        status: &ClusterStatus,
        layout: &ClusterLayout,
        waiting: Option<String>,
    ) -> Self {
        let role = layout.role(id);
        let facts = NodeFacts {
            connected: status.is_up(id),
            in_layout: role.is_some(),
            waiting,
            ..NodeFacts::default()
        };
        let seen = Seen { layout_version: layout.version, zone: role.map(|role| role.zone.clone()) };
        Self { facts, seen: Some(seen) }
    }
}

/// Writes the status if it differs from the one at hand.
pub(super) async fn write(
    context: &Context,
    node: &GarageNode,
    cluster: Option<&GarageCluster>,
    observation: Observation,
) -> Result<(), ReconcileError> {
    let before = node.status.clone().unwrap_or_default();
    let mut after = next(&before, node.metadata.generation, &observation, &Time(Timestamp::now()));
    if let Some(cluster) = cluster {
        after.cluster_admin_endpoint = Some(service_endpoint(cluster, &context.settings.cluster_domain));
        after.cluster_admin_token_ref.clone_from(&cluster.spec.admin.admin_token_secret_ref);
        after.site_role = cluster.spec.site_role();
    }
    if after == before {
        return Ok(());
    }
    if after.phase != before.phase {
        info!(
            node = node.metadata.name.as_deref().unwrap_or_default(),
            namespace = node.metadata.namespace.as_deref().unwrap_or_default(),
            phase = %after.phase,
            "GarageNode changed its phase"
        );
    }
    write_status(&context.client, node, &after).await
}

/// The status that follows from an observation. What Garage was not asked about stays as it was.
fn next(
    before: &GarageNodeStatus,
    generation: Option<i64>,
    observation: &Observation,
    now: &Time,
) -> GarageNodeStatus {
    let facts = &observation.facts;
    let mut after = before.clone();
    phase(facts).clone_into(&mut after.phase);
    after.observed_generation = generation;
    if let Some(seen) = &observation.seen {
        after.connected = facts.connected;
        after.in_layout = facts.in_layout;
        after.layout_version = Some(seen.layout_version);
        after.zone.clone_from(&seen.zone);
    } else {
        after.connected = false;
    }
    after.conditions = merge(&before.conditions, &conditions(facts), generation, now);
    after
}

#[cfg(test)]
mod tests {
    use super::{Observation, next};
    use crate::api::v1beta1::GarageNodeStatus;
    use crate::decision::node_state::Obstacle;
    use crate::garage::{ClusterLayout, ClusterStatus, LayoutRole};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn seen() -> Observation {
        let role = LayoutRole { id: "aa".into(), zone: "east".into(), ..LayoutRole::default() };
        let layout = ClusterLayout { version: 3, roles: vec![role], ..ClusterLayout::default() };
        Observation::seen("aa", &ClusterStatus::default(), &layout, None)
    }

    #[test]
    fn the_same_observation_leaves_the_status_as_it_is() {
        let first = next(&GarageNodeStatus::default(), Some(1), &seen(), &at(1));
        assert!(first.in_layout);
        assert_eq!(next(&first, Some(1), &seen(), &at(99)), first);
    }

    #[test]
    fn what_was_not_asked_about_stays_recorded() {
        let first = next(&GarageNodeStatus::default(), Some(1), &seen(), &at(1));
        let obstructed = Observation::obstructed(Obstacle::pending("PodNotReady", ""));
        let second = next(&first, Some(1), &obstructed, &at(2));
        assert!(second.in_layout && !second.connected);
        assert_eq!(second.layout_version, Some(3));
    }
}
