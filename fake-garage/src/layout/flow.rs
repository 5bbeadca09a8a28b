//! The cheapest of the largest flows through a network.
//!
//! Primal and dual in turn: prices of the vertices tell which edges lie on a cheapest path, and as many units as
//! possible are sent along those at once (Dinic's algorithm); then the prices rise. Costs are small numbers, so that
//! there are only a few rounds, however many units there are.

/// Number of a vertex.
pub(super) type Vertex = usize;

/// Number of an edge. Edge `e ^ 1` is always the way back of `e`.
pub(super) type EdgeNumber = usize;

/// Where units come from.
pub(super) const SOURCE: Vertex = 0;
/// Where units go to.
pub(super) const SINK: Vertex = 1;

/// Kept small: a network of 256 nodes has more than 100,000 of them.
#[derive(Debug, Clone, Copy)]
struct Edge {
    to: u32,
    room: u16,
    cost: i16,
}

/// A network with what flows through it.
#[derive(Debug)]
pub(super) struct Network {
    edges: Vec<Edge>,
    out: Vec<Vec<u32>>,
    /// Per vertex, such that no edge with room costs less than its ends differ by.
    prices: Vec<i32>,
}

const UNREACHED: u32 = u32::MAX;

impl Network {
    /// A network of a source and a sink that will have about so many `edges`.
    pub(super) fn for_edges(edges: usize) -> Self {
        let edges = Vec::with_capacity(2 * edges);
        Self { edges, out: vec![Vec::new(), Vec::new()], prices: vec![0, 0] }
    }

    /// Adds a vertex.
    pub(super) fn vertex(&mut self) -> Vertex {
        self.out.push(Vec::new());
        self.prices.push(0);
        self.out.len() - 1
    }

    /// Adds an edge by which `room` units may travel, each at `cost`, which must not be negative.
    pub(super) fn connect(&mut self, from: Vertex, to: Vertex, room: u16, cost: i16) -> EdgeNumber {
        let edge = self.edges.len();
        self.edges.push(Edge { to: narrow(to), room, cost });
        self.edges.push(Edge { to: narrow(from), room: 0, cost: -cost });
        self.out[from].push(narrow(edge));
        self.out[to].push(narrow(edge + 1));
        edge
    }

    /// How many more units may travel by an edge.
    pub(super) fn room(&self, edge: EdgeNumber) -> u16 {
        self.edges[edge].room
    }

    /// Sends a unit along a way that has room. Before [`Network::fill`], only along ways that cost nothing.
    pub(super) fn send(&mut self, way: &[EdgeNumber]) {
        for edge in way {
            self.edges[*edge].room -= 1;
            self.edges[*edge ^ 1].room += 1;
        }
    }

    /// Sends as many further units as there is room for, as cheaply as that many can be sent. Returns how many.
    pub(super) fn fill(&mut self) -> usize {
        let mut sent = 0;
        while self.raise_prices() {
            while let Some(mut levels) = self.levels() {
                sent += self.send_along(&mut levels);
            }
        }
        sent
    }

    /// What an edge costs beyond the difference of prices at its ends; not negative where it has room.
    fn surcharge(&self, from: Vertex, edge: Edge) -> u32 {
        let surcharge = i32::from(edge.cost) + self.prices[from] - self.prices[edge.to as usize];
        surcharge.unsigned_abs()
    }

    /// Raises every price by the distance from the source, so that cheapest paths have no surcharge. Returns whether
    /// the sink can be reached.
    fn raise_prices(&mut self) -> bool {
        let mut distance = vec![UNREACHED; self.out.len()];
        distance[SOURCE] = 0;
        // Vertices by their distance, which is a small number.
        let mut waiting = vec![vec![SOURCE]];
        let mut near = 0;
        while near < waiting.len() && distance[SINK] as usize > near {
            while let Some(from) = waiting[near].pop() {
                if distance[from] as usize != near {
                    continue;
                }
                for edge in &self.out[from] {
                    let edge = self.edges[*edge as usize];
                    if edge.room == 0 {
                        continue;
                    }
                    let to = edge.to as usize;
                    let reached = distance[from] + self.surcharge(from, edge);
                    if reached < distance[to] {
                        distance[to] = reached;
                        let place = reached as usize;
                        waiting.resize_with(waiting.len().max(place + 1), Vec::new);
                        waiting[place].push(to);
                    }
                }
            }
            near += 1;
        }
        let farthest = distance[SINK];
        if farthest == UNREACHED {
            return false;
        }
        for (price, distance) in self.prices.iter_mut().zip(distance) {
            *price = price.saturating_add_unsigned(distance.min(farthest));
        }
        true
    }

