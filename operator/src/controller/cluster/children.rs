//! The objects that a cluster consists of.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, ResourceExt};
use tracing::info;

use super::super::apply;
use super::super::context::Context;
use super::super::error::ReconcileError;
use super::super::scope;
use super::rpc_secret;
use crate::api::v1beta2::GarageCluster;
use crate::decision::spec_rules::objections;
use crate::resources::auto_nodes::{gateways, storage, surplus};
use crate::resources::disruption_budget::{self, Budget};
use crate::resources::{config, services};

/// Makes the objects of the cluster what its spec says. Answers what is wrong with the spec if it makes no sense.
pub(super) async fn ensure(
    context: &Context,
    cluster: &GarageCluster,
) -> Result<Option<String>, ReconcileError> {
    let client = &context.client;
    let objections = objections(&cluster.spec);
    let fault = (!objections.is_empty()).then(|| objections.join("; "));
    if cluster.spec.storage.is_some() || cluster.spec.gateway.is_some() {
        rpc_secret::ensure(client, cluster).await?;
        apply::ensure(client, &config::config_map(cluster)).await?;
    }
    if cluster.spec.gateway.is_some() {
        apply::ensure(client, &services::gateway(cluster)).await?;
    }
    for budget in disruption_budget::budgets(cluster) {
        protect(context, cluster, budget).await?;
    }
    for node in &gateways(cluster) {
        apply::ensure(client, node).await?;
    }
    if cluster.spec.storage.is_none() {
        retire_surplus(context, cluster).await?;
        return Ok(fault);
    }
    apply::ensure(client, &services::api(cluster)).await?;
    apply::ensure(client, &services::headless(cluster)).await?;
    let nodes = match storage(cluster) {
        Ok(nodes) => nodes,
        Err(invalid) => return Ok(Some(format!("spec.storage.data.size: {invalid}"))),
    };
    for node in &nodes {
        apply::ensure(client, node).await?;
    }
    retire_surplus(context, cluster).await?;
    Ok(fault)
}

/// Makes a budget, or takes away one that is not wanted any more. One that somebody else made is left alone.
async fn protect(context: &Context, cluster: &GarageCluster, budget: Budget) -> Result<(), ReconcileError> {
    let name = match budget {
        Budget::Wanted(budget) => return apply::ensure(&context.client, budget.as_ref()).await.map(drop),
        Budget::Unwanted(name) => name,
    };
    let namespace = cluster.namespace().unwrap_or_default();
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(context.client.clone(), &namespace);
    let found = budgets.get_opt(&name).await;
    let found = found.map_err(ReconcileError::kube(format!("read PodDisruptionBudget {name}")))?;
    let owned = |budget: &PodDisruptionBudget| {
        budget.owner_references().iter().any(|owner| Some(&owner.uid) == cluster.metadata.uid.as_ref())
    };
    match found.filter(owned) {
        Some(budget) => apply::delete(&context.client, &budget).await,
        None => Ok(()),
    }
}

/// Deletes the highest surplus node. The next one follows when it is gone: its finalizer waits until its role has
/// left the layout, whoever may remove it.
async fn retire_surplus(context: &Context, cluster: &GarageCluster) -> Result<(), ReconcileError> {
    let nodes = scope::nodes(context, cluster).await?;
    let Some(node) = surplus(cluster, &nodes).first().copied() else { return Ok(()) };
    if node.metadata.deletion_timestamp.is_none() {
        info!(node = %node.name_any(), cluster = %cluster.name_any(), "scale-down retires a GarageNode");
        apply::delete(&context.client, node).await?;
    }
    Ok(())
}
