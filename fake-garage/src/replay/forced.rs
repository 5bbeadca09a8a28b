//! Which numbers of stored partitions could not be otherwise.
//!
//! Real Garage chooses among many valid assignments. A node's number is compared only if every valid assignment
//! gives it the same one: if it cannot hold one partition less.

use std::collections::{BTreeMap, BTreeSet};

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