    /// How many edges without a surcharge lead to each vertex, at least. `None` where they do not lead to the sink.
    fn levels(&self) -> Option<Vec<u32>> {
        let mut levels = vec![UNREACHED; self.out.len()];
        levels[SOURCE] = 0;
        let mut reached = vec![SOURCE];
        let mut next = 0;
        while next < reached.len() {
            let from = reached[next];
            next += 1;
            if levels[from] >= levels[SINK] {
                break;
            }
            for edge in &self.out[from] {
                let edge = self.edges[*edge as usize];
                let to = edge.to as usize;
                if edge.room > 0 && levels[to] == UNREACHED && self.surcharge(from, edge) == 0 {
                    levels[to] = levels[from] + 1;
                    reached.push(to);
                }
            }
        }
        (levels[SINK] != UNREACHED).then_some(levels)
    }

    /// Sends units along edges without a surcharge from level to level until no such path has room.
    fn send_along(&mut self, levels: &mut [u32]) -> usize {
        let mut sent = 0;
        // Edges before these lead nowhere any more.
        let mut next = vec![0; self.out.len()];
        let mut way: Vec<EdgeNumber> = Vec::new();
        let mut at = SOURCE;
        loop {
            if at == SINK {
                self.send(&way);
                sent += 1;
                way.clear();
                at = SOURCE;
            } else if let Some(edge) = self.next_edge(at, levels, &mut next) {
                way.push(edge);
                at = self.edges[edge].to as usize;
            } else if let Some(edge) = way.pop() {
                levels[at] = UNREACHED;
                at = self.edges[edge ^ 1].to as usize;
            } else {
                return sent;
            }
        }
    }

    fn next_edge(&self, from: Vertex, levels: &[u32], next: &mut [usize]) -> Option<EdgeNumber> {
        while let Some(number) = self.out[from].get(next[from]) {
            let edge = self.edges[*number as usize];
            let leads_on = edge.room > 0 && levels[edge.to as usize] == levels[from] + 1;
            if leads_on && self.surcharge(from, edge) == 0 {
                return Some(*number as usize);
            }
            next[from] += 1;
        }
        None
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheaper_of_two_ways_is_taken() {
        let mut network = Network::for_edges(8);
        let middle = network.vertex();
        network.connect(SOURCE, middle, 1, 0);
        let dear = network.connect(middle, SINK, 1, 1);
        let cheap = network.connect(middle, SINK, 1, 0);
        assert_eq!(network.fill(), 1);
        assert_eq!([dear, cheap].map(|way| network.room(way)), [1, 0]);
    }

    #[test]
    fn a_unit_gives_way_where_that_is_cheapest_for_all() {
        // Both could use the free drain; the one whose other drain costs less gives way.
        let mut network = Network::for_edges(8);
        let (one, two) = (network.vertex(), network.vertex());
        let (free, first, second) = (network.vertex(), network.vertex(), network.vertex());
        let begin = network.connect(SOURCE, one, 1, 0);
        network.connect(SOURCE, two, 1, 0);
        let to_free = network.connect(one, free, 1, 0);
        let gives_way = network.connect(one, first, 1, 1);
        let stays = network.connect(two, free, 1, 0);
        let dear = network.connect(two, second, 1, 3);
        let drain = network.connect(free, SINK, 1, 0);
        network.connect(first, SINK, 1, 0);
        network.connect(second, SINK, 1, 0);
        network.send(&[begin, to_free, drain]);
        assert_eq!(network.fill(), 1);
        assert_eq!([to_free, gives_way, stays, dear].map(|edge| network.room(edge)), [1, 0, 0, 1]);
    }

    #[test]
    fn no_more_is_sent_than_there_is_room_for() {
        let mut network = Network::for_edges(8);
        let middle = network.vertex();
        network.connect(SOURCE, middle, 5, 0);
        network.connect(middle, SINK, 3, 2);
        assert_eq!(network.fill(), 3);
        assert_eq!(network.fill(), 0);
    }
}
