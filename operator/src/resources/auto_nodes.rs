//! The `GarageNodes` of an Auto cluster (operator contract §3.1).

use kube::ResourceExt;

use super::labels::{meta, of_cluster};
use crate::api::federation::ClusterRef;
use crate::api::layout::LayoutPolicy;
use crate::api::naming;
use crate::api::quantity::{ByteQuantity, InvalidQuantity};
use crate::api::v1beta1::{GarageNode, GarageNodeSpec};
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::auto_capacity;

/// The zone of the nodes of a cluster.
pub fn zone(cluster: &GarageCluster) -> String {
    cluster.spec.zone.clone().unwrap_or_else(|| cluster.name_any())
}

/// How many storage nodes the operator makes: none under Manual.
pub fn storage_replicas(cluster: &GarageCluster) -> usize {
    match (&cluster.spec.storage, cluster.spec.storage_policy()) {
        (Some(tier), LayoutPolicy::Auto) => usize::try_from(tier.replicas).unwrap_or(0),
        _ => 0,
    }
}

/// The storage nodes that the operator makes for this cluster.
pub fn storage(cluster: &GarageCluster) -> Result<Vec<GarageNode>, InvalidQuantity> {
    let Some(tier) = &cluster.spec.storage else { return Ok(Vec::new()) };
    let capacity = auto_capacity(tier)?;
    let node = |ordinal| {
        let spec = GarageNodeSpec {
            cluster_ref: ClusterRef { name: cluster.name_any() },
            zone: zone(cluster),
            capacity: Some(ByteQuantity::new(capacity.to_string())),
            tags: tier.tags.clone(),
            ..GarageNodeSpec::default()
        };
        let mut node = GarageNode::new(&naming::storage_node(&cluster.name_any(), ordinal), spec);
        node.metadata = meta(cluster, node.name_any());
        let mut labels = of_cluster(&cluster.name_any());
        labels.insert(naming::MANAGED_BY_LABEL.into(), naming::AUTO_NODE_MANAGED_BY.into());
        node.metadata.labels = Some(labels);
        node
    };
    Ok((0..storage_replicas(cluster)).map(node).collect())
}

/// Whether the operator made this node for its cluster.
pub fn is_auto(node: &GarageNode) -> bool {
    node.labels().get(naming::MANAGED_BY_LABEL).is_some_and(|value| value == naming::AUTO_NODE_MANAGED_BY)
}

/// Auto nodes of this cluster beyond the wanted number, the highest ordinal first.
pub fn surplus<'a>(cluster: &GarageCluster, nodes: &'a [GarageNode]) -> Vec<&'a GarageNode> {
    let wanted = storage_replicas(cluster);
    let name = cluster.name_any();
    let mut surplus: Vec<(usize, &GarageNode)> = nodes
        .iter()
        .filter(|node| is_auto(node))
        .filter_map(|node| Some((naming::storage_ordinal(&name, &node.name_any())?, node)))
        .filter(|(ordinal, _)| *ordinal >= wanted)
        .collect();
    surplus.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
    surplus.into_iter().map(|(_, node)| node).collect()
}

#[cfg(test)]
mod tests {
    use super::{is_auto, storage, surplus};
    use crate::api::layout::LayoutPolicy;
    use crate::api::storage::StorageTier;
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
    use kube::ResourceExt;

    fn cluster(replicas: i32) -> GarageCluster {
        let storage = Some(StorageTier { replicas, ..StorageTier::default() });
        GarageCluster::new("garage", GarageClusterSpec { storage, ..GarageClusterSpec::default() })
    }

    #[test]
    fn an_auto_cluster_has_one_node_per_replica() {
        let nodes = storage(&cluster(2)).unwrap();
        let names: Vec<_> = nodes.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["garage-storage-0", "garage-storage-1"]);
        assert!(nodes.iter().all(is_auto));
    }

    #[test]
    fn a_manual_cluster_has_none() {
        let mut cluster = cluster(2);
        cluster.spec.layout_policy = LayoutPolicy::Manual;
        assert!(storage(&cluster).unwrap().is_empty());
    }

    #[test]
    fn a_smaller_cluster_gives_up_its_highest_ordinals() {
        let nodes = storage(&cluster(12)).unwrap();
        let names: Vec<_> = surplus(&cluster(9), &nodes).iter().map(|node| node.name_any()).collect();
        assert_eq!(names, ["garage-storage-11", "garage-storage-10", "garage-storage-9"]);
    }
}
