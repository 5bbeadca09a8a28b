//! The end of a cluster (operator contract §5.5).

use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::info;

use super::super::apply::{delete, remove_finalizer};
use super::super::context::Context;
use super::super::error::ReconcileError;
use super::super::{roles, scope};
use super::{admin_token, next_look, pace_key};
use crate::api::naming::CLUSTER_FINALIZER;
use crate::api::v1beta2::GarageCluster;

/// Deletes the nodes, waits until they are gone, then lets the cluster go.
///
/// Under Destroy the nodes go at once: no layout write, no wait for a role. Under Drain each node waits until its
/// role is gone. Services and configuration stay until the last node is gone; then the garbage collector takes them.
pub(super) async fn finalize(context: &Context, cluster: &GarageCluster) -> Result<Action, ReconcileError> {
    if cluster.finalizers().iter().any(|finalizer| finalizer == CLUSTER_FINALIZER) {
        admin_token::revoke(context, cluster).await?;
        let nodes = scope::nodes(context, cluster).await?;
        for node in nodes.iter().filter(|node| node.metadata.deletion_timestamp.is_none()) {
            delete(&context.client, node).await?;
        }
        if !nodes.is_empty() {
            return Ok(next_look(context, cluster, false));
        }
        info!(
            cluster = %cluster.name_any(),
            namespace = %cluster.namespace().unwrap_or_default(),
            "GarageCluster released: all its nodes are gone"
        );
        remove_finalizer(&context.client, cluster, CLUSTER_FINALIZER).await?;
    }
    context.metrics.site_role(&roles::key(cluster).to_string(), None);
    context.ledger.forget(cluster);
    context.paces.forget(&pace_key(cluster));
    Ok(Action::await_change())
}
