//! Gateway roles that nobody serves any more (operator contract §5.7).

use kube::ResourceExt;

use super::assignment::identity;
use crate::api::observed::GatewayTombstone;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::garage::{ClusterStatus, StatusNode};
use crate::resources::auto_nodes::zone;

/// The stale gateway roles of this cluster: of its zone, tagged as its gateway, down for `age` seconds or longer, and
/// claimed by no living node. A node that was never seen since Garage started is not known to be stale.
pub fn stale_gateways(
    cluster: &GarageCluster,
    nodes: &[GarageNode],
    status: &ClusterStatus,
    age: u64,
) -> Vec<GatewayTombstone> {
    let claimed = |id: &str| {
        nodes
            .iter()
            .any(|node| node.metadata.deletion_timestamp.is_none() && identity(node).as_deref() == Some(id))
    };
    let mut stale: Vec<GatewayTombstone> = status
        .nodes
        .iter()
        .filter(|node| is_own_gateway(cluster, node))
        .filter(|node| !node.is_up && node.last_seen_secs_ago.is_some_and(|seconds| seconds >= age))
        .filter(|node| !claimed(&node.id.to_ascii_lowercase()))
        .map(|node| GatewayTombstone { node_id: node.id.to_ascii_lowercase(), zone: zone(cluster) })
        .collect();
    stale.sort_by(|left, right| left.node_id.cmp(&right.node_id));
    stale
}

fn is_own_gateway(cluster: &GarageCluster, node: &StatusNode) -> bool {
    let Some(role) = &node.role else { return false };
    let uid = format!("cluster-uid:{}", cluster.uid().unwrap_or_default());
    role.zone == zone(cluster)
        && role.tags.iter().any(|tag| tag == "tier:gateway")
        && role.tags.contains(&uid)
}

#[cfg(test)]
mod tests {
    use super::stale_gateways;
    use crate::api::v1beta1::{External, GarageNode, GarageNodeSpec};
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
    use crate::garage::{ClusterStatus, NodeRole, StatusNode};
    use rstest::rstest;

    fn cluster() -> GarageCluster {
        let spec = GarageClusterSpec { zone: Some("east".into()), ..GarageClusterSpec::default() };
        let mut cluster = GarageCluster::new("garage", spec);
        cluster.metadata.uid = Some("uid-1".into());
        cluster
    }

    fn gateway(zone: &str, uid: &str, up: bool, seen: Option<u64>) -> ClusterStatus {
        let tags = vec!["tier:gateway".to_owned(), format!("cluster-uid:{uid}")];
        let role = Some(NodeRole { zone: zone.into(), tags, capacity: None });
        let node = StatusNode {
            id: "AB".repeat(32),
            is_up: up,
            last_seen_secs_ago: seen,
            role,
            ..StatusNode::default()
        };
        ClusterStatus { layout_version: 1, nodes: vec![node] }
    }

    #[rstest]
    #[case(gateway("east", "uid-1", false, Some(600)), 1)]
    #[case(gateway("east", "uid-1", false, Some(599)), 0)]
    #[case(gateway("east", "uid-1", false, None), 0)]
    #[case(gateway("east", "uid-1", true, Some(900)), 0)]
    #[case(gateway("west", "uid-1", false, Some(900)), 0)]
    #[case(gateway("east", "uid-2", false, Some(900)), 0)]
    fn a_gateway_role_is_stale_when_its_node_is_long_gone(
        #[case] status: ClusterStatus,
        #[case] stale: usize,
    ) {
        assert_eq!(stale_gateways(&cluster(), &[], &status, 600).len(), stale);
    }

    #[test]
    fn a_gateway_role_that_a_node_claims_is_not_stale() {
        let spec = GarageNodeSpec {
            node_id: Some("ab".repeat(32)),
            external: Some(External { address: "x".into(), port: 3901 }),
            ..GarageNodeSpec::default()
        };
        let nodes = [GarageNode::new("gateway", spec)];
        let status = gateway("east", "uid-1", false, Some(900));
        assert!(stale_gateways(&cluster(), &nodes, &status, 600).is_empty());
    }
}
