//! Answers about status, health, identity and connections (operator contract §1.4).

use std::collections::BTreeMap;

use serde::Deserialize;

/// Answer of `GetClusterStatus`: the view of one Garage process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Current layout version.
    pub layout_version: i64,
    /// Every node it knows.
    pub nodes: Vec<StatusNode>,
}

impl ClusterStatus {
    /// The node with this ID.
    pub fn node(&self, id: &str) -> Option<&StatusNode> {
        self.nodes.iter().find(|node| node.id.eq_ignore_ascii_case(id))
    }

    /// Whether the node with this ID is up.
    pub fn is_up(&self, id: &str) -> bool {
        self.node(id).is_some_and(|node| node.is_up)
    }
}

/// A node in the view of another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusNode {
    /// Node ID.
    pub id: String,
    /// RPC address; absent for a node that is down.
    #[serde(default)]
    pub addr: Option<String>,
    /// Host name that the node gossips.
    #[serde(default)]
    pub hostname: Option<String>,
    /// Whether it is connected.
    pub is_up: bool,
    /// Seconds since its last ping; absent for the answering node.
    #[serde(default)]
    pub last_seen_secs_ago: Option<u64>,
    /// Role in the current version.
    #[serde(default)]
    pub role: Option<NodeRole>,
    /// A storage node of an older live version without a role in the current one.
    #[serde(default)]
    pub draining: bool,
}

/// Role of a node in the current version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRole {
    /// Zone.
    pub zone: String,
    /// Tags in their order.
    pub tags: Vec<String>,
    /// Bytes; `None` for a gateway.
    #[serde(default)]
    pub capacity: Option<u64>,
}

/// Answer of `GetClusterHealth`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterHealth {
    /// `healthy`, `degraded` or `unavailable`.
    pub status: String,
    /// Nodes heard of.
    pub known_nodes: i64,
    /// Nodes connected, the answering one included.
    pub connected_nodes: i64,
    /// Nodes with capacity in any live version.
    pub storage_nodes: i64,
    /// Those that are up; `storageNodesOk` in Garage 2.0.
    #[serde(alias = "storageNodesOk")]
    pub storage_nodes_up: i64,
    /// Partitions in all.
    pub partitions: i64,
    /// Partitions with a quorum.
    pub partitions_quorum: i64,
    /// Partitions with all their nodes.
    pub partitions_all_ok: i64,
}

/// One entry of the answer of `ConnectClusterNodes`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ConnectResult {
    /// Whether the node is connected now.
    pub success: bool,
    /// Why not.
    #[serde(default)]
    pub error: Option<String>,
}

/// Answer of a node-scoped call: every addressed node is in exactly one map.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PerNode<T> {
    /// Values by node ID.
    pub(super) success: BTreeMap<String, T>,
    /// Errors by node ID.
    pub(super) error: BTreeMap<String, String>,
}

/// Value of `GetNodeInfo`, as far as the operator reads it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeInfo {
    /// Node ID as the node says it.
    pub(super) node_id: String,
}
