//! `GetClusterStatus` (Garage admin reference §4).

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde::Serialize;

use super::profile::Profile;
use crate::layout::{NodeId, Role};
use crate::mesh::{Mesh, Node, NodeIndex};

/// `GetClusterStatus`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusBody {
    layout_version: u64,
    nodes: Vec<NodeBody>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeBody {
    id: NodeId,
    garage_version: Option<&'static str>,
    addr: Option<SocketAddr>,
    hostname: Option<String>,
    is_up: bool,
    last_seen_secs_ago: Option<u64>,
    role: Option<AssignedRole>,
    draining: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_partition: Option<FreeSpace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata_partition: Option<FreeSpace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resync_queue_len: Option<u64>,
}

/// A role in the current version.
#[derive(Debug, Clone, Serialize)]
pub struct AssignedRole {
    zone: String,
    tags: Vec<String>,
    capacity: Option<u64>,
}

impl From<&Role> for AssignedRole {
    fn from(role: &Role) -> Self {
        Self { zone: role.zone.clone(), tags: role.tags.clone(), capacity: role.capacity }
    }
}

/// Bytes on a disk. Every fake node has the same disk, and nothing is stored on it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FreeSpace {
    available: u64,
    total: u64,
}

impl FreeSpace {
    /// The disk of every node.
    pub const DISK: Self = Self { available: 1 << 37, total: 1 << 38 };

    /// Bytes that are free.
    #[must_use]
    pub const fn available(self) -> u64 {
        self.available
    }

    /// All bytes.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.total
    }
}

/// The cluster as `index` sees it.
#[must_use]
pub fn status_body(mesh: &Mesh, index: NodeIndex, profile: Profile) -> StatusBody {
    let node = mesh.node(index);
    let history = node.layout().history();
    let mut ids: BTreeSet<NodeId> = node.peers().keys().copied().collect();
    ids.insert(node.id());
    ids.extend(history.current().nodes());
    ids.extend(history.storage_nodes());
    StatusBody {
        layout_version: history.current().number,
        nodes: ids.into_iter().map(|id| node_body(mesh, node, id, profile)).collect(),
    }
}

fn node_body(mesh: &Mesh, node: &Node, id: NodeId, profile: Profile) -> NodeBody {
    let view = View::of(mesh, node, id);
    let told = view.hostname.is_some();
    NodeBody {
        id,
        garage_version: told.then_some(profile.version()),
        addr: view.addr,
        hostname: view.hostname,
        is_up: view.is_up,
        last_seen_secs_ago: view.last_seen_secs_ago,
        role: view.role,
        draining: view.draining,
        data_partition: told.then_some(FreeSpace::DISK),
        metadata_partition: told.then_some(FreeSpace::DISK),
        resync_queue_len: (told && profile.is_2_5()).then_some(0),
    }
}

/// How a node looks to another (or to itself).
#[derive(Debug)]
pub(super) struct View {
    pub(super) addr: Option<SocketAddr>,
    pub(super) hostname: Option<String>,
    pub(super) is_up: bool,
    pub(super) last_seen_secs_ago: Option<u64>,
    pub(super) role: Option<AssignedRole>,
    pub(super) draining: bool,
}

impl View {
    pub(super) fn of(mesh: &Mesh, node: &Node, id: NodeId) -> Self {
        let history = node.layout().history();
        let role = history.current().role(id);
        let peer = node.peers().get(&id);
        let own = id == node.id();
        let is_up = node.sees_up(id);
        let addr = if own { Some(node.config().rpc_address()) } else { peer.and_then(|peer| peer.address) };
        let hostname = if own {
            Some(node.config().hostname.clone())
        } else {
            peer.and_then(|peer| peer.status.as_ref()).map(|status| status.hostname.clone())
        };
        Self {
            addr: addr.filter(|_| is_up),
            hostname,
            is_up,
            last_seen_secs_ago: peer
                .and_then(|peer| peer.last_seen)
                .map(|at| mesh.now().saturating_sub(at).as_secs()),
            role: role.map(Into::into),
            draining: role.is_none() && history.storage_nodes().contains(&id),
        }
    }
}
