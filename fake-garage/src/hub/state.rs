//! What the control API tells about meshes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

use super::registry::{ControlError, Registry};
use crate::admin::Cluster;
use crate::admin::layout::{HistoryBody, LayoutBody, history_body, layout_body};
use crate::mesh::{NodeIndex, NodeState, StateTable};

/// `GET /state`.
#[derive(Debug, Serialize)]
pub struct HubState {
    meshes: BTreeMap<String, MeshState>,
    routes: BTreeMap<String, BTreeMap<String, Vec<IpAddr>>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MeshState {
    /// By how many milliseconds the mesh's time is behind the machine's, which it falls where there is too much to do.
    behind_ms: u64,
    nodes: Vec<NodeState>,
}

/// A node's whole layout, read from outside.
#[derive(Debug, Serialize)]
pub struct NodeLayout {
    #[serde(flatten)]
    node: NodeState,
    layout: LayoutBody,
    history: HistoryBody,
}

impl HubState {
    /// The state of everything in `registry`.
    #[must_use]
    pub fn of(registry: &Registry) -> Self {
        let meshes = registry.meshes().into_iter().map(|actor| {
            let StateTable(nodes) = actor.read(|cluster| StateTable::of(cluster.mesh()));
            let behind_ms = u64::try_from(actor.behind().as_millis()).unwrap_or(u64::MAX);
            (actor.name.clone(), MeshState { behind_ms, nodes })
        });
        Self { meshes: meshes.collect(), routes: registry.shared().directory.routes() }
    }
}

impl NodeLayout {
    /// The layout of `node`.
    #[must_use]
    pub fn of(cluster: &Cluster, node: NodeIndex) -> Self {
        let history = cluster.mesh().node(node).layout().history();
        Self {
            node: NodeState::of(cluster.mesh(), node),
            layout: layout_body(history, cluster.profile()),
            history: history_body(history),
        }
    }
}

/// `GET /table`: the state of every node as text, of one mesh or of all.
pub fn table(registry: &Registry, mesh: Option<&str>) -> Result<String, ControlError> {
    let meshes = match mesh {
        Some(mesh) => vec![registry.mesh(mesh)?],
        None => registry.meshes(),
    };
    let tables = meshes.into_iter().map(|actor| {
        let table = actor.read(|cluster| StateTable::of(cluster.mesh()));
        format!("mesh {}{}\n{table}", actor.name, lag(actor.behind()))
    });
    Ok(tables.collect::<Vec<_>>().join("\n"))
}

/// What is said of a mesh whose time is behind.
fn lag(behind: Duration) -> String {
    if behind.is_zero() {
        return String::new();
    }
    format!(" (its time is {:.1} s behind: the machine is too slow for it)", behind.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mesh_that_is_behind_says_so_and_another_does_not() {
        assert_eq!(lag(Duration::ZERO), "");
        assert_eq!(
            lag(Duration::from_millis(1_260)),
            " (its time is 1.3 s behind: the machine is too slow for it)"
        );
    }
}
