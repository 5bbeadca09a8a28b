//! What the control API tells about meshes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::registry::Registry;
use crate::admin::Cluster;
use crate::admin::layout::{HistoryBody, LayoutBody, history_body, layout_body};
use crate::layout::NodeId;
use crate::mesh::{Node, NodeIndex, Process};

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

/// A node as the hub knows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    name: String,
    address: IpAddr,
    node_id: NodeId,
    process: &'static str,
    /// Whether it runs and answers.
    up: bool,
    incarnation: u64,
    layout_version: u64,
    /// Digest of the node's whole layout state.
    layout_digest: String,
    /// Digest of the current version's content: equal numbers with different contents are a conflict.
    version_digest: String,
    peers_up: usize,
    roles: Vec<NodeId>,
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
            let nodes =
                actor.read(|cluster| cluster.mesh().nodes().map(|(_, node)| node_state(node)).collect());
            (actor.name.clone(), MeshState { nodes })
        });
        Self { meshes: meshes.collect(), routes: registry.shared().directory.routes() }
    }
}

impl NodeLayout {
    /// The layout of `node`.
    #[must_use]
    pub fn of(cluster: &Cluster, node: NodeIndex) -> Self {
        let node = cluster.mesh().node(node);
        let history = node.layout().history();
        Self {
            node: node_state(node),
            layout: layout_body(history, cluster.profile()),
            history: history_body(history),
        }
    }
}

fn node_state(node: &Node) -> NodeState {
    let current = node.layout().current();
    NodeState {
        name: node.config().name.clone(),
        address: node.config().address,
        node_id: node.id(),
        process: match node.process() {
            Process::Running => "running",
            Process::Frozen => "frozen",
            Process::Ended { .. } => "ended",
        },
        up: node.is_running(),
        incarnation: node.incarnation(),
        layout_version: current.number,
        layout_digest: node.layout_digest().to_owned(),
        version_digest: current.digest().to_string(),
        peers_up: node.peers().values().filter(|peer| peer.is_up()).count(),
        roles: current.nodes().collect(),
    }
}
