//! `GetNodeInfo` (Garage admin reference §10b).

use std::net::SocketAddr;

use serde::Serialize;

use super::profile::Profile;
use super::status::{AssignedRole, FreeSpace, View};
use crate::layout::NodeId;
use crate::mesh::{Mesh, NodeIndex};

/// What a node tells about itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    node_id: NodeId,
    hostname: String,
    garage_version: &'static str,
    garage_features: [&'static str; 5],
    rust_version: &'static str,
    db_engine: &'static str,
    #[serde(flatten)]
    since_2_5: Option<NodeInfoOf25>,
}

/// What it tells since 2.4 or 2.5.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeInfoOf25 {
    connection_parameters: ConnectionParameters,
    addr: Option<SocketAddr>,
    is_up: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<AssignedRole>,
    draining: bool,
    data_partition: FreeSpace,
    metadata_partition: FreeSpace,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionParameters {
    region: String,
    s3_use_path_style: bool,
}

/// Features of the default build.
pub const FEATURES: [&str; 5] = ["bundled-libs", "k2v", "lmdb", "metrics", "sqlite"];
/// Version of the compiler that the recorded program was built with.
pub const RUST_VERSION: &str = "1.95.0";
/// Name of the database.
pub const DB_ENGINE: &str = "LMDB (using Heed crate)";

impl NodeInfo {
    /// What `index` tells about itself.
    #[must_use]
    pub fn of(mesh: &Mesh, index: NodeIndex, profile: Profile) -> Self {
        let node = mesh.node(index);
        let view = View::of(mesh, node, node.id());
        Self {
            node_id: node.id(),
            hostname: node.config().hostname.clone(),
            garage_version: profile.version(),
            garage_features: FEATURES,
            rust_version: RUST_VERSION,
            db_engine: DB_ENGINE,
            since_2_5: profile.is_2_5().then_some(NodeInfoOf25 {
                connection_parameters: ConnectionParameters {
                    region: node.config().region.clone(),
                    s3_use_path_style: true,
                },
                addr: view.addr,
                is_up: true,
                role: view.role,
                draining: view.draining,
                data_partition: FreeSpace::DISK,
                metadata_partition: FreeSpace::DISK,
            }),
        }
    }
}
