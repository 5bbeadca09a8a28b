//! Which nodes hold which partition: the first assignment, built without search.
//!
//! The construction deals copies out like cards. Zone by zone, every zone's *first* copies (at most one per
//! partition) go round the 256 partitions in one unbroken sequence, so each partition gets copies from at least as
//! many distinct zones as the redundancy demands; the remaining copies follow in the same sequence until each
//! partition has as many as the replication factor. Within a zone the copies of one partition lie 256 cards apart,
//! and no node takes more than 256 in a row, so a partition never meets the same node twice.

use super::partition_size::Demand;
use super::version::PARTITIONS;

/// Number of a storage node: its place among the storage nodes of a version, ordered by identity.
pub type NodeNumber = u16;

/// The storage nodes of one zone with the number of copies that each has room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneRoom {
    /// The nodes, with their room.
    pub nodes: Vec<(NodeNumber, usize)>,
}

impl ZoneRoom {
    fn total(&self) -> usize {
        self.nodes.iter().map(|(_, room)| room).sum()
    }
}

/// Copies of each partition: 256 sets of nodes, each in ascending order.
pub type Sets = Vec<Vec<NodeNumber>>;

/// Assigns every partition from scratch. `None` where the room does not allow it.
#[must_use]
pub fn assign(zones: &[ZoneRoom], demand: Demand) -> Option<Sets> {
    let shares = zone_shares(zones, demand)?;
    let mut sets: Sets = vec![Vec::new(); PARTITIONS];
    for (zone, cards) in zones.iter().zip(deal(&shares)) {
        let counts = spread(&zone.nodes.iter().map(|(_, room)| *room).collect::<Vec<_>>(), cards.len())?;
        let owners = zone.nodes.iter().zip(counts).flat_map(|((node, _), count)| vec![*node; count]);
        for (partition, node) in cards.into_iter().zip(owners) {
            sets[partition].push(node);
        }
    }
    for set in &mut sets {
        set.sort_unstable();
    }
    Some(sets)
}

/// First and further copies of each zone.
struct Share {
    first: usize,
    further: usize,
}

fn zone_shares(zones: &[ZoneRoom], demand: Demand) -> Option<Vec<Share>> {
    let rooms: Vec<_> = zones.iter().map(ZoneRoom::total).collect();
    let firsts = spread(
        &rooms.iter().map(|room| (*room).min(PARTITIONS)).collect::<Vec<_>>(),
        PARTITIONS * demand.zones,
    )?;
    let left: Vec<_> = rooms.iter().zip(&firsts).map(|(room, first)| room - first).collect();
    let more = spread(&left, PARTITIONS * (demand.factor - demand.zones))?;
    let shares = firsts.iter().zip(more).map(|(first, more)| {
        let total = first + more;
        Share { first: total.min(PARTITIONS), further: total.saturating_sub(PARTITIONS) }
    });
    Some(shares.collect())
}

/// The partitions that each zone's copies go to, in an order in which equal ones are 256 places apart.
fn deal(shares: &[Share]) -> Vec<Vec<usize>> {
    let mut next = 0;
    let first_starts: Vec<_> = shares.iter().map(|share| begin(&mut next, share.first)).collect();
    let further_starts: Vec<_> = shares.iter().map(|share| begin(&mut next, share.further)).collect();
    let starts = first_starts.into_iter().zip(further_starts);
    shares
        .iter()
        .zip(starts)
        .map(|(share, (first, further))| {
            // A zone with further copies has a first one of every partition, so its round may begin anywhere: where the
            // further ones begin.
            let start = if share.further > 0 { further } else { first };
            (0..share.first + share.further).map(|place| (start + place) % PARTITIONS).collect()
        })
        .collect()
}

fn begin(next: &mut usize, count: usize) -> usize {
    let start = *next % PARTITIONS;
    *next += count;
    start
}

/// Splits `total` over places with `room`, in proportion to the room. `None` where the room does not suffice.
///
/// Largest remainders first, ties to the earlier place.
fn spread(room: &[usize], total: usize) -> Option<Vec<usize>> {
    let all: usize = room.iter().sum();
    if all < total {
        return None;
    }
    if total == 0 {
        return Some(vec![0; room.len()]);
    }
    let mut shares: Vec<_> = room.iter().map(|room| room * total / all).collect();
    let mut by_remainder: Vec<_> = (0..room.len()).filter(|place| shares[*place] < room[*place]).collect();
    by_remainder.sort_by_key(|place| std::cmp::Reverse(room[*place] * total % all));
    let missing = total - shares.iter().sum::<usize>();
    by_remainder.iter().take(missing).for_each(|place| shares[*place] += 1);
    Some(shares)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What every assignment must satisfy, whoever made it.
    pub(in super::super) fn assert_valid(sets: &Sets, zones: &[ZoneRoom], demand: Demand) {
        assert_eq!(sets.len(), PARTITIONS);
        for set in sets {
            assert_eq!(set.len(), demand.factor);
            assert!(set.windows(2).all(|pair| pair[0] < pair[1]), "a node twice in {set:?}");
            let spread = zones.iter().filter(|zone| zone.nodes.iter().any(|(node, _)| set.contains(node)));
            assert!(spread.count() >= demand.zones, "too few zones in {set:?}");
        }
        for (node, room) in zones.iter().flat_map(|zone| &zone.nodes) {
            let held = sets.iter().filter(|set| set.contains(node)).count();
            assert!(held <= *room, "node {node} holds {held} of {room}");
        }
    }

    /// Zones of nodes with room for an assignment, and the demand.
    pub(in super::super) fn problems() -> impl Strategy<Value = (Vec<ZoneRoom>, Demand)> {
        let zones = prop::collection::vec(prop::collection::vec(0..=PARTITIONS, 1..5), 1..5);
        (zones, 1usize..4, 1usize..4).prop_map(|(zones, factor, redundancy)| {
            let mut number = 0;
            let zones = zones
                .into_iter()
                .map(|rooms| ZoneRoom {
                    nodes: rooms
                        .into_iter()
                        .map(|room| {
                            number += 1;
                            (number - 1, room)
                        })
                        .collect(),
                })
                .collect();
            (zones, Demand { factor, zones: redundancy.min(factor) })
        })
    }

    fn is_feasible(zones: &[ZoneRoom], demand: Demand) -> bool {
        let copies: usize = zones.iter().map(ZoneRoom::total).sum();
        let spread: usize = zones.iter().map(|zone| zone.total().min(PARTITIONS)).sum();
        copies >= PARTITIONS * demand.factor && spread >= PARTITIONS * demand.zones
    }

    proptest! {
        #[test]
        fn section_7_whatever_the_closed_form_calls_feasible_is_assigned_validly((zones, demand) in problems()) {
            match assign(&zones, demand) {
                Some(sets) => assert_valid(&sets, &zones, demand),
                None => prop_assert!(!is_feasible(&zones, demand)),
            }
        }
    }
}
