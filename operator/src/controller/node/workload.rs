//! The workload of a managed node.

use super::super::apply;
use super::super::context::Context;
use super::super::error::ReconcileError;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::resources::config::config_map;
use crate::resources::stateful_set::stateful_set;

/// Makes the ConfigMap that the pod mounts, then the StatefulSet.
pub(super) async fn ensure(
    context: &Context,
    cluster: &GarageCluster,
    node: &GarageNode,
) -> Result<(), ReconcileError> {
    apply::ensure(&context.client, &config_map(cluster)).await?;
    let wanted = stateful_set(cluster, node, &context.settings.default_garage_image);
    apply::ensure(&context.client, &wanted).await?;
    Ok(())
}
