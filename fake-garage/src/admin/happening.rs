//! What happens in a cluster, for whoever drives it.

use std::sync::Arc;

use super::request::Response;
use crate::layout::LayoutEvent;
use crate::mesh::{HeldContent, NodeIndex, Process};

/// Something that happened in a cluster, in the order in which it did.
#[derive(Debug)]
pub enum Happening {
    /// A call was answered, or (with `None`) will never be: the process ended.
    Answered {
        /// The number the caller gave the call.
        call: u64,
        /// The node that was called.
        node: NodeIndex,
        /// The answer.
        response: Option<Response>,
        /// The node's layout right then.
        after: LayoutMark,
    },
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
        /// The line.
        line: String,
    },
}

/// Where a node's layout stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutMark {
    /// How often the layout began anew.
    pub incarnation: u64,
    /// Number of the current version.
    pub version: u64,
    /// Digest of everything.
    pub digest: Arc<str>,
}
