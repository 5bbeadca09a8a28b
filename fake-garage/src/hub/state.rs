//! What the control API tells about meshes.

use std::collections::BTreeMap;
use std::net::IpAddr;

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
struct MeshState {
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
            (actor.name.clone(), MeshState { nodes })
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
        format!("mesh {}\n{table}", actor.name)
    });
    Ok(tables.collect::<Vec<_>>().join("\n"))
}
