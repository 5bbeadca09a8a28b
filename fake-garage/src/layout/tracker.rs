//! What each node has acknowledged, synchronised, and seen synchronised.

use std::collections::BTreeMap;

use super::NodeId;
use super::digest::{Digest, Digester};

/// One number per node, which only grows. A node without an entry counts as the oldest live version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tracker(BTreeMap<NodeId, u64>);

impl Tracker {
    /// The value of `id`, at least `floor`.
    #[must_use]
    pub fn get(&self, id: NodeId, floor: u64) -> u64 {
        self.0.get(&id).copied().unwrap_or(floor).max(floor)
    }

    /// Raises the value of `id` to `value`. Returns whether that changed it.
    pub fn raise(&mut self, id: NodeId, value: u64) -> bool {
        let entry = self.0.entry(id).or_insert(0);
        let grows = value > *entry;
        *entry = value.max(*entry);
        grows
    }

    /// The smallest value among `ids`; `floor` where there are none.
    #[must_use]
    pub fn minimum(&self, ids: impl IntoIterator<Item = NodeId>, floor: u64) -> u64 {
        ids.into_iter().map(|id| self.get(id, floor)).min().unwrap_or(floor)
    }

    fn join(&mut self, other: &Self) -> bool {
        // Trackers of the same nodes, as nearly always: no entry has to be looked up.
        let mut changed = false;
        let mut same_nodes = self.0.len() == other.0.len();
        for ((id, here), (other_id, there)) in self.0.iter_mut().zip(&other.0) {
            same_nodes &= id == other_id;
            if !same_nodes {
                break;
            }
            changed |= *there > *here;
            *here = (*here).max(*there);
        }
        if same_nodes { changed } else { self.join_each(other) | changed }
    }

    fn join_each(&mut self, other: &Self) -> bool {
        other.0.iter().fold(false, |changed, (id, value)| self.raise(*id, *value) | changed)
    }

    fn put(&self, digester: &mut Digester) {
        digester.count(self.0.len());
        for (id, value) in &self.0 {
            digester.bytes(id.as_bytes()).number(*value);
        }
    }
}

/// The three trackers of the replicated state (Garage admin reference §9).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trackers {
    /// Newest version that a node has acknowledged: it writes to no older one any more.
    pub ack: Tracker,
    /// Newest version for which a node has finished its table synchronisation.
    pub sync: Tracker,
    /// Newest version that a node has seen everyone relevant synchronised to.
    pub sync_ack: Tracker,
}

impl Trackers {
    /// Takes the maximum per node and tracker (rule 3 of §8). Returns whether anything changed.
    pub fn join(&mut self, other: &Self) -> bool {
        self.ack.join(&other.ack) | self.sync.join(&other.sync) | self.sync_ack.join(&other.sync_ack)
    }

    /// Raises all three values of every node in `ids` to at least `floor`.
    pub fn clamp(&mut self, ids: impl IntoIterator<Item = NodeId>, floor: u64) {
        for id in ids {
            self.ack.raise(id, floor);
            self.sync.raise(id, floor);
            self.sync_ack.raise(id, floor);
        }
    }

    /// The digest that nodes exchange to see whether their trackers differ.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut digester = Digester::default();
        for tracker in [&self.ack, &self.sync, &self.sync_ack] {
            tracker.put(&mut digester);
        }
        digester.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_3_trackers_join_by_the_maximum_per_node() {
        let (one, two) = (NodeId::new([1; 32]), NodeId::new([2; 32]));
        let mut here = Trackers::default();
        here.ack.raise(one, 5);
        here.ack.raise(two, 1);
        let mut there = Trackers::default();
        there.ack.raise(one, 3);
        there.ack.raise(two, 4);
        assert!(here.join(&there));
        assert_eq!((here.ack.get(one, 0), here.ack.get(two, 0)), (5, 4));
        assert!(!here.join(&there));
    }

    #[test]
    fn trackers_of_the_same_nodes_join_as_those_of_others_do() {
        let [one, two] = [1, 2].map(|byte| NodeId::new([byte; 32]));
        let tracker = |values: [u64; 2]| Tracker([one, two].into_iter().zip(values).collect());
        let (mut fast, other) = (tracker([5, 1]), tracker([3, 4]));
        let mut slow = fast.clone();
        assert!(fast.join(&other) && slow.join_each(&other));
        assert_eq!((&fast, slow), (&tracker([5, 4]), fast.clone()));
        assert!(!fast.join(&other));
    }

    #[test]
    fn trackers_that_share_only_their_first_nodes_join_whole() {
        let tracker = |entries: &[(u8, u64)]| {
            Tracker(entries.iter().map(|(byte, value)| (NodeId::new([*byte; 32]), *value)).collect())
        };
        let mut here = tracker(&[(1, 1), (3, 9)]);
        assert!(here.join(&tracker(&[(1, 2), (2, 5)])));
        assert_eq!(here, tracker(&[(1, 2), (2, 5), (3, 9)]));
    }

    #[test]
    fn a_value_never_shows_below_the_oldest_live_version() {
        assert_eq!(Tracker::default().get(NodeId::new([1; 32]), 7), 7);
    }
}
