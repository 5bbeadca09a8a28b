//! The reconciler of `GarageClusters`.

mod admin_token;
mod children;
mod deletion;
mod federation;
mod mesh;
mod migration;
mod observe;
mod operations;
mod rollout;
mod rpc_secret;
mod status;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::json;

use super::apply::{add_finalizer, fresh, merge};
use super::context::Context;
use super::error::ReconcileError;
use super::roles;
use crate::api::layout::LayoutSiteRole;
use crate::api::naming::CLUSTER_FINALIZER;
use crate::api::v1beta2::GarageCluster;
use crate::decision::cluster_state::is_settled;
use crate::mutant::{self, Mutant};

/// One reconcile of a `GarageCluster`.
pub async fn reconcile(cluster: Arc<GarageCluster>, context: Arc<Context>) -> Result<Action, ReconcileError> {
    let Some(mut cluster) = fresh(&context.client, cluster.as_ref()).await? else {
        context.paces.forget(&pace_key(&cluster));
        // Its finalizer may have been taken away by hand.
        let gone = roles::key(&cluster);
        context.metrics.site_role(&gone.to_string(), None);
        return Ok(Action::await_change());
    };
    if cluster.metadata.deletion_timestamp.is_some() {
        return deletion::finalize(&context, &cluster).await;
    }
    add_finalizer(&context.client, &cluster, CLUSTER_FINALIZER).await?;
    let decision = roles::decide(&cluster, &roles::neighbours(&context.clusters, &cluster));
    let shown = decision
        .declared()
        .map(|_| if mutant::is(Mutant::GaugeWrong) { LayoutSiteRole::Writer } else { decision.effective() });
    context.metrics.site_role(&decision.cluster().to_string(), shown);
    let authority = context.guard.authority(decision);
    if mutant::is(Mutant::RoleDefaulted) && cluster.spec.site_role().is_none() {
        let role = json!({ "spec": { "layoutManagement": { "siteRole": "Writer" } } });
        merge(&context.client, &cluster, &role).await?;
    }
    operations::handle(&context, &mut cluster, &authority).await?;
    migration::keep(&context, &mut cluster, &authority).await?;
    let fault = match children::ensure(&context, &cluster).await {
        Ok(fault) => fault,
        Err(error) => Some(error.objection().ok_or(error)?),
    };
    let picture = observe::observe(&context, &cluster, authority.decision(), fault).await?;
    let mut settled = is_settled(&picture.facts);
    status::write(&context, &cluster, &picture).await?;
    if picture.facts.migrating.is_none() {
        rollout::carry_out(&context, &cluster, &picture.rollout, &picture.pods).await?;
        settled &= upkeep::keep(&context, &cluster, &picture, &authority).await?;
    }
    settled &= admin_token::keep(&context, &cluster, &picture).await?;
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
    if mutant::is(Mutant::RetryStorm) {
        return Action::requeue(Duration::from_millis(20));
    }
    if settled {
        context.paces.settled(&key);
        return Action::requeue(context.paces.jittered(cadence.long, &key));
    }
    Action::requeue(cadence.while_pending(context.paces.pending_for(&key)))
}
