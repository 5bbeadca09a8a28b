//! The reconciler of `GarageNodes`.

mod awaiting;
mod deletion;
mod garage;
mod identity;
mod orphan;
mod proof;
mod removal;
mod status;
mod workload;

use std::sync::Arc;
use std::time::Duration;

use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};

use self::status::Observation;
use super::apply::{add_finalizer, fresh};
use super::context::Context;
use super::error::ReconcileError;
use super::roles;
use crate::api::layout::LayoutSiteRole;
use crate::api::naming::NODE_FINALIZER;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{is_managed, leaves};
use crate::decision::node_rules;
use crate::decision::node_state::{Obstacle, is_settled};
use crate::guard::LayoutAuthority;
use crate::mutant::{self, Mutant};

/// One reconcile of a `GarageNode`.
pub async fn reconcile(node: Arc<GarageNode>, context: Arc<Context>) -> Result<Action, ReconcileError> {
    let Some(mut node) = fresh(&context.client, node.as_ref()).await? else {
        context.paces.forget(&pace_key(&node));
        return Ok(Action::await_change());
    };
    let cluster = cluster_of(&context, &node).await?;
    if cluster.is_none() {
        orphan::forget_cluster(&context, &node);
    }
    if node.metadata.deletion_timestamp.is_some() {
        return deletion::finalize(&context, &node, cluster.as_ref()).await;
    }
    add_finalizer(&context.client, &node, NODE_FINALIZER).await?;
    let observation = match &cluster {
        Some(cluster) => observe(&context, cluster, &mut node).await?,
        None => Observation::obstructed(Obstacle::pending(
            "ClusterMissing",
            format!("GarageCluster {:?} does not exist in this namespace", node.spec.cluster_ref.name),
        )),
    };
    let settled = is_settled(&observation.facts);
    let follows = cluster.as_ref().is_some_and(|cluster| follows(&authority_of(&context, cluster)));
    awaiting::tell(&context, &node, &observation.facts, follows).await;
    status::write(&context, &node, cluster.as_ref(), observation).await?;
    Ok(next_look(&context, &node, settled))
}

/// The key of an object in [`super::pace::Paces`].
pub(super) fn pace_key(node: &GarageNode) -> String {
    format!("GarageNode/{}/{}", node.namespace().unwrap_or_default(), node.name_any())
}

fn next_look(context: &Context, node: &GarageNode, settled: bool) -> Action {
    let (key, cadence) = (pace_key(node), &context.settings.cadence);
    if mutant::is(Mutant::RetryStorm) {
        return Action::requeue(Duration::from_millis(20));
    }
    if settled {
        context.paces.settled(&key);
        return Action::requeue(context.paces.jittered(cadence.long, &key));
    }
    Action::requeue(cadence.while_pending(context.paces.pending_for(&key)))
}

async fn cluster_of(context: &Context, node: &GarageNode) -> Result<Option<GarageCluster>, ReconcileError> {
    let namespace = node.namespace().unwrap_or_default();
    let clusters: Api<GarageCluster> = Api::namespaced(context.client.clone(), &namespace);
    let name = &node.spec.cluster_ref.name;
    clusters
        .get_opt(name)
        .await
        .map_err(ReconcileError::kube(format!("read GarageCluster {namespace}/{name}")))
}

/// What this reconcile may do to the layout on behalf of the node's cluster and its layout owner.
fn authority_of(context: &Context, cluster: &GarageCluster) -> LayoutAuthority {
    context.guard.authority(roles::decide(cluster, &roles::neighbours(&context.clusters, cluster)))
}

fn follows(authority: &LayoutAuthority) -> bool {
    authority.decision().effective() == LayoutSiteRole::Follower
}

/// Observes the node and moves it on. What is recorded on the way is in `node` afterwards, too.
async fn observe(
    context: &Context,
    cluster: &GarageCluster,
    node: &mut GarageNode,
) -> Result<Observation, ReconcileError> {
    if cluster.metadata.deletion_timestamp.is_some() {
        let obstacle = Obstacle::pending("ClusterDeleting", "the GarageCluster is being deleted");
        return Ok(Observation::obstructed(obstacle));
    }
    if let Some(why) = node_rules::refusal(&node.spec).filter(|_| !leaves(cluster, node)) {
        return Ok(Observation::obstructed(Obstacle::failed("SpecRejected", why)));
    }
    if let Some(why) = node_rules::policy_refusal(cluster, node).filter(|_| !leaves(cluster, node)) {
        return Ok(Observation::obstructed(Obstacle::failed("LayoutPolicyAuto", why)));
    }
    let authority = authority_of(context, cluster);
    let follows = follows(&authority);
    let found = if is_managed(node) {
        workload::ensure(context, cluster, node, authority.decision()).await?;
        identity::discover(context, cluster, node, follows).await?
    } else {
        identity::declared(node)
    };
    let found = match found {
        Ok(found) => found,
        Err(obstacle) => return Ok(Observation::obstructed(obstacle)),
    };
    identity::record(context, node, &found).await?;
    if leaves(cluster, node) {
        return removal::advance(context, cluster, node).await;
    }
    garage::reconcile(context, cluster, node, found, &authority).await
}
