//! Which nodes hold which partition: an assignment that moves as little as possible from the previous one.
//!
//! A minimum-cost flow. Every partition sends as many units as it has copies through zones to nodes: the *strict*
//! ones may enter each zone only once (they carry the zone redundancy), the *free* ones as they like. A unit on a
//! node that held the partition before costs nothing, any other costs one. The flow starts with what can stay, which
//! is optimal as far as it goes, and is filled up along cheapest paths, which keeps it so.

use super::assignment::{NodeNumber, Sets, ZoneRoom};
use super::flow::{EdgeNumber, Network, SINK, SOURCE};
use super::partition_size::Demand;
use super::version::PARTITIONS;

/// Assigns every partition, keeping as many copies of `previous` as can be kept. `None` where the room is too small.
///
/// `previous` holds, per partition, the copies on nodes that still store data, in the new numbering.
#[must_use]
pub fn reassign(zones: &[ZoneRoom], demand: Demand, previous: &Sets) -> Option<Sets> {
    let mut plan = Plan::new(zones, demand, previous);
    let kept = plan.keep(previous);
    let added = plan.network.fill();
    (kept + added == PARTITIONS * demand.factor).then(|| plan.sets())
}

/// The edges by which one partition's units travel.
struct Partition {
    strict: EdgeNumber,
    free: EdgeNumber,
    /// Per zone: from the strict half, from the free half.
    gates: Vec<(EdgeNumber, EdgeNumber)>,
    /// Per node: from the node's zone.
    copies: Vec<EdgeNumber>,
}

/// The network, with what its edges stand for.
struct Plan {
    network: Network,
    partitions: Vec<Partition>,
    /// Per node: its edge to the sink.
    drains: Vec<EdgeNumber>,
    /// Per node: its zone.
    zone_of: Vec<usize>,
}

impl Plan {
    fn new(zones: &[ZoneRoom], demand: Demand, previous: &Sets) -> Self {
        let mut nodes: Vec<_> = zones
            .iter()
            .enumerate()
            .flat_map(|(zone, held)| held.nodes.iter().map(move |(node, room)| (*node, zone, *room)))
            .collect();
        nodes.sort_unstable();
        let mut network = Network::for_edges((PARTITIONS + 1) * (nodes.len() + 2 * zones.len() + 2));
        let drain = |(_, _, room): &(NodeNumber, usize, usize)| {
            let vertex = network.vertex();
            (vertex, network.connect(vertex, SINK, units(*room), 0))
        };
        let (vertices, drains): (Vec<_>, Vec<_>) = nodes.iter().map(drain).unzip();
        let zone_of = nodes.iter().map(|(_, zone, _)| *zone).collect();
        let mut plan = Self { network, partitions: Vec::with_capacity(PARTITIONS), drains, zone_of };
        for before in previous {
            plan.add_partition(zones.len(), &vertices, demand, before);
        }
        plan
    }

    fn add_partition(&mut self, zones: usize, nodes: &[usize], demand: Demand, before: &[NodeNumber]) {
        let network = &mut self.network;
        let (certain, extra) = (units(demand.zones), units(demand.factor - demand.zones));
        let (strict_half, free_half) = (network.vertex(), network.vertex());
        let strict = network.connect(SOURCE, strict_half, certain, 0);
        let free = network.connect(SOURCE, free_half, extra, 0);
        let mut vertices = Vec::with_capacity(zones);
        let mut gates = Vec::with_capacity(zones);
        for _ in 0..zones {
            let zone = network.vertex();
            let from_strict = network.connect(strict_half, zone, 1, 0);
            gates.push((from_strict, network.connect(free_half, zone, extra, 0)));
            vertices.push(zone);
        }
        let mut copies = Vec::with_capacity(nodes.len());
        for (node, vertex) in nodes.iter().enumerate() {
            let held = before.iter().any(|number| usize::from(*number) == node);
            copies.push(network.connect(vertices[self.zone_of[node]], *vertex, 1, i16::from(!held)));
        }
        self.partitions.push(Partition { strict, free, gates, copies });
    }

    /// Sends a unit for every previous copy that may stay, and returns how many those are.
    fn keep(&mut self, previous: &Sets) -> usize {
        let mut kept = 0;
        for (partition, before) in previous.iter().enumerate() {
            for node in before.iter().map(|number| usize::from(*number)) {
                let edges = &self.partitions[partition];
                let (strict_gate, free_gate) = edges.gates[self.zone_of[node]];
                let (copy, drain) = (edges.copies[node], self.drains[node]);
                let ways = [[edges.strict, strict_gate, copy, drain], [edges.free, free_gate, copy, drain]];
                if let Some(way) = ways.iter().find(|way| way.iter().all(|edge| self.network.room(*edge) > 0))
                {
                    self.network.send(way);
                    kept += 1;
                }
            }
        }
        kept
    }

    fn sets(&self) -> Sets {
        let holds = |copy: &EdgeNumber| self.network.room(*copy) == 0;
        let set = |partition: &Partition| {
            let nodes = partition.copies.iter().zip(0..).filter(|(copy, _)| holds(copy));
            nodes.map(|(_, number)| number).collect()
        };
        self.partitions.iter().map(set).collect()
    }
}

/// A number of copies, of which no node, zone or partition has more than 65,535.
fn units(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::assignment::assign;
    use super::super::assignment::tests::{assert_valid, problems};
    use super::*;
    use proptest::prelude::*;

    fn moved(before: &Sets, after: &Sets) -> usize {
        let pairs = before.iter().zip(after);
        pairs.map(|(before, after)| after.iter().filter(|node| !before.contains(node)).count()).sum()
    }

    #[test]
    fn section_7_the_same_demand_again_moves_nothing() {
        let zones =
            [ZoneRoom { nodes: vec![(0, 128), (1, 128)] }, ZoneRoom { nodes: vec![(2, 128), (3, 128)] }];
        let demand = Demand { factor: 2, zones: 2 };
        let before = assign(&zones, demand).unwrap();
        assert_eq!(reassign(&zones, demand, &before).unwrap(), before);
    }

    #[test]
    fn capture_04_relaxing_the_redundancy_moves_only_what_must_move() {
        let before_zones = [ZoneRoom { nodes: vec![(0, 256)] }, ZoneRoom { nodes: vec![(1, 171), (2, 85)] }];
        let before = assign(&before_zones, Demand { factor: 2, zones: 2 }).unwrap();
        let zones = [ZoneRoom { nodes: vec![(0, 205)] }, ZoneRoom { nodes: vec![(1, 205), (2, 102)] }];
        let after = reassign(&zones, Demand { factor: 2, zones: 1 }, &before).unwrap();
        assert_eq!(moved(&before, &after), 51);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn section_7_a_reassignment_is_valid_and_possible_whenever_an_assignment_is(
            (old_zones, old_demand) in problems(), (zones, demand) in problems(),
        ) {
            let count = zones.iter().map(|zone| zone.nodes.len()).sum::<usize>();
            let old = assign(&old_zones, old_demand).unwrap_or(vec![Vec::new(); PARTITIONS]);
            let previous: Sets = old.into_iter()
                .map(|set| set.into_iter().filter(|node| usize::from(*node) < count).collect())
                .collect();
            match reassign(&zones, demand, &previous) {
                Some(sets) => assert_valid(&sets, &zones, demand),
                None => prop_assert!(assign(&zones, demand).is_none()),
            }
        }
    }
}
