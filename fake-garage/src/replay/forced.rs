//! Which numbers of stored partitions could not be otherwise.
//!
//! Real Garage chooses among many valid assignments. A node's number is compared only if every valid assignment
//! gives it the same one: if it cannot hold one partition less.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::layout::PARTITIONS;
use crate::layout::partition_size::room;

/// What is known of a version from an answer.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Per zone, the storage nodes with their capacity.
    pub zones: BTreeMap<String, Vec<(String, u64)>>,
    /// Size of a partition in bytes.
    pub partition_size: u64,
    /// Copies of each partition.
    pub factor: usize,
    /// Zones that each partition has a copy in at least.
    pub redundancy: usize,
}

impl Facts {
    /// The nodes whose number of stored partitions is forced.
    #[must_use]
    pub fn forced(&self) -> BTreeSet<String> {
        let nodes = self.zones.iter().flat_map(|(zone, nodes)| nodes.iter().map(move |node| (zone, node)));
        let forced = nodes.filter(|(zone, (_, capacity))| !self.can_spare(zone, *capacity));
        forced.map(|(_, (id, _))| id.clone()).collect()
    }

    /// Whether all is forced.
    #[must_use]
    pub fn all_forced(&self) -> bool {
        self.forced().len() == self.zones.values().map(Vec::len).sum::<usize>()
    }

    /// Whether a node of `capacity` in `zone` may hold one partition less than it has room for.
    fn can_spare(&self, zone: &str, capacity: u64) -> bool {
        if room(capacity, self.partition_size) == 0 {
            return false;
        }
        let rooms = self.zones.iter().map(|(name, nodes)| {
            let total: usize = nodes.iter().map(|(_, capacity)| room(*capacity, self.partition_size)).sum();
            total - usize::from(name == zone)
        });
        let (copies, spread) =
            rooms.fold((0, 0), |(copies, spread), room| (copies + room, spread + room.min(PARTITIONS)));
        copies >= PARTITIONS * self.factor
            && spread.min(PARTITIONS * self.factor) >= PARTITIONS * self.redundancy
    }
}

/// The facts of an object that is a layout with a version.
pub(super) fn layout_facts(object: &Map<String, Value>, factor: usize) -> Option<Facts> {
    let roles = object.get("roles")?.as_array()?;
    let partition_size = object.get("partitionSize")?.as_u64().filter(|size| *size > 0)?;
    let mut facts = Facts { partition_size, factor, ..Facts::default() };
    let mut all_zones = BTreeSet::new();
    for role in roles {
        let zone = role.get("zone")?.as_str()?.to_owned();
        all_zones.insert(zone.clone());
        if let Some(capacity) = role.get("capacity")?.as_u64() {
            facts.zones.entry(zone).or_default().push((role.get("id")?.as_str()?.to_owned(), capacity));
        }
    }
    let at_least = object.get("parameters")?.get("zoneRedundancy")?.get("atLeast").and_then(Value::as_u64);
    facts.redundancy =
        at_least.map_or(all_zones.len().min(factor), |zones| usize::try_from(zones).unwrap_or(factor));
    Some(facts)
}

/// The facts of an object that is the statistics of a version.
pub(super) fn statistics_facts(object: &Map<String, Value>) -> Option<Facts> {
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    let mut facts = Facts {
        partition_size: object.get("partitionSize")?.as_u64()?,
        factor: number(object.get("replicationFactor")?)?,
        redundancy: number(object.get("effectiveZoneRedundancy")?)?,
        ..Facts::default()
    };
    for zone in object.get("zones")?.as_array()? {
        let nodes =
            zone.get("nodes")?.as_array()?.iter().map(|node| {
                Some((node.get("id")?.as_str()?.to_owned(), node.get("totalCapacity")?.as_u64()?))
            });
        facts.zones.insert(zone.get("name")?.as_str()?.to_owned(), nodes.collect::<Option<_>>()?);
    }
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(zones: &[(&str, &[u64])], partition_size: u64, redundancy: usize) -> Facts {
        let zones = zones.iter().map(|(zone, capacities)| {
            let nodes = capacities
                .iter()
                .enumerate()
                .map(|(place, gb)| (format!("{zone}{place}"), gb * 1_000_000_000));
            ((*zone).to_owned(), nodes.collect())
        });
        Facts { zones: zones.collect(), partition_size, factor: 2, redundancy }
    }

    #[test]
    fn equal_capacities_that_are_all_needed_are_forced() {
        assert!(facts(&[("a", &[100, 100]), ("b", &[100, 100])], 781_250_000, 2).all_forced());
    }

    #[test]
    fn a_zone_of_one_node_that_must_hold_everything_is_forced() {
        let forced = facts(&[("a", &[100, 100]), ("b", &[10])], 39_062_500, 2).forced();
        assert_eq!(forced.into_iter().collect::<Vec<_>>(), ["b0"]);
    }
}
