//! What one cluster consists of right now: its nodes and their pods.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::context::Context;
use super::error::ReconcileError;
use crate::api::naming;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{is_leaving, is_managed};
use crate::resources::auto_nodes::{gateway_replicas, storage_replicas};

/// How many nodes are read at once.
const AT_ONCE: usize = 8;

/// The nodes of a cluster, as the API server has them now.
pub async fn nodes(context: &Context, cluster: &GarageCluster) -> Result<Vec<GarageNode>, ReconcileError> {
    let namespace = cluster.namespace().unwrap_or_default();
    let api: Api<GarageNode> = Api::namespaced(context.client.clone(), &namespace);
    if let Some(watched) = context.nodes.sparse(cluster) {
        return each(&api, cluster, watched).await;
    }
    let list = api
        .list(&ListParams::default())
        .await
        .map_err(ReconcileError::kube(format!("list GarageNodes in {namespace}")))?;
    let name = cluster.name_any();
    Ok(list.items.into_iter().filter(|node| node.spec.cluster_ref.name == name).collect())
}

/// Reads the nodes that the watch has told, and those that this operator makes and the watch may not have told yet.
async fn each(
    api: &Api<GarageNode>,
    cluster: &GarageCluster,
    watched: Vec<String>,
) -> Result<Vec<GarageNode>, ReconcileError> {
    let name = cluster.name_any();
    let storage = (0..storage_replicas(cluster)).map(|ordinal| naming::storage_node(&name, ordinal));
    let gateways = (0..gateway_replicas(cluster)).map(|ordinal| naming::gateway_node(&name, ordinal));
    let names: BTreeSet<String> = watched.into_iter().chain(storage).chain(gateways).collect();
    let read = |node: String| async move {
        api.get_opt(&node).await.map_err(ReconcileError::kube(format!("read GarageNode {node}")))
    };
    let found: Vec<Option<GarageNode>> =
        stream::iter(names).map(read).buffered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().filter(|node| node.spec.cluster_ref.name == name).collect())
}

/// The pods of a cluster by the name of their node.
pub async fn pods(client: &Client, cluster: &GarageCluster) -> Result<BTreeMap<String, Pod>, ReconcileError> {
    let namespace = cluster.namespace().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let selector = format!(
        "{}={},{}={}",
        naming::CLUSTER_LABEL,
        cluster.name_any(),
        naming::MANAGED_BY_LABEL,
        naming::MANAGED_BY
    );
    let list = api
        .list(&ListParams::default().labels(&selector))
        .await
        .map_err(ReconcileError::kube(format!("list Pods in {namespace}")))?;
    let named = |pod: Pod| Some((pod.labels().get(naming::NODE_LABEL)?.clone(), pod));
    Ok(list.items.into_iter().filter_map(named).collect())
}

/// Whether the pod says that it is ready and is not on its way out.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    pod.metadata.deletion_timestamp.is_none()
        && conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Why a pod is not ready, as far as it says so itself: ` (ImagePullBackOff: …)`, or nothing.
pub fn unready_because(pod: &Pod) -> String {
    let status = pod.status.as_ref();
    let of = |statuses: Option<&Vec<ContainerStatus>>| {
        let waiting = |status: &ContainerStatus| status.state.as_ref()?.waiting.clone();
        statuses.into_iter().flatten().find_map(waiting)
    };
    let waiting = of(status.and_then(|status| status.init_container_statuses.as_ref()))
        .or_else(|| of(status.and_then(|status| status.container_statuses.as_ref())));
    let Some(waiting) = waiting else { return String::new() };
    let told = [waiting.reason, waiting.message].into_iter().flatten().filter(|text| !text.is_empty());
    let told = told.collect::<Vec<_>>().join(": ");
    if told.is_empty() { told } else { format!(" ({told})") }
}

/// The address of a pod that is not on its way out.
pub fn address(pod: &Pod) -> Option<&str> {
    let address = pod.status.as_ref()?.pod_ip.as_deref()?;
    (pod.metadata.deletion_timestamp.is_none() && !address.is_empty()).then_some(address)
}

/// The addresses of the pods through which this cluster can change its layout, always in the same order. It is the first
/// one that does, as long as it is ready.
///
/// What one Garage node was told reaches the others a little later. Two changes through two nodes, or a change and its
/// verification, could each be made on a layout that the other one has already replaced.
pub fn steady<'a>(nodes: &[GarageNode], pods: &'a BTreeMap<String, Pod>) -> Vec<&'a str> {
    let stays = |name: &str| {
        nodes.iter().any(|node| {
            node.name_any() == name && is_managed(node) && !is_leaving(node) && !node.spec.gateway
        })
    };
    let ready = pods.iter().filter(|(name, pod)| stays(name) && is_ready(pod));
    ready.filter_map(|(_, pod)| address(pod)).collect()
}

#[cfg(test)]
mod tests {
    use super::unready_because;
    use k8s_openapi::api::core::v1::Pod;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::nothing_is_said(json!({}), "")]
    #[case::it_runs(json!({"containerStatuses": [{"name": "g", "state": {"running": {}}}]}), "")]
    #[case::a_reason(json!({"containerStatuses": [{"name": "g", "state": {"waiting": {"reason": "ContainerCreating"}}}]}), " (ContainerCreating)")]
    #[case::why(json!({"containerStatuses": [{"name": "g", "state": {"waiting": {"reason": "CreateContainerConfigError", "message": "couldn't find key x"}}}]}), " (CreateContainerConfigError: couldn't find key x)")]
    #[case::before_it_starts(json!({"initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "ImagePullBackOff"}}}], "containerStatuses": [{"name": "g", "state": {"waiting": {"reason": "PodInitializing"}}}]}), " (ImagePullBackOff)")]
    fn a_pod_that_is_not_ready_says_why(#[case] status: Value, #[case] told: &str) {
        let ready = |mut container: Value| {
            for (key, value) in [
                ("image", json!("i")),
                ("imageID", json!("")),
                ("ready", json!(false)),
                ("restartCount", json!(0)),
            ] {
                container[key] = value;
            }
            container
        };
        let mut status = status;
        for list in ["initContainerStatuses", "containerStatuses"] {
            if let Some(Value::Array(containers)) = status.get_mut(list) {
                *containers = containers.drain(..).map(ready).collect();
            }
        }
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap();
        assert_eq!(unready_because(&pod), told);
    }
}
