//! How things stand in a mesh, node by node: for the control API and for messages about failures.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use super::{Cut, Mesh, Node, NodeIndex, Process};
use crate::layout::{Held, NodeId, Role};

/// A node as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    /// Its name, `site/namespace/pod`.
    pub name: String,
    /// Where it listens.
    pub address: IpAddr,
    /// Its identity.
    pub node_id: NodeId,
    /// `running`, `frozen` or `ended`.
    pub process: &'static str,
    /// Whether it runs and answers.
    pub up: bool,
    /// How often its layout began anew.
    pub incarnation: u64,
    /// Number of its current version.
    pub layout_version: u64,
    /// Numbers of its live versions; the last one is current, the others drain.
    pub live_versions: Vec<u64>,
    /// Digest of the node's whole layout state.
    pub layout_digest: String,
    /// Digest of the current version's content: equal numbers with different contents are a conflict.
    pub version_digest: String,
    /// What it has itself acknowledged, synchronised, and seen synchronised.
    pub trackers: TrackerState,
    /// Nodes with a staged change that it shows.
    pub staged: Vec<NodeId>,
    /// T of its staging area: when that was last emptied, in milliseconds.
    pub staging_moved: u64,
    /// Its own role in its current version.
    pub role: Option<Role>,
    /// How many peers it sees as up.
    pub peers_up: usize,
    /// How many peers it has heard of.
    pub peers_known: usize,
    /// Nodes with a role in its current version.
    pub roles: Vec<NodeId>,
    /// How many milliseconds its wall clock is ahead.
    pub clock_offset_ms: i64,
    /// What is wrong with it on purpose, in words.
    pub faults: Vec<String>,
}

/// A node's own trackers, as it has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrackerState {
    /// Newest version that it has acknowledged.
    pub ack: u64,
    /// Newest version that its tables are synchronised to.
    pub sync: u64,
    /// Newest version that it has seen everyone synchronised to.
    pub sync_ack: u64,
}

/// The state of every node of a mesh, as a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTable(pub Vec<NodeState>);

impl NodeState {
    /// The state of a node.
    #[must_use]
    pub fn of(mesh: &Mesh, index: NodeIndex) -> Self {
        let node = mesh.node(index);
        let history = node.layout().history();
        let (current, oldest) = (history.current(), history.oldest());
        let trackers = &history.trackers;
        Self {
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
            live_versions: history.live().iter().map(|version| version.number).collect(),
            layout_digest: node.layout_digest().to_string(),
            version_digest: current.digest().to_string(),
            trackers: TrackerState {
                ack: trackers.ack.get(node.id(), oldest),
                sync: trackers.sync.get(node.id(), oldest),
                sync_ack: trackers.sync_ack.get(node.id(), oldest),
            },
            staged: history.visible_changes(false).map(|(id, _)| id).collect(),
            staging_moved: history.staging.moved,
            role: current.role(node.id()).cloned(),
            peers_up: node.peers().values().filter(|peer| peer.is_up()).count(),
            peers_known: node.peers().len(),
            roles: current.nodes().collect(),
            clock_offset_ms: node.clock_offset(),
            faults: faults(mesh, index, node),
        }
    }
}

fn faults(mesh: &Mesh, index: NodeIndex, node: &Node) -> Vec<String> {
    let mut faults = Vec::new();
    let mut toward = |text: &str, holds: &dyn Fn(NodeIndex) -> bool| {
        let names: Vec<_> = mesh
            .nodes()
            .filter(|(other, _)| holds(*other))
            .map(|(_, other)| other.config().name.clone())
            .collect();
        if !names.is_empty() {
            faults.push(format!("{text} {}", names.join(" ")));
        }
    };
    toward("silent to", &|other| mesh.cut_between(index, other) == Some(Cut::Silent));
    toward("reset to", &|other| mesh.cut_between(index, other) == Some(Cut::Reset));
    toward("slow to", &|other| mesh.is_slow(index, other));
    let Held { ack, sync, sync_ack } = node.held();
    let held: Vec<_> = [(ack, "ack"), (sync, "sync"), (sync_ack, "syncAck")]
        .into_iter()
        .filter_map(|(held, name)| held.then_some(name))
        .collect();
    if !held.is_empty() {
        faults.push(format!("holds {}", held.join(" ")));
    }
    faults
}

impl StateTable {
    /// The state of every node of a mesh, in the order in which they joined.
    #[must_use]
    pub fn of(mesh: &Mesh) -> Self {
        Self(mesh.nodes().map(|(index, _)| NodeState::of(mesh, index)).collect())
    }
}

const HEADER: [&str; 11] = [
    "NODE",
    "ID",
    "PROCESS",
    "VERSION",
    "CONTENT",
    "ACK/SYNC/SYNCACK",
    "STAGED",
    "ROLE",
    "PEERS",
    "CLOCK",
    "FAULTS",
];

/// Columns that are as wide as their widest cell; `VERSION` is the current version with those that drain behind it.
impl fmt::Display for StateTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<_> = self.0.iter().map(cells).collect();
        let header = HEADER.map(str::to_owned);
        let widths: Vec<_> = (0..HEADER.len())
            .map(|column| {
                rows.iter().chain([&header]).map(|row| row[column].chars().count()).max().unwrap_or(0)
            })
            .collect();
        for row in [&header].into_iter().chain(&rows) {
            let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            writeln!(f, "{}", padded.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

fn cells(node: &NodeState) -> [String; 11] {
    let draining: Vec<_> = node
        .live_versions
        .iter()
        .filter(|live| **live != node.layout_version)
        .map(ToString::to_string)
        .collect();
    let version = if draining.is_empty() {
        node.layout_version.to_string()
    } else {
        format!("{} (draining {})", node.layout_version, draining.join(" "))
    };
    let short = |text: &str| text.chars().take(8).collect::<String>();
    let ids: Vec<_> = node.staged.iter().map(|id| short(&id.to_string())).collect();
    let TrackerState { ack, sync, sync_ack } = node.trackers;
    [
        node.name.clone(),
        short(&node.node_id.to_string()),
        node.process.to_owned(),
        version,
        short(&node.version_digest),
        format!("{ack}/{sync}/{sync_ack}"),
        dash(ids.join(" ")),
        role(node.role.as_ref()),
        format!("{}/{}", node.peers_up, node.peers_known),
        format!("{:+} ms", node.clock_offset_ms),
        dash(node.faults.join("; ")),
    ]
}

fn role(role: Option<&Role>) -> String {
    match role {
        None => "-".to_owned(),
        Some(Role { zone, capacity: Some(bytes), .. }) => format!("{zone} {bytes}"),
        Some(Role { zone, capacity: None, .. }) => format!("{zone} gateway"),
    }
}

fn dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
