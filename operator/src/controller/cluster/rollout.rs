//! Replaces pods whose workload has changed, one at a time, and clears away what none of them uses any more.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use tracing::info;

use super::super::apply::delete;
use super::super::context::Context;
use super::super::error::ReconcileError;
use super::super::scope::is_ready;
use super::observe::GarageView;
use crate::api::naming;
use crate::api::observed::StorageRolloutStatus;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::identity;
use crate::decision::rollout::{NodePod, Rollout, next};
use crate::resources::config;

/// Label of a pod: the revision of the StatefulSet that made it.
const REVISION: &str = "controller-revision-hash";

/// What a pass decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// What the status says; `None` when nothing is being replaced.
    pub(super) recorded: Option<StorageRolloutStatus>,
    /// The pod to delete once that is written.
    pub(super) replace: Option<Pod>,
    /// A pod has to be replaced sooner or later.
    pub(super) pending: bool,
}

/// Decides what to replace.
pub(super) async fn plan(
    context: &Context,
    cluster: &GarageCluster,
    nodes: &[&GarageNode],
    pods: &BTreeMap<String, Pod>,
    garage: Option<&GarageView>,
) -> Result<Step, ReconcileError> {
    let revisions = revisions(context, cluster).await?;
    let states: Vec<NodePod> = nodes
        .iter()
        .filter_map(|node| Some(state(node, pods.get(&node.name_any())?, &revisions, garage)))
        .collect();
    let recorded = cluster.status.as_ref().and_then(|status| status.storage_rollout.clone());
    let step = next(&states, recorded.as_ref().map(|rollout| rollout.node.as_str()));
    Ok(match step {
        Rollout::Converged => Step::default(),
        Rollout::Held(_) => Step { recorded, replace: None, pending: true },
        Rollout::Waiting(node) => {
            let known = recorded.filter(|rollout| rollout.node == node);
            let fresh = || StorageRolloutStatus { node, started_at: Some(Time(Timestamp::now())) };
            Step { recorded: Some(known.unwrap_or_else(fresh)), replace: None, pending: true }
        }
        Rollout::Replace(node) => Step { recorded, replace: pods.get(&node).cloned(), pending: true },
    })
}

/// Does what was decided, after the status has told it.
pub(super) async fn carry_out(
    context: &Context,
    cluster: &GarageCluster,
    step: &Step,
    pods: &BTreeMap<String, Pod>,
) -> Result<(), ReconcileError> {
    if let Some(pod) = &step.replace {
        info!(pod = %pod.name_any(), namespace = %pod.namespace().unwrap_or_default(), "replacing an outdated pod");
        return delete(&context.client, pod).await;
    }
    if step.pending { Ok(()) } else { prune(context, cluster, pods).await }
}

fn state(
    node: &GarageNode,
    pod: &Pod,
    revisions: &BTreeMap<String, String>,
    garage: Option<&GarageView>,
) -> NodePod {
    let wanted = revisions.get(&node.name_any());
    let up = |view: &GarageView| {
        view.layout.version == 0 || identity(node).is_some_and(|id| view.status.is_up(&id))
    };
    NodePod {
        node: node.name_any(),
        outdated: wanted.is_some() && pod.labels().get(REVISION) != wanted,
        ready: is_ready(pod),
        up: garage.is_some_and(up),
    }
}

/// The revision that the pod of each node should have.
async fn revisions(
    context: &Context,
    cluster: &GarageCluster,
) -> Result<BTreeMap<String, String>, ReconcileError> {
    let namespace = cluster.namespace().unwrap_or_default();
    let sets: Api<StatefulSet> = Api::namespaced(context.client.clone(), &namespace);
    let list = sets
        .list(&of_cluster(cluster))
        .await
        .map_err(ReconcileError::kube(format!("list StatefulSets in {namespace}")))?;
    let current = |set: &StatefulSet| {
        let status = set.status.as_ref()?;
        let observed = status.observed_generation >= set.metadata.generation;
        status.update_revision.clone().filter(|_| observed)
    };
    Ok(list.items.iter().filter_map(|set| Some((set.name_any(), current(set)?))).collect())
}

fn of_cluster(cluster: &GarageCluster) -> ListParams {
    ListParams::default().labels(&format!("{}={}", naming::CLUSTER_LABEL, cluster.name_any()))
}

/// Deletes configurations that neither the spec nor any pod names.
async fn prune(
    context: &Context,
    cluster: &GarageCluster,
    pods: &BTreeMap<String, Pod>,
) -> Result<(), ReconcileError> {
    let namespace = cluster.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    let list = maps
        .list(&of_cluster(cluster))
        .await
        .map_err(ReconcileError::kube(format!("list ConfigMaps in {namespace}")))?;
    let mut used: BTreeSet<String> = pods.values().flat_map(mounted).collect();
    used.insert(config::name(cluster));
    for map in list.items.iter().filter(|map| !used.contains(&map.name_any())) {
        info!(config_map = %map.name_any(), %namespace, "deleting a configuration that nothing uses");
        delete(&context.client, map).await?;
    }
    Ok(())
}

fn mounted(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes.iter().filter_map(|volume| Some(volume.config_map.as_ref()?.name.clone())).collect()
}
