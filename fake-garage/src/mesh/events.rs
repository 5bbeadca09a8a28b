//! What is going to happen in a mesh, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::Arc;

use super::Time;
use super::connect::Dialled;
use super::node::{NodeIndex, StatusReport};
use crate::layout::{Computed, LayoutHistory, NodeId, SyncRound, Trackers};

/// Something that happens to a node at a certain time. It is void if the node has been started anew since.
#[derive(Debug)]
pub(super) enum Event {
    /// The loop that dials and pings comes round.
    Peering,
    /// It is time to tell the peers how this node is.
    Status,
    /// A message of `from` arrives.
    Arrival { from: NodeIndex, from_boot: u64, message: Message },
    /// A received state has been checked.
    Checked(Arc<LayoutHistory>),
    /// A synchronisation round is through.
    Synchronised(SyncRound),
    /// No answer came to a ping.
    PingTimeout { peer: NodeId, sequence: u64 },
    /// A version has been computed for a call.
    Computed { ticket: u64, computed: Box<Computed> },
    /// A connection attempt for a call has come to an end.
    Dialled { ticket: u64, place: usize, outcome: Dialled },
    /// A connection over slow links stands.
    Linked { to: NodeIndex, boot: u64 },
    /// A call has waited long enough.
    Woken { ticket: u64 },
}

/// What nodes send each other.
#[derive(Debug, Clone)]
pub(super) enum Message {
    Ping { sequence: u64, peers: u64 },
    Pong { sequence: u64, peers: u64 },
    Peers { known: Arc<Vec<(NodeId, SocketAddr)>>, answer: bool },
    Status(Arc<StatusReport>),
    PullState,
    PullTrackers,
    State(Arc<LayoutHistory>),
    Trackers(Arc<Trackers>),
}

/// An event with the node that it happens to.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) at: Time,
    sequence: u64,
    pub(super) node: NodeIndex,
    pub(super) boot: u64,
    pub(super) event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// Events by time; those of one moment in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Reverse<Due>>,
    added: u64,
}

impl EventQueue {
    pub(super) fn add(&mut self, at: Time, node: NodeIndex, boot: u64, event: Event) {
        self.added += 1;
        self.heap.push(Reverse(Due { at, sequence: self.added, node, boot, event }));
    }

    pub(super) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|due| due.0.at)
    }

    pub(super) fn take_until(&mut self, now: Time) -> Option<Due> {
        if self.next_time()? > now {
            return None;
        }
        self.heap.pop().map(|due| due.0)
    }
}
