//! Labels and owner references (operator contract §3.1).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};

use crate::api::naming;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;

/// Labels.
pub type Labels = BTreeMap<String, String>;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Labels of an object that belongs to a cluster.
pub fn of_cluster(cluster: &str) -> Labels {
    labels(&[
        ("app.kubernetes.io/name", "garage"),
        ("app.kubernetes.io/instance", cluster),
        (naming::MANAGED_BY_LABEL, naming::MANAGED_BY),
        (naming::CLUSTER_LABEL, cluster),
    ])
}

/// Labels of the pod of a node.
pub fn of_pod(cluster: &str, node: &GarageNode) -> Labels {
    let name = node.name_any();
    let mut labels = of_cluster(cluster);
    labels.insert("app.kubernetes.io/component".into(), "node".into());
    labels.insert(naming::NODE_LABEL.into(), name);
    labels.insert(naming::TIER_LABEL.into(), tier(node).into());
    if !node.spec.gateway {
        labels.insert(naming::STORAGE_GROUP_LABEL.into(), "default".into());
    }
    labels
}

/// The immutable selector of the StatefulSet of a node.
pub fn node_selector(node: &str) -> Labels {
    labels(&[(naming::MANAGED_BY_LABEL, naming::MANAGED_BY), (naming::NODE_LABEL, node)])
}

/// What the storage Services of a cluster select.
pub fn storage_selector(cluster: &str) -> Labels {
    labels(&[
        (naming::CLUSTER_LABEL, cluster),
        (naming::TIER_LABEL, "storage"),
        (naming::STORAGE_GROUP_LABEL, "default"),
    ])
}

/// What the Service of the gateway tier selects.
pub fn gateway_selector(cluster: &str) -> Labels {
    labels(&[(naming::CLUSTER_LABEL, cluster), (naming::TIER_LABEL, "gateway")])
}

/// `storage` or `gateway`.
pub fn tier(node: &GarageNode) -> &'static str {
    if node.spec.gateway { "gateway" } else { "storage" }
}

/// Metadata of an object that belongs to a cluster and goes with it.
pub fn meta(cluster: &GarageCluster, name: impl Into<String>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: cluster.namespace(),
        labels: Some(of_cluster(&cluster.name_any())),
        owner_references: owner(cluster),
        ..ObjectMeta::default()
    }
}

/// The controller reference to an object; `None` while it has no UID.
pub fn owner<K: Resource<DynamicType = ()>>(object: &K) -> Option<Vec<OwnerReference>> {
    object.controller_owner_ref(&()).map(|reference| vec![reference])
}
