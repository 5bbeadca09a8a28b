//! Figures about a computed version, as Apply and Preview answer them since 2.4.

use std::collections::BTreeSet;

use serde::Serialize;

use super::version::{PARTITIONS, Version};
use super::{NodeId, Role};

/// Below this size in bytes a partition counts as suspiciously small.
const LOW_PARTITION_SIZE: u64 = 100;

/// Figures about a computed version (Garage admin reference §6). Sizes are bytes, counts are copies of partitions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Statistics {
    /// Copies of each partition.
    pub replication_factor: usize,
    /// Zones that each partition has a copy in at least.
    pub effective_zone_redundancy: usize,
    /// Size of a partition.
    pub partition_size: u64,
    /// Size of a partition in the version before, if there was one.
    pub previous_partition_size: Option<u64>,
    /// Whether the partition size is below 100 bytes.
    pub low_partition_size: bool,
    /// What all copies together occupy at most.
    pub usable_capacity: u64,
    /// What all storage nodes together offer.
    pub total_capacity: u64,
    /// What can be stored, each thing counted once.
    pub effective_capacity: u64,
    /// Whether less than 80 % of the offered capacity is usable.
    pub low_usable_capacity: bool,
    /// Copies that have to be made; null for the first version.
    pub total_moved_partitions: Option<u64>,
    /// The zones, in the order in which the nodes name them.
    pub zones: Vec<ZoneStatistics>,
}

/// Figures about a zone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneStatistics {
    /// Name of the zone.
    pub name: String,
    /// Its storage nodes, by identity.
    pub nodes: Vec<NodeStatistics>,
    /// Copies on its nodes.
    pub total_replicated_partitions: u64,
    /// Partitions with a copy on any of its nodes.
    pub unique_partitions: u64,
    /// What its nodes offer.
    pub total_capacity: u64,
    /// What the copies on its nodes occupy at most.
    pub usable_capacity: u64,
}

/// Figures about a storage node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatistics {
    /// The node.
    pub id: NodeId,
    /// Its labels.
    pub tags: Vec<String>,
    /// Copies on it.
    pub stored_partitions: u64,
    /// Copies on it that it did not hold in the version before.
    pub new_partitions: u64,
    /// What it offers.
    pub total_capacity: u64,
    /// What the copies on it occupy at most.
    pub usable_capacity: u64,
}

impl Statistics {
    /// The figures of `version`, which was computed from `previous`.
    #[must_use]
    pub fn of(version: &Version, previous: &Version) -> Self {
        let holdings = Holdings::of(version, previous);
        let had_previous = previous.is_consistent();
        let zones = zones(version, &holdings);
        let partitions = u64::try_from(PARTITIONS).unwrap_or(u64::MAX);
        let factor = u64::try_from(version.factor).unwrap_or(u64::MAX);
        let effective = version.partition_size.saturating_mul(partitions);
        let usable = effective.saturating_mul(factor);
        let total = zones.iter().fold(0_u64, |sum, zone| sum.saturating_add(zone.total_capacity));
        let moved = zones.iter().flat_map(|zone| &zone.nodes).map(|node| node.new_partitions).sum();
        Self {
            replication_factor: version.factor,
            effective_zone_redundancy: version.effective_zone_redundancy(),
            partition_size: version.partition_size,
            previous_partition_size: had_previous.then_some(previous.partition_size),
            low_partition_size: version.partition_size < LOW_PARTITION_SIZE,
            usable_capacity: usable,
            total_capacity: total,
            effective_capacity: effective,
            low_usable_capacity: u128::from(usable) * 100 < u128::from(total) * 80,
            total_moved_partitions: had_previous.then_some(moved),
            zones,
        }
    }
}

/// Which node holds what, now and in the version before.
struct Holdings {
    now: Vec<Vec<NodeId>>,
    before: Vec<Vec<NodeId>>,
}

impl Holdings {
    fn of(version: &Version, previous: &Version) -> Self {
        let mut before: Vec<_> = previous.replica_sets().collect();
        before.resize(PARTITIONS, Vec::new());
        Self { now: version.replica_sets().collect(), before }
    }

    fn stored(&self, id: NodeId) -> u64 {
        self.now.iter().map(|set| u64::from(set.contains(&id))).sum()
    }

    fn gained(&self, id: NodeId) -> u64 {
        let pairs = self.now.iter().zip(&self.before);
        pairs.map(|(now, before)| u64::from(now.contains(&id) && !before.contains(&id))).sum()
    }

    fn unique(&self, ids: &BTreeSet<NodeId>) -> u64 {
        self.now.iter().map(|set| u64::from(set.iter().any(|id| ids.contains(id)))).sum()
    }
}

fn zones(version: &Version, holdings: &Holdings) -> Vec<ZoneStatistics> {
    let mut zones: Vec<ZoneStatistics> = Vec::new();
    for id in version.storage_nodes() {
        let Some(role) = version.role(*id) else { continue };
        let node = node(version, holdings, *id, role);
        match zones.iter_mut().find(|zone| zone.name == role.zone) {
            Some(zone) => zone.nodes.push(node),
            None => zones.push(ZoneStatistics {
                name: role.zone.clone(),
                nodes: vec![node],
                total_replicated_partitions: 0,
                unique_partitions: 0,
                total_capacity: 0,
                usable_capacity: 0,
            }),
        }
    }
    for zone in &mut zones {
        let ids = zone.nodes.iter().map(|node| node.id).collect();
        zone.unique_partitions = holdings.unique(&ids);
        for node in &zone.nodes {
            zone.total_replicated_partitions += node.stored_partitions;
            zone.total_capacity = zone.total_capacity.saturating_add(node.total_capacity);
            zone.usable_capacity = zone.usable_capacity.saturating_add(node.usable_capacity);
        }
    }
    zones
}

fn node(version: &Version, holdings: &Holdings, id: NodeId, role: &Role) -> NodeStatistics {
    let stored = holdings.stored(id);
    NodeStatistics {
        id,
        tags: role.tags.clone(),
        stored_partitions: stored,
        new_partitions: holdings.gained(id),
        total_capacity: role.capacity.unwrap_or(0),
        usable_capacity: stored.saturating_mul(version.partition_size),
    }
}
