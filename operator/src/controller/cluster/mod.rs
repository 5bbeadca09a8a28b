//! The reconciler of `GarageClusters`.

mod children;
mod deletion;
mod federation;
mod mesh;
mod observe;
mod rpc_secret;
mod status;

use std::sync::Arc;

use kube::ResourceExt;
use kube::runtime::controller::Action;

use super::apply::add_finalizer;
use super::context::Context;
use super::error::ReconcileError;
use super::roles;
use crate::api::naming::CLUSTER_FINALIZER;
use crate::api::v1beta2::GarageCluster;
use crate::decision::cluster_state::is_settled;

/// One reconcile of a `GarageCluster`.
pub async fn reconcile(cluster: Arc<GarageCluster>, context: Arc<Context>) -> Result<Action, ReconcileError> {
    context.clusters.wait_until_ready().await.map_err(|_| ReconcileError::WatchGone("GarageClusters"))?;
    if cluster.metadata.deletion_timestamp.is_some() {
        return deletion::finalize(&context, &cluster).await;
    }
    add_finalizer(&context.client, cluster.as_ref(), CLUSTER_FINALIZER).await?;
    let decision = roles::decide(&cluster, &roles::neighbours(&context.clusters, &namespace(&cluster)));
    let shown = decision.declared().map(|_| decision.effective());
    context.metrics.site_role(&decision.cluster().to_string(), shown);
    let fault = children::ensure(&context, &cluster).await?;
    let picture = observe::observe(&context, &cluster, &decision, fault).await?;
    let settled = is_settled(&picture.facts);
    status::write(&context, &cluster, &picture).await?;
    Ok(next_look(&context, &cluster, settled))
}

fn namespace(cluster: &GarageCluster) -> String {
    cluster.namespace().unwrap_or_default()
}

/// The key of an object in [`super::pace::Paces`].
pub(super) fn pace_key(cluster: &GarageCluster) -> String {
    format!("GarageCluster/{}/{}", namespace(cluster), cluster.name_any())
}

fn next_look(context: &Context, cluster: &GarageCluster, settled: bool) -> Action {
    let (key, cadence) = (pace_key(cluster), &context.settings.cadence);
    if settled {
        context.paces.settled(&key);
        return Action::requeue(context.paces.jittered(cadence.long, &key));
    }
    Action::requeue(cadence.while_pending(context.paces.pending_for(&key)))
}
