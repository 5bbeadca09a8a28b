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
            capacity: Some(ByteQuantity::new(capacity.to_string())),
            tags: tier.tags.clone(),
            ..GarageNodeSpec::default()
        };
        auto_node(cluster, &naming::storage_node(&cluster.name_any(), ordinal), spec)
    };
    Ok((0..storage_replicas(cluster)).map(node).collect())
}

/// How many gateway nodes the operator makes: none under Manual.
pub fn gateway_replicas(cluster: &GarageCluster) -> usize {
    match (&cluster.spec.gateway, cluster.spec.layout_policy) {
        (Some(tier), LayoutPolicy::Auto) => usize::try_from(tier.replicas).unwrap_or(0),
        _ => 0,
    }
}

/// The gateway nodes that the operator makes for this cluster; they have no capacity.
pub fn gateways(cluster: &GarageCluster) -> Vec<GarageNode> {
    let node = |ordinal| {
        let spec = GarageNodeSpec { gateway: true, ..GarageNodeSpec::default() };
        auto_node(cluster, &naming::gateway_node(&cluster.name_any(), ordinal), spec)
    };
    (0..gateway_replicas(cluster)).map(node).collect()
}

fn auto_node(cluster: &GarageCluster, name: &str, spec: GarageNodeSpec) -> GarageNode {
    let cluster_ref = ClusterRef { name: cluster.name_any() };
    let mut node = GarageNode::new(name, GarageNodeSpec { cluster_ref, zone: zone(cluster), ..spec });
    node.metadata = meta(cluster, name);
    let mut labels = of_cluster(&cluster.name_any());
    labels.insert(naming::MANAGED_BY_LABEL.into(), naming::AUTO_NODE_MANAGED_BY.into());
    node.metadata.labels = Some(labels);
    node
}

/// Whether the operator made this node for its cluster.
pub fn is_auto(node: &GarageNode) -> bool {
    node.labels().get(naming::MANAGED_BY_LABEL).is_some_and(|value| value == naming::AUTO_NODE_MANAGED_BY)
}

/// Auto nodes of either tier beyond the wanted number, the highest ordinal first.
pub fn surplus<'a>(cluster: &GarageCluster, nodes: &'a [GarageNode]) -> Vec<&'a GarageNode> {
    let (storage, gateways) = (storage_replicas(cluster), gateway_replicas(cluster));
    let name = cluster.name_any();
    let excess = |node: &str| {
        let kept = naming::storage_ordinal(&name, node).map(|ordinal| (ordinal, storage));
        let (ordinal, wanted) =
            kept.or_else(|| naming::gateway_ordinal(&name, node).map(|ordinal| (ordinal, gateways)))?;
        (ordinal >= wanted).then_some(ordinal)
    };
    let mut surplus: Vec<(usize, &GarageNode)> = nodes
        .iter()
        .filter(|node| is_auto(node))
        .filter_map(|node| Some((excess(&node.name_any())?, node)))
        .collect();
    surplus.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
    surplus.into_iter().map(|(_, node)| node).collect()
}

#[cfg(test)]
mod tests {
    use super::{gateways, is_auto, storage, surplus};
    use crate::api::layout::LayoutPolicy;
    use crate::api::storage::{GatewayTier, StorageTier};
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
    fn a_gateway_tier_has_nodes_of_its_own_without_capacity() {
        let mut cluster = cluster(1);
        cluster.spec.gateway = Some(GatewayTier { replicas: 2, ..GatewayTier::default() });
        let nodes = gateways(&cluster);
        let names: Vec<_> = nodes.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["garage-gateway-0", "garage-gateway-1"]);
        assert!(nodes.iter().all(|node| node.spec.gateway && node.spec.capacity.is_none() && is_auto(node)));
        cluster.spec.gateway = None;
        let surplus: Vec<_> = surplus(&cluster, &nodes).iter().map(|node| node.name_any()).collect();
        assert_eq!(surplus, ["garage-gateway-1", "garage-gateway-0"]);
    }

    #[test]
    fn a_smaller_cluster_gives_up_its_highest_ordinals() {
        let nodes = storage(&cluster(12)).unwrap();
        let names: Vec<_> = surplus(&cluster(9), &nodes).iter().map(|node| node.name_any()).collect();
        assert_eq!(names, ["garage-storage-11", "garage-storage-10", "garage-storage-9"]);
    }
}
