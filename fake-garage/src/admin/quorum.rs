//! Whether the replicated tables can be read and written (Garage admin reference §1 and §10).

use super::error::ApiError;
use super::nodes::{Patience, Reachable, reachable};
use crate::layout::{NodeId, write_quorum};
use crate::mesh::{Mesh, NodeIndex};

/// What a call does with tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads them.
    Read,
    /// It changes them.
    Write,
}

/// Checks that enough storage nodes can be reached from `node`. `Ok(false)` means that nobody knows yet.
///
/// Tables are copied to every storage node of the current version.
pub fn check(mesh: &Mesh, node: NodeIndex, access: Access, patience: Patience) -> Result<bool, ApiError> {
    let current = mesh.node(node).layout().current();
    if !current.is_consistent() {
        return Err(ApiError::internal("Layout not ready"));
    }
    let nodes = current.storage_nodes();
    let to_write = write_quorum(nodes.len());
    let (needed, sets) = match access {
        Access::Read => (nodes.len() + 1 - to_write, "None"),
        Access::Write => (to_write, "Some(1)"),
    };
    let answers: Vec<_> = nodes.iter().map(|id| (*id, reachable(mesh, node, *id, patience))).collect();
    let reached = answers.iter().filter(|(_, answer)| matches!(answer, Reachable::Yes(_))).count();
    let pending = answers.iter().filter(|(_, answer)| *answer == Reachable::Hangs).count();
    if reached >= needed {
        return Ok(true);
    }
    if reached + pending >= needed {
        return Ok(false);
    }
    let errors: Vec<_> = answers.into_iter().filter_map(|(id, answer)| refusal(id, answer, access)).collect();
    Err(ApiError::new(
        503,
        "ServiceUnavailable",
        format!(
            "Internal error: Could not reach quorum of {needed} (sets={sets}). {reached} of {} request succeeded, \
             others returned errors: {errors:?}",
            nodes.len()
        ),
    ))
}

fn refusal(id: NodeId, answer: Reachable, access: Access) -> Option<String> {
    let Reachable::No(text) = answer else { return None };
    Some(match access {
        Access::Read => text,
        Access::Write => format!("{}: {text}", id.short()),
    })
}
