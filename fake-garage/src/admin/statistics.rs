//! `GetNodeStatistics` and `GetClusterStatistics` (Garage admin reference §10b).

use std::fmt::Write as _;

use serde::Serialize;

use super::node_info::{DB_ENGINE, FEATURES, RUST_VERSION};
use super::profile::Profile;
use super::status::{FreeSpace, View};
use super::store::Store;
use super::workers::TABLES;
use crate::layout::message::binary_size;
use crate::mesh::{Mesh, NodeIndex};

/// `GetNodeStatistics`, of a node on which nothing is stored.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatisticsBody {
    freeform: String,
    table_stats: Vec<TableStatistics>,
    block_manager_stats: BlockStatistics,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TableStatistics {
    table_name: &'static str,
    items: u64,
    merkle_items: u64,
    merkle_queue_len: u64,
    insert_queue_len: u64,
    gc_queue_len: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BlockStatistics {
    rc_entries: u64,
    resync_queue_len: u64,
    resync_errors: u64,
}

/// `GetClusterStatistics`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatisticsBody {
    freeform: String,
    data_avail: u64,
    metadata_avail: u64,
    incomplete_avail_info: bool,
    bucket_count: usize,
    total_object_count: u64,
    total_object_bytes: u64,
}

/// The statistics of `index`.
#[must_use]
pub fn node_statistics(mesh: &Mesh, index: NodeIndex, profile: Profile) -> NodeStatisticsBody {
    let node = mesh.node(index);
    let mut text = format!(
        "Node ID:                {}\nHostname:               {}\nGarage version:         {}\n\
         Garage features:        {}\nRust compiler version:  {RUST_VERSION}\nDatabase engine:        {DB_ENGINE}\n\n\
         Table stats:\n  Table                  Items  MklItems  MklTodo  InsQueue  GcTodo\n",
        node.id().short(),
        node.config().hostname,
        profile.version(),
        FEATURES.join(", "),
    );
    for table in TABLES {
        // Writing to a String cannot fail.
        writeln!(text, "  {table:<21}  0      0         0        0         0").unwrap_or_default();
    }
    text.push_str(
        "\nBlock manager stats:\n  number of RC entries:       0 (~= number of blocks)\n  \
         resync queue length:        0\n  blocks with resync errors:  0\n",
    );
    let empty = |table_name| TableStatistics {
        table_name,
        items: 0,
        merkle_items: 0,
        merkle_queue_len: 0,
        insert_queue_len: 0,
        gc_queue_len: 0,
    };
    NodeStatisticsBody {
        freeform: text,
        table_stats: TABLES.into_iter().map(empty).collect(),
        block_manager_stats: BlockStatistics { rc_entries: 0, resync_queue_len: 0, resync_errors: 0 },
    }
}

/// The statistics of the cluster as `index` sees it.
#[must_use]
pub fn cluster_statistics(mesh: &Mesh, index: NodeIndex, store: &Store) -> ClusterStatisticsBody {
    let node = mesh.node(index);
    let current = node.layout().current();
    let mut text = "Storage nodes:\n  ID                Hostname  Zone  Capacity  Part.\n".to_owned();
    let mut known = 0_u64;
    for (id, stored) in current.storage_nodes().iter().zip(current.stored_partitions()) {
        let hostname = View::of(mesh, node, *id).hostname;
        known += u64::from(hostname.is_some());
        let (hostname, role) = (hostname.unwrap_or_else(|| "?".to_owned()), current.role(*id));
        let zone = role.map(|role| role.zone.as_str()).unwrap_or_default();
        let capacity = binary_size(role.and_then(|role| role.capacity).unwrap_or(0));
        writeln!(text, "  {}  {hostname}  {zone}  {capacity}  {stored}", id.short()).unwrap_or_default();
    }
    let all = u64::try_from(current.storage_nodes().len()).unwrap_or(u64::MAX);
    let factor = u64::try_from(current.factor).unwrap_or(1).max(1);
    // What is not known counts as if it were like the rest.
    let available = FreeSpace::DISK.available().saturating_mul(all) / factor;
    let incomplete = known < all;
    let about = if incomplete { "< " } else { "" };
    let size = binary_size(available);
    write!(
        text,
        "\nNumber of buckets:        {}\nTotal number of objects:  0\nTotal size of objects:    0 B\n\n\
         Estimated available storage space cluster-wide (might be lower in practice):\n  data: {about}{size}\n  \
         metadata: {about}{size}\n",
        store.buckets.count()
    )
    .unwrap_or_default();
    if incomplete {
        text.push_str(
            "A precise estimate could not be given as information is missing for some storage nodes.\n",
        );
    }
    ClusterStatisticsBody {
        freeform: text,
        data_avail: available,
        metadata_avail: available,
        incomplete_avail_info: incomplete,
        bucket_count: store.buckets.count(),
        total_object_count: 0,
        total_object_bytes: 0,
    }
}
