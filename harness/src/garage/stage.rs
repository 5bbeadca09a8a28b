//! What a cell gets beside its scope: a mesh of its own, and the hub that it lives in.

use super::hub::Hub;
use super::mesh::Mesh;

/// The stage of a cell.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Its mesh.
    pub mesh: Mesh,
    /// The hub, for faults and for nodes that no operator runs. Only for what belongs to the cell's own mesh.
    pub hub: Hub,
}
