//! Node-scoped endpoints: one answer for each addressed node (Garage admin reference §10b).

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{PurgeReport, Retried};
use super::error::ApiError;
use super::node_info::NodeInfo;
use super::statistics::NodeStatisticsBody;
use super::workers::{SetVariableRequest, Worker};
use crate::layout::NodeId;
use crate::mesh::{Cut, Mesh, Node, NodeIndex, Process};
use serde::Serialize;

/// What every addressed node answered, or why it did not.
#[derive(Debug, Default, Serialize)]
pub struct MultiAnswer {
    /// Answers by node.
    pub success: BTreeMap<NodeId, NodeAnswer>,
    /// Error texts by node.
    pub error: BTreeMap<NodeId, String>,
}

/// What a node answers in a node-scoped call.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum NodeAnswer {
    /// `GetNodeInfo`.
    Info(Box<NodeInfo>),
    /// `GetNodeStatistics`.
    Statistics(Box<NodeStatisticsBody>),
    /// `ListWorkers`.
    Workers(Vec<Worker>),
    /// `GetWorkerInfo`.
    Worker(Box<Worker>),
    /// `GetWorkerVariable`.
    Variables(BTreeMap<String, String>),
    /// `SetWorkerVariable`.
    Variable(SetVariableRequest),
    /// `ListBlockErrors`: there are none.
    BlockErrors([(); 0]),
    /// `RetryBlockResync`.
    Retried(Retried),
    /// `PurgeBlocks`.
    Purged(PurgeReport),
    /// `CreateMetadataSnapshot`, `LaunchRepairOperation`: nothing to tell.
    Done(()),
}

/// Whether a node can be asked from another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reachable {
    /// It answers.
    Yes(NodeIndex),
    /// It does not, with this error text.
    No(String),
    /// Nobody knows yet: the call hangs.
    Hangs,
}

/// Whether a call still waits for nodes that do not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// It does.
    Waiting,
    /// It has waited for the RPC timeout (300 s in the observed pacing, Garage admin reference §10).
    Over,
}

/// What is told of a node that did not answer in time. The text was not recorded.
const TIMED_OUT: &str = "Timeout";

/// The nodes that `selector` means to `node`: `self`, `*`, or a prefix of exactly one known identity.
///
/// Known are nodes with a role in a live version, and those that are up.
pub fn addressed(node: &Node, selector: &str) -> Result<Vec<NodeId>, ApiError> {
    if selector == "self" {
        return Ok(vec![node.id()]);
    }
    let mut known: BTreeSet<_> = node.layout().history().nodes();
    known.extend(node.peers().iter().filter(|(_, peer)| peer.is_up()).map(|(id, _)| *id));
    known.insert(node.id());
    if selector == "*" {
        return Ok(known.into_iter().collect());
    }
    let matching: Vec<_> = known.into_iter().filter(|id| id.to_string().starts_with(selector)).collect();
    match matching.as_slice() {
        [] => Err(ApiError::bad_request(format_args!("No nodes matching {selector}"))),
        [_] => Ok(matching),
        several => {
            let names: Vec<_> = several.iter().map(NodeId::short).collect();
            let names = names.join(", ");
            Err(ApiError::bad_request(format_args!("Multiple nodes matching {selector}: [{names}]")))
        }
    }
}

/// Whether `from` can ask the node `id` something.
///
/// A peer that has died without `from` having noticed gives another text than one known to be away.
#[must_use]
pub fn reachable(mesh: &Mesh, from: NodeIndex, id: NodeId, patience: Patience) -> Reachable {
    match contact(mesh, from, id) {
        Reachable::Hangs if patience == Patience::Over => Reachable::No(TIMED_OUT.to_owned()),
        contact => contact,
    }
}

fn contact(mesh: &Mesh, from: NodeIndex, id: NodeId) -> Reachable {
    let node = mesh.node(from);
    if id == node.id() {
        return Reachable::Yes(from);
    }
    if !node.sees_up(id) {
        return Reachable::No(format!("Network error: Not connected: {}", id.short()));
    }
    match mesh.find_alive(id) {
        None => Reachable::No("Network error: oneshot receive error: channel closed".to_owned()),
        Some(to) if mesh.node(to).process() == Process::Frozen => Reachable::Hangs,
        Some(to) => match mesh.cut_between(from, to) {
            None => Reachable::Yes(to),
            Some(Cut::Silent) => Reachable::Hangs,
            Some(Cut::Reset) => {
                Reachable::No("Network error: oneshot receive error: channel closed".to_owned())
            }
        },
    }
}
