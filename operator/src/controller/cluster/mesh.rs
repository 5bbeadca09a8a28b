//! The mesh of the cluster's own nodes, healed through their pods (operator contract §2.3).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tracing::info;

use super::super::endpoints::Endpoints;
use super::super::error::chain;
use super::super::scope::{address, is_ready};
use crate::api::v1beta1::GarageNode;
use crate::decision::assignment::{identity, is_managed};

/// A node of this cluster that can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reachable {
    /// Node ID.
    pub(super) id: String,
    /// Address of its pod.
    pub(super) address: String,
}

/// The nodes whose pod is ready and whose identity is known.
pub(super) fn reachable(nodes: &[GarageNode], pods: &BTreeMap<String, Pod>) -> Vec<Reachable> {
    nodes
        .iter()
        .filter(|node| is_managed(node))
        .filter_map(|node| {
            let pod = pods.get(&node.name_any()).filter(|pod| is_ready(pod))?;
            Some(Reachable { id: identity(node)?, address: address(pod)?.to_owned() })
        })
        .collect()
}

/// Connects each node to those after it that it does not see.
pub(super) async fn heal(endpoints: &Endpoints, nodes: &[Reachable], rpc_port: u16) {
    for (position, node) in nodes.iter().enumerate() {
        let others = &nodes[position + 1..];
        if others.is_empty() {
            return;
        }
        let client = endpoints.pod(&node.address);
        let seen = match client.cluster_status().await {
            Ok(seen) => seen,
            Err(error) => {
                info!(node = %node.id, error = %chain(&error), "node does not answer");
                continue;
            }
        };
        for other in others.iter().filter(|other| !seen.is_up(&other.id)) {
            let peer = format!("{}@{}:{rpc_port}", other.id, other.address);
            if let Err(error) = client.connect(&peer).await {
                info!(node = %node.id, %peer, error = %chain(&error), "nodes not connected yet");
            }
        }
    }
}
