//! What a mesh tells whoever drives it.

use super::{Applied, Connected, NodeIndex, Process};
use crate::layout::{Digest, LayoutEvent};

/// Something that happened, for whoever drives the mesh.
#[derive(Debug)]
pub enum Output {
    /// Something happened to a node's layout.
    Layout {
        /// The node.
        node: NodeIndex,
        /// What.
        event: LayoutEvent,
        /// What the node holds since.
        held: HeldContent,
    },
    /// A process started or ended.
    Process {
        /// The node.
        node: NodeIndex,
        /// Its state since.
        process: Process,
    },
    /// A node wrote a line to its log.
    Log {
        /// The node.
        node: NodeIndex,
        /// The line, with its level in front.
        line: String,
    },
    /// An apply has come to an end.
    Applied {
        /// The ticket that [`Mesh::apply`](super::Mesh::apply) gave.
        ticket: u64,
        /// What became of it.
        applied: Box<Applied>,
    },
    /// The time of a call is over, see [`Mesh::wake`](super::Mesh::wake).
    Woken {
        /// The ticket that [`Mesh::wake`](super::Mesh::wake) gave.
        ticket: u64,
    },
    /// A node gave up its connection to another one.
    Disconnected {
        /// The node that gave it up.
        node: NodeIndex,
    },
    /// Attempts to connect have come to an end, all of one call.
    Connected {
        /// The ticket that [`Mesh::connect`](super::Mesh::connect) gave.
        ticket: u64,
        /// One result per target, in their order.
        results: Vec<Connected>,
    },
}

/// What a node's layout holds right after something happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldContent {
    /// Digest of the node's content of the version that it is about: the same content, the same digest, on whichever
    /// node.
    pub content: Digest,
    /// Digest of the node's whole layout, staging and trackers included.
    pub layout: String,
}
