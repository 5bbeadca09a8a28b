//! The end of a node: its role leaves the layout first, then its finalizer goes (operator contract §5.6).

use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::info;

use super::super::apply::remove_finalizer;
use super::super::context::Context;
use super::super::error::ReconcileError;
use super::status::{self, Observation};
use super::{authority_of, next_look, orphan, pace_key, removal, workload};
use crate::api::federation::DeletionPolicy;
use crate::api::naming::NODE_FINALIZER;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::node_state::Drain;
use crate::mutant::{self, Mutant};

/// Lets the node go as soon as its role is gone, or nobody cares about its role any more. Until then the finalizer
/// holds the object and with it the workload.
pub(super) async fn finalize(
    context: &Context,
    node: &GarageNode,
    cluster: Option<&GarageCluster>,
) -> Result<Action, ReconcileError> {
    if !node.finalizers().iter().any(|finalizer| finalizer == NODE_FINALIZER) {
        context.paces.forget(&pace_key(node));
        return Ok(Action::await_change());
    }
    let mut observation = match cluster {
        Some(cluster) if is_destroyed(cluster) && !mutant::is(Mutant::DestroyWrites) => {
            Observation::draining(Drain::Prepared)
        }
        Some(cluster) => removal::advance(context, cluster, node).await?,
        None => orphan::advance(context, node).await?,
    };
    if let Some(cluster) = cluster.filter(|_| mutant::is(Mutant::WorkloadReleasedEarly)) {
        workload::ensure(context, cluster, node, authority_of(context, cluster).decision()).await?;
    }
    let early = mutant::is(Mutant::FinalizerReleasedEarly)
        && matches!(observation.facts.drain, Some(Drain::Blocked(_)));
    if early || observation.facts.drain.as_ref().is_some_and(Drain::is_over) {
        return release(context, node).await;
    }
    observation.facts.deleting = true;
    status::write(context, node, cluster, observation).await?;
    Ok(next_look(context, node, false))
}

/// Under Destroy a cluster goes without any layout write and without any wait.
fn is_destroyed(cluster: &GarageCluster) -> bool {
    cluster.metadata.deletion_timestamp.is_some()
        && cluster.spec.effective_deletion_policy() == DeletionPolicy::Destroy
}

async fn release(context: &Context, node: &GarageNode) -> Result<Action, ReconcileError> {
    info!(node = %node.name_any(), namespace = %node.namespace().unwrap_or_default(), "GarageNode released");
    remove_finalizer(&context.client, node, NODE_FINALIZER).await?;
    context.paces.forget(&pace_key(node));
    Ok(Action::await_change())
}
