//! What separates nodes.

use std::collections::BTreeSet;

use super::NodeIndex;

/// How two nodes are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Packets vanish; connections stay open and nobody is told.
    Silent,
    /// Connections are refused and open ones torn.
    Reset,
}

/// Which nodes cannot reach each other.
#[derive(Debug, Default)]
pub(super) struct Network {
    silent: BTreeSet<(NodeIndex, NodeIndex)>,
    reset: BTreeSet<(NodeIndex, NodeIndex)>,
}

fn pair(one: NodeIndex, other: NodeIndex) -> (NodeIndex, NodeIndex) {
    (one.min(other), one.max(other))
}

impl Network {
    pub(super) fn cut(&mut self, one: NodeIndex, other: NodeIndex, cut: Cut) {
        match cut {
            Cut::Silent => self.silent.insert(pair(one, other)),
            Cut::Reset => self.reset.insert(pair(one, other)),
        };
    }

    pub(super) fn heal(&mut self) {
        self.silent.clear();
        self.reset.clear();
    }

    pub(super) fn between(&self, one: NodeIndex, other: NodeIndex) -> Option<Cut> {
        if self.reset.contains(&pair(one, other)) {
            Some(Cut::Reset)
        } else if self.silent.contains(&pair(one, other)) {
            Some(Cut::Silent)
        } else {
            None
        }
    }
}
