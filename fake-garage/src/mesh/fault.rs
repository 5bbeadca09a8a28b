//! What can be wrong with a node that runs: its clock, and trackers that do not advance.

use super::{Mesh, NodeIndex};
use crate::layout::Held;

impl Mesh {
    /// Sets a node's wall clock `offset` milliseconds ahead of the mesh's; `None` undoes that.
    ///
    /// Only what reads the wall clock changes: the times of staged changes and of the staging area, and when tokens
    /// expire. Pings, gossip and timeouts go by the monotonic clock. It outlives restarts of the process.
    pub fn set_clock(&mut self, node: NodeIndex, offset: Option<i64>) {
        self.node_mut(node).skew = offset;
    }

    /// Holds these of a node's own trackers where they are, and lets the others go. It outlives restarts.
    pub fn hold_trackers(&mut self, node: NodeIndex, held: Held) {
        let freed = self.node(node).held.sync && !held.sync;
        self.node_mut(node).held = held;
        let merge = self.node_mut(node).layout.hold(held);
        if !self.node(node).is_running() {
            return;
        }
        let changed = merge.changed;
        self.after_merge(node, merge);
        if changed {
            self.node_mut(node).save_layout();
            self.spread_trackers(node);
        }
        if freed {
            // The tables that were held up are synchronised now, in a round as long as any.
            self.node_mut(node).round = None;
            self.start_sync(node);
        }
    }
}
