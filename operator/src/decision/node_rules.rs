//! What a `GarageNode` must not say (operator contract §4.2). The schema and the webhook refuse it; the controller checks it
//! again, because a schema can be stripped and a webhook can be off.

use crate::api::layout::LayoutPolicy;
use crate::api::v1beta1::{GarageNode, GarageNodeSpec};
use crate::api::v1beta2::GarageCluster;
use crate::resources::auto_nodes::is_auto;

/// Tags that the operator sets itself begin with these.
const RESERVED: [&str; 6] =
    ["cluster:", "cluster-uid:", "tier:", "rpc-address:", "node-local-pool:", "kubernetes-node:"];

/// Smallest capacity that Garage accepts, in bytes (operator contract §1.2).
const SMALLEST: u64 = 1024;

/// Everything that is wrong with this spec.
pub fn objections(spec: &GarageNodeSpec) -> Vec<String> {
    let mut found = Vec::new();
    if spec.external.is_some() && spec.storage.is_some() {
        found.push("external forbids storage: an external node has no workload at this site".to_owned());
    }
    match (&spec.capacity, spec.gateway) {
        (None, false) => found.push(
            "capacity is mandatory for storage nodes; set it, or gateway: true for a node that stores nothing"
                .to_owned(),
        ),
        (Some(capacity), _) => match capacity.bytes() {
            Err(invalid) => found.push(format!("capacity: {invalid}")),
            Ok(bytes) if bytes < SMALLEST => {
                found.push(format!("capacity: {bytes} bytes are fewer than the {SMALLEST} that Garage needs"));
            }
            Ok(_) => {}
        },
        (None, true) => {}
    }
    if spec.zone.is_empty() {
        found.push("zone is mandatory".to_owned());
    }
    for tag in &spec.tags {
        if let Some(prefix) = RESERVED.iter().find(|prefix| tag.starts_with(**prefix)) {
            found.push(format!("tags: {tag:?} begins with {prefix:?}, which is reserved for the operator"));
        }
    }
    found
}

/// Why an edit of a node is refused: what identifies its role cannot change under it.
pub fn change_refusal(old: &GarageNode, new: &GarageNode) -> Option<String> {
    if new.metadata.deletion_timestamp.is_some() || old.spec == new.spec {
        return None;
    }
    let (before, after) = (&old.spec, &new.spec);
    let frozen =
        |what: &str| Some(format!("{what} is immutable; delete the GarageNode and make another one"));
    if before.cluster_ref != after.cluster_ref {
        return frozen("clusterRef");
    }
    if before.gateway != after.gateway {
        return frozen("gateway");
    }
    if before.external.is_some() != after.external.is_some() {
        return frozen("whether a node is external");
    }
    if before.external.is_some() && before.node_id != after.node_id {
        return frozen("nodeId of an external node");
    }
    refusal(after)
}

/// Why a node that a user made is refused: under Auto the operator makes the nodes that this site runs. Those of other sites
/// are declared under either policy; without a gateway tier, gateways are the user's own.
pub fn policy_refusal(cluster: &GarageCluster, node: &GarageNode) -> Option<String> {
    if node.spec.external.is_some() || is_auto(node) {
        return None;
    }
    let (tier, policy) = if node.spec.gateway {
        ("gateway", cluster.spec.gateway.as_ref().map(|_| cluster.spec.layout_policy))
    } else {
        ("storage", cluster.spec.storage.as_ref().map(|_| cluster.spec.storage_policy()))
    };
    (policy == Some(LayoutPolicy::Auto)).then(|| {
        format!(
            "the layoutPolicy of the {tier} tier is Auto: the operator makes its nodes; change {tier}.replicas instead, \
             declare the node of another site with external, or use the layoutPolicy Manual"
        )
    })
}

/// Why a spec is refused.
pub fn refusal(spec: &GarageNodeSpec) -> Option<String> {
    let found = objections(spec);
    (!found.is_empty()).then(|| found.join("; "))
}

#[cfg(test)]
mod tests {
    use super::{change_refusal, objections, policy_refusal};
    use crate::api::federation::ClusterRef;
    use crate::api::layout::LayoutPolicy;
    use crate::api::quantity::ByteQuantity;
    use crate::api::storage::{GatewayTier, NodeStorage, StorageTier};
    use crate::api::v1beta1::{External, GarageNode, GarageNodeSpec};
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
    use crate::resources::auto_nodes::storage;
    use rstest::rstest;

