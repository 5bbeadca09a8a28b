//! Which role a `GarageNode` should have (operator contract §5.1, "Role tags").

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::factor_migration::factor;
use super::identity_change::lost_source;
use super::mutation::Intent;
use super::node_rules;
use crate::api::federation::DeletionPolicy;
use crate::api::naming;
use crate::api::quantity::InvalidQuantity;
use crate::api::replication::{Replication, ZoneRedundancyMode};
use crate::api::storage::StorageTier;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::garage::{LayoutParameters, LayoutRole, RoleChange, ZoneRedundancy};
use crate::mutant::{self, Mutant};

/// Capacity of an Auto node whose data volume has no size (operator contract §7.3).
const CAPACITY_WITHOUT_SIZE: u64 = 10 << 30;

/// The role a node should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRole {
    /// Node ID in lower case.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// Bytes; `None` for a gateway.
    pub capacity: Option<u64>,
    /// Tags.
    pub tags: Vec<String>,
}

impl WantedRole {
    /// Whether the committed role is this one; tags are compared as a multiset.
    pub fn is(&self, role: &LayoutRole) -> bool {
        self.zone == role.zone && self.capacity == role.capacity && same_tags(&self.tags, &role.tags)
    }

    /// The change that brings it about.
    pub fn change(&self) -> RoleChange {
        RoleChange::Assign {
            id: self.id.clone(),
            zone: self.zone.clone(),
            capacity: self.capacity,
            tags: self.tags.clone(),
        }
    }
}

/// Whether two lists of tags are equal as multisets.
pub fn same_tags(left: &[String], right: &[String]) -> bool {
    let sorted = |tags: &[String]| {
        let mut tags = tags.to_vec();
        tags.sort_unstable();
        tags
    };
    sorted(left) == sorted(right)
}

/// Whether this site runs the node.
pub fn is_managed(node: &GarageNode) -> bool {
    node.spec.external.is_none()
}

/// The identity of a node in lower case: what a managed one answered, what an external one declares.
pub fn identity(node: &GarageNode) -> Option<String> {
    let id =
        if is_managed(node) { node.status.as_ref()?.node_id.as_ref() } else { node.spec.node_id.as_ref() };
    id.map(|id| id.to_ascii_lowercase())
}

/// Whether the node is on its way out: deleted, or asked to prepare for it by the `drain` annotation.
pub fn is_leaving(node: &GarageNode) -> bool {
    node.metadata.deletion_timestamp.is_some()
        || node.annotations().get(naming::DRAIN).is_some_and(|value| value == "true")
}

/// Whether all nodes of the cluster are on their way out: it was asked to prepare for its deletion, and its roles are to
/// leave the layout first (operator contract §5.5).
pub fn drains(cluster: &GarageCluster) -> bool {
    cluster.annotations().get(naming::DRAIN).is_some_and(|value| value == "true")
        && cluster.spec.effective_deletion_policy() == DeletionPolicy::Drain
}

/// Whether the node is on its way out, by itself or with its cluster.
pub fn leaves(cluster: &GarageCluster, node: &GarageNode) -> bool {
    is_leaving(node) || drains(cluster)
}

/// What this cluster wants of the layout: the roles of its nodes, and no roles for those that are leaving.
///
/// An identity that several nodes claim is its [`holder`]'s, and left alone where there is none.
pub fn intent(cluster: &GarageCluster, nodes: &[GarageNode]) -> Result<Intent, InvalidQuantity> {
    let claims: BTreeSet<String> = nodes.iter().filter_map(identity).collect();
    let given_up = nodes.iter().filter_map(lost_source).filter(|id| !claims.contains(id));
    let mut intent = Intent {
        removals: given_up.collect(),
        parameters: wanted_parameters(&cluster.spec.replication),
        factor: factor(cluster),
        ..Intent::default()
    };
    for id in claims {
        let Some(node) = holder(cluster, &id, nodes) else { continue };
        if leaves(cluster, node) {
            intent.removals.insert(id);
        } else if node_rules::refusal(&node.spec).is_none()
            && node_rules::policy_refusal(cluster, node).is_none()
        {
            intent.roles.push(wanted_role(cluster, node, &id)?);
            if !is_managed(node) {
                intent.declared.insert(id);
            }
        }
    }
    Ok(intent)
}

/// The node whose identity `id` is, of all that claim it: one that stays before one that leaves, and one that this site
/// runs, whose identity was answered, before one for which it is only declared. None where nobody claims it, or nobody can
/// say which of several is right.
pub fn holder<'a>(cluster: &GarageCluster, id: &str, nodes: &'a [GarageNode]) -> Option<&'a GarageNode> {
    let claimants = || nodes.iter().filter(|node| identity(node).as_deref() == Some(id));
    let staying = || claimants().filter(|node| !leaves(cluster, node));
    let managed: Vec<&GarageNode> = staying().filter(|node| is_managed(node)).collect();
    match (managed.as_slice(), staying().collect::<Vec<_>>().as_slice()) {
        ([one], _) | ([], [one]) => Some(one),
        // Nobody wants the role any more.
        ([], []) => claimants().next(),
        _ => None,
    }
}

