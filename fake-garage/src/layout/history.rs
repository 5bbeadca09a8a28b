//! The replicated state of a layout: what one node knows and sends to others.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::digest::{Digest, Digester};
use super::parameters::write_quorum;
use super::staging::Staging;
use super::tracker::Trackers;
use super::version::Version;
use super::{Change, NodeId, Parameters};

/// The replicated state of a layout, one copy per node (Garage admin reference §8).
///
/// Versions never change, so copies share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutHistory {
    /// Live versions, ascending and without gaps; the last one is current, the others drain. Never empty.
    pub(super) live: Vec<Arc<Version>>,
    /// Retired versions, ascending, at most five.
    pub(super) old: Vec<Arc<Version>>,
    /// What each node has acknowledged and synchronised.
    pub trackers: Trackers,
    /// Changes that wait for the next version.
    pub staging: Staging,
}

/// The few numbers that nodes exchange regularly to see whether they differ.
///
/// A different *content* of the same version number is not in it: conflicting nodes do not notice each other
/// between two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GossipDigest {
    /// Number of the current version.
    pub current: u64,
    /// How many versions are live.
    pub live: usize,
    /// Digest of the trackers.
    pub trackers: Digest,
    /// Digest of the staging area.
    pub staging: Digest,
}

impl LayoutHistory {
    /// The state of a node that starts for the first time at `now` (milliseconds on its clock).
    #[must_use]
    pub fn fresh(factor: usize, now: u64) -> Self {
        Self {
            live: vec![Arc::new(Version::empty(factor))],
            old: Vec::new(),
            trackers: Trackers::default(),
            staging: Staging::fresh(now),
        }
    }

    /// The current version.
    ///
    /// # Panics
    /// Never: there is always a live version.
    #[must_use]
    pub fn current(&self) -> &Arc<Version> {
        self.live.last().unwrap_or_else(|| unreachable!("a layout always has a live version"))
    }

    /// Live versions, ascending; the last one is current.
    #[must_use]
    pub fn live(&self) -> &[Arc<Version>] {
        &self.live
    }

    /// Retired versions, ascending.
    #[must_use]
    pub fn old(&self) -> &[Arc<Version>] {
        &self.old
    }

    /// Number of the oldest live version.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.live.first().map_or(0, |version| version.number)
    }

    /// Whether the current version can be worked with.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.current().is_consistent()
    }

    /// Nodes with a role in any live version.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        self.live.iter().flat_map(|version| version.nodes()).collect()
    }

    /// Nodes that store data in any live version.
    #[must_use]
    pub fn storage_nodes(&self) -> BTreeSet<NodeId> {
        self.live.iter().flat_map(|version| version.storage_nodes().iter().copied()).collect()
    }

    /// The newest version that every node has acknowledged.
    #[must_use]
    pub fn min_ack(&self) -> u64 {
        // Whoever is in several versions counts as often, which does not matter.
        self.trackers.ack.minimum(self.live.iter().flat_map(|version| version.nodes()), self.oldest())
    }

    /// S: the newest version that everyone relevant has synchronised to (§9).
    ///
    /// Where a write needs all copies (factors 1 and 2), everyone is every storage node of every live version. Else
    /// a write quorum of each set of copies in the older versions is enough.
    #[must_use]
    pub fn synchronised(&self) -> u64 {
        if self.live.len() == 1 {
            return self.current().number;
        }
        let sync = &self.trackers.sync;
        let oldest = self.oldest();
        if self.live.iter().all(|version| write_quorum(version.factor) == version.factor) {
            let storing = self.live.iter().flat_map(|version| version.storage_nodes());
            return sync.minimum(storing.copied(), oldest);
        }
        let older = &self.live[..self.live.len() - 1];
        let sets: BTreeSet<_> = older
            .iter()
            .flat_map(|version| version.replica_sets().map(|set| (write_quorum(version.factor), set)))
            .collect();
        let reached = sets.into_iter().map(|(quorum, set)| {
            let mut values: Vec<_> = set.into_iter().map(|id| sync.get(id, oldest)).collect();
            values.sort_unstable();
            values.len().checked_sub(quorum).and_then(|place| values.get(place).copied()).unwrap_or(oldest)
        });
        reached.min().unwrap_or(oldest).min(self.current().number)
    }

    /// Staged role changes that differ from the current roles, by identity: what a reader sees.
    ///
    /// `with_no_ops` also lists removals of nodes that have no role, as 2.3 and older do.
    pub fn visible_changes(&self, with_no_ops: bool) -> impl Iterator<Item = (NodeId, &Change)> + '_ {
        let current = self.current();
        self.staging.roles.iter().filter_map(move |(id, change)| {
            let role = current.role(*id);
            let same = role == change.value.as_ref();
            let shown = !same || (with_no_ops && role.is_none());
            shown.then_some((*id, &change.value))
        })
    }

    /// Staged parameters, if they differ from the current ones.
    #[must_use]
    pub fn visible_parameters(&self) -> Option<Parameters> {
        let staged = self.staging.parameters.value;
        (staged != self.current().parameters).then_some(staged)
    }

    /// What nodes exchange to see whether they differ.
    #[must_use]
    pub fn gossip_digest(&self) -> GossipDigest {
        GossipDigest {
            current: self.current().number,
            live: self.live.len(),
            trackers: self.trackers.digest(),
            staging: self.staging.digest(),
        }
    }

    /// Digest of everything: versions with their content, trackers, staging.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut digester = Digester::default();
        for versions in [&self.live, &self.old] {
            digester.count(versions.len());
            for version in versions {
                digester.digest(version.digest());
            }
        }
        digester.digest(self.trackers.digest()).digest(self.staging.digest()).finish()
    }
}
