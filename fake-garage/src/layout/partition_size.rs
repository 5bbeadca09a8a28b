//! The largest partition size that a set of nodes can hold.
//!
//! Garage finds it with a flow algorithm; a minimum-cut argument gives the same number in closed form (Garage admin
//! reference §7). With `k(n) = min(256, capacity(n) / p)` copies at node n and `S(Z)` the sum of k over zone Z, the
//! size p is feasible if and only if
//!
//! * the sum of `S(Z)` over all zones is at least 256 × replication factor, and
//! * the sum of `min(256, S(Z))` is at least 256 × zone redundancy.

use super::version::PARTITIONS;

/// What the assignment has to satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Copies of each partition.
    pub factor: usize,
    /// Distinct zones of each partition.
    pub zones: usize,
}

/// Capacities of the storage nodes of one zone, in bytes.
pub type ZoneCapacities = Vec<u64>;

/// How many partitions of `size` bytes fit on a node of `capacity` bytes.
///
/// Garage calculates with signed 64-bit numbers there: a capacity of 2^63 bytes or more holds nothing (capture 21).
#[must_use]
pub fn room(capacity: u64, size: u64) -> usize {
    let Ok(signed) = i64::try_from(capacity) else { return 0 };
    let fits = signed.unsigned_abs() / size.max(1);
    usize::try_from(fits).unwrap_or(PARTITIONS).min(PARTITIONS)
}

/// Whether partitions of `size` bytes can be placed.
#[must_use]
pub fn is_feasible(zones: &[ZoneCapacities], demand: Demand, size: u64) -> bool {
    let rooms = zones.iter().map(|zone| zone.iter().map(|capacity| room(*capacity, size)).sum::<usize>());
    let (copies, spread) =
        rooms.fold((0, 0), |(copies, spread), room| (copies + room, spread + room.min(PARTITIONS)));
    copies >= PARTITIONS * demand.factor && spread >= PARTITIONS * demand.zones
}

/// The largest feasible size in bytes, or `None` where not even one byte is.
#[must_use]
pub fn largest(zones: &[ZoneCapacities], demand: Demand) -> Option<u64> {
    if !is_feasible(zones, demand, 1) {
        return None;
    }
    let total: u128 = zones.iter().flatten().map(|capacity| u128::from(*capacity)).sum();
    let (mut low, mut high) = (1, u64::try_from(total).unwrap_or(u64::MAX));
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if is_feasible(zones, demand, middle) { low = middle } else { high = middle }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::capture_04_two_and_two("100 100 | 100 100", 2, 2, 781_250_000)]
    #[case::capture_12_one_half("100 100 | 100 50", 2, 2, 584_795_321)]
    #[case::capture_12_small_zone("100 100 | 10", 2, 2, 39_062_500)]
    #[case::capture_12_small_zone_relaxed("100 100 | 10", 2, 1, 409_836_065)]
    #[case::capture_15_factor_3("100 100 | 100", 3, 2, 390_625_000)]
    fn section_7_the_partition_size_is_the_recorded_one(
        #[case] gigabytes: &str,
        #[case] factor: usize,
        #[case] redundancy: usize,
        #[case] expected: u64,
    ) {
        let capacity = |text: &str| text.parse::<u64>().unwrap() * 1_000_000_000;
        let zones: Vec<ZoneCapacities> =
            gigabytes.split('|').map(|zone| zone.split_whitespace().map(capacity).collect()).collect();
        assert_eq!(largest(&zones, Demand { factor, zones: redundancy }), Some(expected));
    }

    #[test]
    fn capture_04_the_smallest_capacities_give_four_bytes() {
        assert_eq!(largest(&[vec![1024, 1024]], Demand { factor: 2, zones: 1 }), Some(4));
    }

    #[test]
    fn capture_21_capacities_beyond_63_bits_hold_nothing() {
        let demand = Demand { factor: 2, zones: 1 };
        assert_eq!(largest(&[vec![u64::MAX, u64::MAX]], demand), None);
        assert!(largest(&[vec![u64::MAX / 2, u64::MAX / 2]], demand).is_some());
    }
}
