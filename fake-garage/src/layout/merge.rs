//! What a node does with another node's state: the merge rules of Garage admin reference §8, in their order.

use std::sync::Arc;

use super::digest::Digest;
use super::history::LayoutHistory;
use super::tracker::Trackers;
use super::version::Version;

/// What happened to a node's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutEvent {
    /// A version computed on this node became current.
    Applied {
        /// Current version before.
        from: u64,
        /// Current version after.
        to: u64,
    },
    /// Newer versions of another node were appended.
    Merged {
        /// Current version before.
        from: u64,
        /// Current version after.
        to: u64,
    },
    /// The whole state, staging included, was replaced by that of a node far ahead (rule 1, "swallow").
    Replaced {
        /// Current version before.
        from: u64,
        /// Current version after.
        to: u64,
    },
    /// Another content of a version that this node has; its own stays (rule 2).
    Conflict {
        /// The version.
        version: u64,
        /// Digest of the content that was not taken.
        other: Digest,
    },
    /// A version computed on this node was dropped: another content of its number had come first.
    Dropped {
        /// The version.
        version: u64,
        /// Digest of the content that was dropped.
        other: Digest,
    },
    /// A live version became historical.
    Retired {
        /// The version.
        version: u64,
    },
    /// What was staged here was discarded on this node's request.
    Reverted,
    /// The layout began anew at version 0.
    Reset {
        /// Current version before.
        from: u64,
    },
}

/// What a merge did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merge {
    /// Whether anything changed: then the state is gossiped on and saved.
    pub changed: bool,
    /// What is worth telling.
    pub events: Vec<LayoutEvent>,
}

impl Merge {
    fn append(&mut self, other: Self) {
        self.changed |= other.changed;
        self.events.extend(other.events);
    }
}

impl LayoutHistory {
    /// Takes over what `incoming` has and this state lacks. Own trackers are not refreshed here, see
    /// [`LocalLayout`](super::LocalLayout).
    pub fn merge(&mut self, incoming: &Self) -> Merge {
        // Rule 5: what cannot be worked with is ignored, unless the local state is no better (a fresh node).
        if self.is_consistent() && !incoming.is_consistent() {
            return Merge::default();
        }
        // Rule 1.
        if self.current().number < incoming.oldest() {
            return self.replace(incoming);
        }
        let mut merge = self.append_versions(incoming);
        merge.changed |= self.trackers.join(&incoming.trackers);
        merge.changed |= self.staging.join(&incoming.staging);
        merge
    }

    /// Takes over trackers alone. Returns whether anything changed.
    pub fn merge_trackers(&mut self, incoming: &Trackers) -> bool {
        self.trackers.join(incoming)
    }

    fn replace(&mut self, incoming: &Self) -> Merge {
        let from = self.current().number;
        self.clone_from(incoming);
        Merge { changed: true, events: vec![LayoutEvent::Replaced { from, to: self.current().number }] }
    }

    /// Rule 2: versions are appended in order; of two contents of one number the local one stays.
    fn append_versions(&mut self, incoming: &Self) -> Merge {
        let from = self.current().number;
        let mut merge = Merge::default();
        for version in &incoming.live {
            merge.append(self.append_version(version));
        }
        let to = self.current().number;
        if to > from {
            merge.events.push(LayoutEvent::Merged { from, to });
        }
        merge
    }

    fn append_version(&mut self, version: &Arc<Version>) -> Merge {
        if version.number == self.current().number + 1 {
            self.live.push(Arc::clone(version));
            return Merge { changed: true, events: Vec::new() };
        }
        let present = self.live.iter().find(|present| present.number == version.number);
        let conflict = present.is_some_and(|present| !Arc::ptr_eq(present, version) && present != version);
        let events =
            conflict.then_some(LayoutEvent::Conflict { version: version.number, other: version.digest() });
        Merge { changed: false, events: events.into_iter().collect() }
    }
}