/// Another node of the cluster that claims the identity of `node`, where that is not the [`holder`].
pub fn collision<'a>(
    cluster: &GarageCluster,
    node: &GarageNode,
    id: &str,
    nodes: &'a [GarageNode],
) -> Option<&'a GarageNode> {
    let is_other = |other: &&GarageNode| other.name_any() != node.name_any();
    match holder(cluster, id, nodes) {
        Some(holder) => Some(holder).filter(is_other),
        None => nodes.iter().filter(is_other).find(|other| identity(other).as_deref() == Some(id)),
    }
}

/// The role that `node` declares, under the identity `id`.
pub fn wanted_role(
    cluster: &GarageCluster,
    node: &GarageNode,
    id: &str,
) -> Result<WantedRole, InvalidQuantity> {
    let capacity = match (&node.spec.capacity, node.spec.gateway) {
        (_, true) | (None, false) => None,
        (Some(quantity), false) => Some(quantity.bytes()? + mutant::turn()),
    };
    Ok(WantedRole {
        id: id.to_ascii_lowercase(),
        zone: node.spec.zone.clone(),
        capacity,
        tags: tags(cluster, node),
    })
}

fn tags(cluster: &GarageCluster, node: &GarageNode) -> Vec<String> {
    let namespace = cluster.namespace().unwrap_or_default();
    let mut tags = vec![
        format!("cluster:{}/{namespace}", cluster.name_any()),
        format!("cluster-uid:{}", cluster.uid().unwrap_or_default()),
        format!("tier:{}", if node.spec.gateway { "gateway" } else { "storage" }),
    ];
    let lost = mutant::is(Mutant::TagsLost);
    for tag in node.spec.tags.iter().filter(|_| !lost) {
        if !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
    match &node.spec.external {
        Some(external) => tags.push(format!("rpc-address:{}:{}", external.address, external.port)),
        None => tags.push(naming::pod(&node.name_any())),
    }
    tags
}

/// Capacity of an Auto storage node: its data volume without the reserve.
pub fn auto_capacity(tier: &StorageTier) -> Result<u64, InvalidQuantity> {
    let size = match tier.data.as_ref().and_then(|volume| volume.size.as_ref()) {
        Some(size) => size.bytes()?,
        None => CAPACITY_WITHOUT_SIZE,
    };
    let reserve = u64::from(tier.capacity_reserve_percent.unwrap_or(0).min(100));
    Ok(size - size / 100 * reserve)
}

/// The layout parameters that the spec asks for; `None` leaves those of the layout alone.
pub fn wanted_parameters(replication: &Replication) -> Option<LayoutParameters> {
    let zone_redundancy = match replication.zone_redundancy_mode? {
        ZoneRedundancyMode::Maximum => ZoneRedundancy::Maximum,
        ZoneRedundancyMode::AtLeast => {
            ZoneRedundancy::AtLeast(replication.zone_redundancy_min_zones.unwrap_or(1))
        }
    };
    Some(LayoutParameters { zone_redundancy })
}

#[cfg(test)]
mod tests {
    use super::{auto_capacity, collision, holder, intent, wanted_role};
    use crate::api::federation::DeletionPolicy;
    use crate::api::quantity::ByteQuantity;
    use crate::api::storage::{StorageTier, Volume};
    use crate::api::v1beta1::{External, GarageNode, GarageNodeSpec, GarageNodeStatus};
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::ResourceExt;
    use rstest::rstest;

    fn cluster() -> GarageCluster {
        let mut cluster = GarageCluster::new("garage", GarageClusterSpec::default());
        cluster.metadata.namespace = Some("ns".into());
        cluster.metadata.uid = Some("uid-1".into());
        cluster
    }

    fn node() -> GarageNode {
        GarageNode::new(
            "west-0",
            GarageNodeSpec {
                zone: "west".into(),
                capacity: Some(ByteQuantity::new("10Gi")),
                tags: vec!["rack:1".into()],
                ..GarageNodeSpec::default()
            },
        )
    }

    fn external(name: &str, id: char) -> GarageNode {
        let mut node = node();
        node.metadata.name = Some(name.into());
        node.spec.node_id = Some(id.to_string().repeat(64));
        node.spec.external = Some(External { address: "x".into(), port: 3901 });
        node
    }

    #[test]
    fn nodes_without_an_identity_are_not_yet_wanted() {
        let intent = intent(&cluster(), &[node(), external("west-1", 'b')]).unwrap();
        assert_eq!(intent.roles.len(), 1);
        assert_eq!(intent.roles[0].id, "b".repeat(64));
    }

    #[test]
    fn a_node_that_is_leaving_is_to_lose_its_role() {
        let mut leaving = external("west-1", 'B');
        leaving.metadata.deletion_timestamp = Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH));
        let intent = intent(&cluster(), &[leaving]).unwrap();
        assert!(intent.roles.is_empty());
        assert!(intent.removals.contains(&"b".repeat(64)));
    }

    #[rstest]
    #[case(Some(DeletionPolicy::Drain), 1)]
    #[case(Some(DeletionPolicy::Destroy), 0)]
    #[case(None, 0)]
    fn a_cluster_that_drains_gives_up_all_its_roles(
        #[case] policy: Option<DeletionPolicy>,
        #[case] removals: usize,
    ) {
        let mut cluster = cluster();
        cluster.spec.deletion_policy = policy;
        cluster.metadata.annotations =
            Some([("garage.rajsingh.info/drain".to_owned(), "true".to_owned())].into());
        let intent = intent(&cluster, &[external("west-1", 'b')]).unwrap();
        assert_eq!((intent.removals.len(), intent.roles.len()), (removals, 1 - removals));
    }

    #[test]
    fn an_identity_that_two_nodes_claim_is_left_alone() {
        let nodes = [external("west-1", 'b'), external("west-2", 'B')];
        assert!(intent(&cluster(), &nodes).unwrap().roles.is_empty());
        assert!(collision(&cluster(), &nodes[0], &"b".repeat(64), &nodes).is_some());
    }

    fn leaving(mut node: GarageNode) -> GarageNode {
        node.metadata.deletion_timestamp = Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH));
        node
    }

    fn run_here(name: &str, id: char) -> GarageNode {
        let mut node = node();
        node.metadata.name = Some(name.into());
        node.status = Some(GarageNodeStatus {
            node_id: Some(id.to_string().repeat(64)),
            ..GarageNodeStatus::default()
        });
        node
    }

    #[rstest]
    #[case::one(vec![external("a", 'b')], Some("a"))]
    #[case::one_that_leaves(vec![leaving(external("a", 'b'))], Some("a"))]
    #[case::two(vec![external("a", 'b'), external("c", 'b')], None)]
    #[case::two_of_which_one_leaves(vec![leaving(external("a", 'b')), external("c", 'b')], Some("c"))]
    #[case::two_that_leave(vec![leaving(external("a", 'b')), leaving(external("c", 'b'))], Some("a"))]
    #[case::one_that_is_run_here(vec![external("a", 'b'), run_here("c", 'b')], Some("c"))]
    #[case::two_that_are_run_here(vec![run_here("a", 'b'), run_here("c", 'b')], None)]
    #[case::another(vec![external("a", 'd')], None)]
    fn an_identity_is_held_by_who_stays_and_is_run_here(
        #[case] nodes: Vec<GarageNode>,
        #[case] held_by: Option<&str>,
    ) {
        let id = "b".repeat(64);
        let holder = holder(&cluster(), &id, &nodes);
        assert_eq!(holder.and_then(|node| node.metadata.name.as_deref()), held_by);
        let roles = intent(&cluster(), &nodes).unwrap();
        let touched = roles.roles.iter().any(|role| role.id == id) || roles.removals.contains(&id);
        assert_eq!(touched, held_by.is_some());
    }

    #[test]
    fn only_who_does_not_hold_an_identity_collides() {
        let (id, nodes) = ("b".repeat(64), [external("a", 'b'), run_here("c", 'b')]);
        assert_eq!(
            collision(&cluster(), &nodes[0], &id, &nodes).map(ResourceExt::name_any).as_deref(),
            Some("c")
        );
        assert!(collision(&cluster(), &nodes[1], &id, &nodes).is_none());
    }

    #[test]
    fn a_managed_node_carries_its_pod_as_a_tag() {
        let role = wanted_role(&cluster(), &node(), "AB").unwrap();
        assert_eq!(role.id, "ab");
        assert_eq!(role.capacity, Some(10 << 30));
        assert_eq!(
            role.tags,
            ["cluster:garage/ns", "cluster-uid:uid-1", "tier:storage", "rack:1", "west-0-0"]
        );
    }

    #[test]
    fn an_external_node_carries_its_address_as_a_tag() {
        let mut node = node();
        node.spec.external = Some(External { address: "127.0.0.9".into(), port: 3901 });
        let role = wanted_role(&cluster(), &node, "ab").unwrap();
        assert_eq!(role.tags.last().unwrap(), "rpc-address:127.0.0.9:3901");
    }

    #[test]
    fn a_gateway_has_no_capacity_even_if_one_is_written() {
        let mut node = node();
        node.spec.gateway = true;
        let role = wanted_role(&cluster(), &node, "ab").unwrap();
        assert_eq!(role.capacity, None);
        assert!(role.tags.contains(&"tier:gateway".to_owned()));
    }

    #[rstest]
    #[case(None, None, 10 << 30)]
    #[case(Some("20Gi"), None, 20 << 30)]
    #[case(Some("1000"), Some(10), 900)]
    fn an_auto_node_offers_its_volume_without_the_reserve(
        #[case] size: Option<&str>,
        #[case] reserve: Option<u32>,
        #[case] capacity: u64,
    ) {
        let volume = Volume { size: size.map(ByteQuantity::new), ..Volume::default() };
        let tier =
            StorageTier { data: Some(volume), capacity_reserve_percent: reserve, ..StorageTier::default() };
        assert_eq!(auto_capacity(&tier), Ok(capacity));
    }
}
