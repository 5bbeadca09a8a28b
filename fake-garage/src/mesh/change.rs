//! Layout changes that a call on a node makes.

use super::events::Event;
use super::node::NodeIndex;
use super::{Mesh, Output};
use crate::layout::{
    ApplyError, ComputeError, Computed, LayoutEvent, NodeId, SkipError, StageError, StageRequest, Statistics,
    Version,
};
use std::sync::Arc;

/// What became of an apply that was accepted.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The computed version. Another one may have its number by now: an answered apply can be dropped.
    pub version: Arc<Version>,
    /// Figures about it.
    pub statistics: Statistics,
}

/// Whose trackers a call raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedNodes {
    /// Nodes whose acknowledgement was raised.
    pub ack: Vec<NodeId>,
    /// Nodes whose synchronisation was raised.
    pub sync: Vec<NodeId>,
}

impl Mesh {
    /// Stages changes on a node. It sees them when this returns; the others soon after.
    pub fn stage(&mut self, node: NodeIndex, request: &StageRequest) -> Result<(), StageError> {
        let now = self.wall_clock(node);
        let state = self.node(node).layout.stage(request, now)?;
        let merge = self.node_mut(node).layout.adopt(&state);
        self.merged(node, merge);
        Ok(())
    }

    /// Discards on a node what is staged.
    pub fn revert(&mut self, node: NodeIndex) {
        let state = self.node(node).layout.revert(self.wall_clock(node));
        let mut merge = self.node_mut(node).layout.adopt(&state);
        merge.events.push(LayoutEvent::Reverted);
        self.merged(node, merge);
    }

    /// What an apply on this node would give.
    pub fn preview(&self, node: NodeIndex) -> Result<Computed, ComputeError> {
        self.node(node).layout.preview(self.wall_clock(node))
    }

    /// Begins to apply what is staged on a node as version `number`, and gives a ticket.
    ///
    /// [`Output::Applied`] tells that it is done, for pacings without computation time at once.
    pub fn apply(&mut self, node: NodeIndex, number: u64) -> Result<u64, ApplyError> {
        let computed = self.node(node).layout.apply(number, self.wall_clock(node))?;
        let ticket = self.ticket();
        let range = if number == 1 { &self.pacing.apply_first } else { &self.pacing.apply };
        let nodes = u32::try_from(computed.history.current().storage_nodes().len()).unwrap_or(u32::MAX);
        let delay = self.random.duration(range) * nodes;
        if delay.is_zero() {
            self.computed(node, ticket, computed);
        } else {
            let computed = Box::new(computed);
            self.schedule(self.now + delay, node, Event::Computed { ticket, computed });
        }
        Ok(ticket)
    }

    /// As [`Mesh::apply`], but another version of that number, with nothing of what is staged here, comes first.
    pub fn apply_too_late(&mut self, node: NodeIndex, number: u64) -> Result<u64, ApplyError> {
        let now = self.wall_clock(node);
        let computed = self.node(node).layout.apply(number, now)?;
        let mut elsewhere = self.node(node).layout.clone();
        elsewhere.adopt(&elsewhere.revert(now));
        if let Ok(rival) = elsewhere.apply(number, now) {
            let merge = self.node_mut(node).layout.merge(&rival.history);
            self.merged(node, merge);
        }
        let ticket = self.ticket();
        self.computed(node, ticket, computed);
        Ok(ticket)
    }

    pub(super) fn computed(&mut self, node: NodeIndex, ticket: u64, computed: Computed) {
        let merge = self.node_mut(node).layout.adopt(&computed.history);
        self.merged(node, merge);
        let version = Arc::clone(computed.history.current());
        let applied = Box::new(Applied { version, statistics: computed.statistics });
        self.outputs.push(Output::Applied { ticket, applied });
    }

    /// Stops waiting on a node for those that it does not see up.
    pub fn skip_dead_nodes(
        &mut self,
        node: NodeIndex,
        version: u64,
        allow_missing_data: bool,
    ) -> Result<SkippedNodes, SkipError> {
        let here = self.node(node);
        let skipped = here.layout.skip_dead_nodes(version, allow_missing_data, |id| here.sees_up(id))?;
        let merge = self.node_mut(node).layout.adopt(&skipped.history);
        self.merged(node, merge);
        Ok(SkippedNodes { ack: skipped.ack, sync: skipped.sync })
    }
}
