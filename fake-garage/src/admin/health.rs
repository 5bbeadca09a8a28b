//! `GetClusterHealth` and `/health` (Garage admin reference §3).

use std::collections::BTreeSet;

use serde::Serialize;

use crate::layout::{LayoutHistory, NodeId, write_quorum};
use crate::mesh::Node;

/// How well a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// Every copy of every partition is on a node that is up.
    Healthy,
    /// Every partition can be written.
    Degraded,
    /// Some partition cannot be written, or there is no layout.
    Unavailable,
}

/// `GetClusterHealth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// How well the cluster is.
    pub status: HealthStatus,
    /// Nodes this one knows, itself included.
    pub known_nodes: usize,
    /// Nodes this one is connected to, itself included.
    pub connected_nodes: usize,
    /// Nodes that store data in any live version.
    pub storage_nodes: usize,
    /// Those of them that are up.
    pub storage_nodes_up: usize,
    /// Partitions of the current version.
    pub partitions: usize,
    /// Partitions that can be written.
    pub partitions_quorum: usize,
    /// Partitions with every copy on a node that is up.
    pub partitions_all_ok: usize,
}

impl Health {
    /// The cluster's health as `node` sees it.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        let history = node.layout().history();
        let storage = history.storage_nodes();
        let up: BTreeSet<_> = history.nodes().into_iter().filter(|id| node.sees_up(*id)).collect();
        let mut health = Self {
            status: HealthStatus::Unavailable,
            known_nodes: 1 + node.peers().len(),
            connected_nodes: 1 + node.peers().values().filter(|peer| peer.is_up()).count(),
            storage_nodes: storage.len(),
            storage_nodes_up: storage.intersection(&up).count(),
            partitions: 0,
            partitions_quorum: 0,
            partitions_all_ok: 0,
        };
        health.count_partitions(history, &up);
        health.status = health.judge();
        health
    }

    fn count_partitions(&mut self, history: &LayoutHistory, up: &BTreeSet<NodeId>) {
        self.partitions = history.current().replica_sets().count();
        let mut quorum = vec![true; self.partitions];
        let mut all = quorum.clone();
        for version in history.live() {
            let needed = write_quorum(version.factor);
            for (partition, set) in version.replica_sets().enumerate().take(self.partitions) {
                let reachable = set.iter().filter(|id| up.contains(id)).count();
                quorum[partition] &= reachable >= needed;
                all[partition] &= reachable == set.len();
            }
        }
        self.partitions_quorum = quorum.into_iter().filter(|holds| *holds).count();
        self.partitions_all_ok = all.into_iter().filter(|holds| *holds).count();
    }

    const fn judge(&self) -> HealthStatus {
        if self.partitions == 0 || self.partitions_quorum < self.partitions {
            HealthStatus::Unavailable
        } else if self.partitions_all_ok < self.partitions || self.storage_nodes_up < self.storage_nodes {
            HealthStatus::Degraded
        } else {
            HealthStatus::Healthy
        }
    }

    /// Status and text that `/health` answers.
    #[must_use]
    pub fn probe(&self) -> (u16, String) {
        let (status, sentence) = match self.status {
            HealthStatus::Healthy => (200, "Garage is fully operational"),
            HealthStatus::Degraded => (200, "Garage is operational but some storage nodes are unavailable"),
            HealthStatus::Unavailable => {
                (503, "Quorum is not available for some/all partitions, reads and writes will fail")
            }
        };
        let text = format!(
            "{sentence}\nConsult the full health check API endpoint at /v2/GetClusterHealth for more details\n"
        );
        (status, text)
    }
}