    fn spec(edit: impl FnOnce(&mut GarageNodeSpec)) -> GarageNodeSpec {
        let mut spec = GarageNodeSpec {
            zone: "west".into(),
            capacity: Some(ByteQuantity::new("10Gi")),
            node_id: Some("ab".repeat(32)),
            external: Some(External { address: "x".into(), port: 3901 }),
            ..GarageNodeSpec::default()
        };
        edit(&mut spec);
        spec
    }

    #[rstest]
    #[case(spec(|_| {}), None)]
    #[case(spec(|spec| { spec.capacity = None; spec.gateway = true; }), None)]
    #[case(spec(|spec| spec.tags = vec!["rack:1".into()]), None)]
    #[case(spec(|spec| spec.capacity = None), Some("capacity is mandatory"))]
    #[case(spec(|spec| spec.capacity = Some(ByteQuantity::new("1023"))), Some("1023 bytes"))]
    #[case(spec(|spec| spec.capacity = Some(ByteQuantity::new("much"))), Some("much"))]
    #[case(spec(|spec| spec.storage = Some(NodeStorage::default())), Some("external forbids storage"))]
    #[case(spec(|spec| spec.zone.clear()), Some("zone"))]
    #[case(spec(|spec| spec.tags = vec!["tier:storage".into()]), Some("reserved"))]
    #[case(spec(|spec| spec.tags = vec!["cluster-uid:1".into()]), Some("reserved"))]
    fn a_declaration_is_objected_to_with_reasons(#[case] spec: GarageNodeSpec, #[case] says: Option<&str>) {
        let found = objections(&spec);
        match says {
            None => assert_eq!(found, [] as [String; 0]),
            Some(part) => assert!(found.len() == 1 && found[0].contains(part), "{found:?}"),
        }
    }

    #[rstest]
    #[case(spec(|_| {}), None)]
    #[case(spec(|spec| spec.tags = vec!["rack:2".into()]), None)]
    #[case(spec(|spec| spec.cluster_ref = ClusterRef { name: "other".into() }), Some("clusterRef"))]
    #[case(spec(|spec| spec.gateway = true), Some("gateway"))]
    #[case(spec(|spec| spec.external = None), Some("external"))]
    #[case(spec(|spec| spec.node_id = Some("cd".repeat(32))), Some("nodeId"))]
    #[case(spec(|spec| spec.capacity = None), Some("capacity"))]
    fn what_identifies_a_role_is_immutable(#[case] after: GarageNodeSpec, #[case] says: Option<&str>) {
        let refusal = change_refusal(&GarageNode::new("n", spec(|_| {})), &GarageNode::new("n", after));
        match says {
            None => assert_eq!(refusal, None),
            Some(part) => assert!(refusal.as_ref().unwrap().contains(part), "{refusal:?}"),
        }
    }

    fn cluster(policy: LayoutPolicy, gateways: bool) -> GarageCluster {
        let spec = GarageClusterSpec {
            layout_policy: policy,
            storage: Some(StorageTier::default()),
            gateway: gateways.then(GatewayTier::default),
            ..GarageClusterSpec::default()
        };
        GarageCluster::new("garage", spec)
    }

    fn local(gateway: bool) -> GarageNodeSpec {
        spec(|spec| (spec.external, spec.gateway) = (None, gateway))
    }

    #[rstest]
    #[case(cluster(LayoutPolicy::Auto, false), spec(|_| {}), false)]
    #[case(cluster(LayoutPolicy::Auto, false), local(false), true)]
    #[case(cluster(LayoutPolicy::Manual, false), local(false), false)]
    #[case(cluster(LayoutPolicy::Auto, false), local(true), false)]
    #[case(cluster(LayoutPolicy::Auto, true), local(true), true)]
    #[case(cluster(LayoutPolicy::Manual, true), local(true), false)]
    fn under_auto_only_the_operator_makes_nodes_of_this_site(
        #[case] cluster: GarageCluster,
        #[case] spec: GarageNodeSpec,
        #[case] refused: bool,
    ) {
        assert_eq!(policy_refusal(&cluster, &GarageNode::new("n", spec)).is_some(), refused);
        let mut auto = self::cluster(LayoutPolicy::Auto, false);
        auto.spec.storage = Some(StorageTier { replicas: 1, ..StorageTier::default() });
        let own = storage(&auto).unwrap();
        assert_eq!(own.len(), 1);
        assert_eq!(policy_refusal(&auto, &own[0]), None, "those that the operator made");
    }
}
