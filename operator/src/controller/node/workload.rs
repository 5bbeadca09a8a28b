//! The workload of a managed node.

use super::super::apply;
use super::super::context::Context;
use super::super::error::ReconcileError;
use crate::api::layout::LayoutSiteRole;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::factor_migration::{SCALING_DOWN, in_flight};
use crate::guard::RoleDecision;
use crate::mutant::{self, Mutant};
use crate::resources::config::config_map;
use crate::resources::stateful_set::{Defaults, stateful_set};

/// Makes the ConfigMap that the pod mounts, then the StatefulSet.
pub(super) async fn ensure(
    context: &Context,
    cluster: &GarageCluster,
    node: &GarageNode,
    decision: &RoleDecision,
) -> Result<(), ReconcileError> {
    apply::ensure(&context.client, &config_map(cluster)).await?;
    // A migration stops all nodes; a site that has become a Follower since keeps them.
    let scaling_down = in_flight(cluster).is_some_and(|migration| migration.phase == SCALING_DOWN);
    let scales = decision.effective() == LayoutSiteRole::Writer || mutant::is(Mutant::PurgeOnFollower);
    let going = node.metadata.deletion_timestamp.is_some();
    let defaults = Defaults {
        image: &context.settings.default_garage_image,
        purge_image: &context.settings.layout_purge_image,
        stopped: (scaling_down && scales) || (going && mutant::is(Mutant::WorkloadReleasedEarly)),
    };
    let wanted = stateful_set(cluster, node, defaults);
    apply::ensure(&context.client, &wanted).await?;
    Ok(())
}
