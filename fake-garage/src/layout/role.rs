//! What a node does in a layout, and changes to that.

use serde::Serialize;

/// The role of a node: its zone, its capacity if it stores data, and free labels.
///
/// The order (zone, then capacity with gateways first, then tags) decides between two values of one timestamp
/// (Garage admin reference §6, "the same id twice").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Role {
    /// Failure domain. Any text, the empty one included.
    pub zone: String,
    /// Bytes that the node may store; `None` makes it a gateway.
    pub capacity: Option<u64>,
    /// Free labels, kept as they were given.
    pub tags: Vec<String>,
}

impl Role {
    /// Whether nodes of this role store data.
    #[must_use]
    pub const fn stores(&self) -> bool {
        self.capacity.is_some()
    }
}

/// A staged value for one node: a role, or `None` for the removal of the one it has.
///
/// A removal is smaller than any role.
pub type Change = Option<Role>;
