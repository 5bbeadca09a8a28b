//! Which nodes hold which partition: an assignment that moves as little as possible from the previous one.
//!
//! A minimum-cost flow. Every partition sends as many units as it has copies through zones to nodes: the *strict*
//! ones may enter each zone only once (they carry the zone redundancy), the *free* ones as they like. A unit on a
//! node that held the partition before costs nothing, any other costs one. The flow starts with what can stay, which
//! is optimal as far as it goes, and grows along cheapest paths, which keeps it so.

use std::collections::VecDeque;

use super::assignment::{NodeNumber, Sets, ZoneRoom};
use super::partition_size::Demand;
use super::version::PARTITIONS;

/// Assigns every partition, keeping as many copies of `previous` as can be kept. `None` where the room is too small.
///
/// `previous` holds, per partition, the copies on nodes that still store data, in the new numbering.
#[must_use]
pub fn reassign(zones: &[ZoneRoom], demand: Demand, previous: &Sets) -> Option<Sets> {
    let mut network = Network::new(zones, demand, previous);
    let mut flow = network.keep(previous);
    while flow < PARTITIONS * demand.factor {
        flow += network.grow().then_some(1)?;
    }
    Some(network.sets())
}

struct Edge {
    to: usize,
    room: usize,
    cost: i32,
}

/// The edges by which one partition's units travel. Edge `e ^ 1` is always the way back of `e`.
struct Partition {
    strict: usize,
    free: usize,
    /// Per zone: from the strict half, from the free half.
    gates: Vec<(usize, usize)>,
    /// Per node: from the node's zone.
    copies: Vec<usize>,
}

struct Network {
    edges: Vec<Edge>,
    out: Vec<Vec<usize>>,
    partitions: Vec<Partition>,
    /// Per node: its edge to the sink.
    drains: Vec<usize>,
    /// Per node: its zone.
    zone_of: Vec<usize>,
}

const SOURCE: usize = 0;
const SINK: usize = 1;

impl Network {
    fn new(zones: &[ZoneRoom], demand: Demand, previous: &Sets) -> Self {
        let mut nodes: Vec<_> = zones
            .iter()
            .enumerate()
            .flat_map(|(zone, held)| held.nodes.iter().map(move |(node, room)| (*node, zone, *room)))
            .collect();
        nodes.sort_unstable();
        let mut network = Self {
            edges: Vec::new(),
            out: vec![Vec::new(), Vec::new()],
            partitions: Vec::with_capacity(PARTITIONS),
            drains: Vec::new(),
            zone_of: nodes.iter().map(|(_, zone, _)| *zone).collect(),
        };
        for (_, _, room) in &nodes {
            let vertex = network.vertex();
            let drain = network.connect(vertex, SINK, *room, 0);
            network.drains.push(drain);
        }
        for before in previous {
            network.add_partition(zones.len(), demand, before);
        }
        network
    }

    fn vertex(&mut self) -> usize {
        self.out.push(Vec::new());
        self.out.len() - 1
    }

    fn connect(&mut self, from: usize, to: usize, room: usize, cost: i32) -> usize {
        let edge = self.edges.len();
        self.edges.push(Edge { to, room, cost });
        self.edges.push(Edge { to: from, room: 0, cost: -cost });
        self.out[from].push(edge);
        self.out[to].push(edge + 1);
        edge
    }

    fn add_partition(&mut self, zones: usize, demand: Demand, before: &[NodeNumber]) {
        let extra = demand.factor - demand.zones;
        let (strict_half, free_half) = (self.vertex(), self.vertex());
        let strict = self.connect(SOURCE, strict_half, demand.zones, 0);
        let free = self.connect(SOURCE, free_half, extra, 0);
        let mut vertices = Vec::with_capacity(zones);
        let mut gates = Vec::with_capacity(zones);
        for _ in 0..zones {
            let zone = self.vertex();
            gates.push((self.connect(strict_half, zone, 1, 0), self.connect(free_half, zone, extra, 0)));
            vertices.push(zone);
        }
        let mut copies = Vec::with_capacity(self.drains.len());
        for node in 0..self.drains.len() {
            let held = before.iter().any(|number| usize::from(*number) == node);
            // Node vertices follow source and sink.
            copies.push(self.connect(vertices[self.zone_of[node]], 2 + node, 1, i32::from(!held)));
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
                if let Some(way) = ways.iter().find(|way| way.iter().all(|edge| self.edges[*edge].room > 0)) {
                    self.send(way);
                    kept += 1;
                }
            }
        }
        kept
    }

    fn send(&mut self, way: &[usize]) {
        for edge in way {
            self.edges[*edge].room -= 1;
            self.edges[*edge ^ 1].room += 1;
        }
    }

    /// Sends one more unit along a cheapest path. Returns whether there was one.
    fn grow(&mut self) -> bool {
        let mut cost = vec![i32::MAX; self.out.len()];
        let mut by = vec![usize::MAX; self.out.len()];
        let mut waits = vec![false; self.out.len()];
        let mut queue = VecDeque::from([SOURCE]);
        cost[SOURCE] = 0;
        while let Some(from) = queue.pop_front() {
            waits[from] = false;
            for edge in &self.out[from] {
                let Edge { to, room, cost: price } = self.edges[*edge];
                if room > 0 && cost[from] + price < cost[to] {
                    cost[to] = cost[from] + price;
                    by[to] = *edge;
                    if !std::mem::replace(&mut waits[to], true) {
                        queue.push_back(to);
                    }
                }
            }
        }
        if cost[SINK] == i32::MAX {
            return false;
        }
        let mut way = Vec::new();
        let mut at = SINK;
        while at != SOURCE {
            way.push(by[at]);
            at = self.edges[by[at] ^ 1].to;
        }
        self.send(&way);
        true
    }

    fn sets(&self) -> Sets {
        let holds = |copy: &usize| self.edges[*copy].room == 0;
        let set = |partition: &Partition| {
            let nodes = partition.copies.iter().zip(0..).filter(|(copy, _)| holds(copy));
            nodes.map(|(_, number)| number).collect()
        };
        self.partitions.iter().map(set).collect()
    }
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
    fn the_same_demand_again_moves_nothing() {
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
        fn a_reassignment_is_valid_and_possible_whenever_an_assignment_is(
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
