//! A node: a process with its files, its layout copy and its view of the others.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use super::connect::{Knock, OpenAttempts};
use super::events::Event;
use super::peer::Peer;
use super::{HeldContent, Time};
use crate::layout::{
    ConsistencyMode, GossipDigest, Held, LayoutEvent, LayoutHistory, LocalLayout, NodeId, SyncRound,
};

/// Place of a node in its mesh; it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub(super) usize);

/// What a node is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfig {
    /// Name of the node, unique in its mesh: `site/namespace/pod`.
    pub name: String,
    /// The site it stands at.
    pub site: String,
    /// Its address; RPC listens on port 3901, the admin API on 3903.
    pub address: IpAddr,
    /// The host name that it reports.
    pub hostname: String,
    /// The region that error answers repeat (`s3_region`).
    pub region: String,
    /// Copies of each partition (`replication_factor`).
    pub factor: usize,
    /// `consistency_mode`.
    pub mode: ConsistencyMode,
    /// Which `rpc_secret` it has: a digest, never the secret.
    pub rpc_secret: String,
    /// How many milliseconds its wall clock is ahead.
    pub clock_offset: i64,
}

/// Port of the RPC protocol.
pub const RPC_PORT: u16 = 3901;

impl NodeConfig {
    /// Where the node is reached by others (`rpc_public_addr`).
    #[must_use]
    pub const fn rpc_address(&self) -> SocketAddr {
        SocketAddr::new(self.address, RPC_PORT)
    }
}

/// What a node tells about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its host name.
    pub hostname: String,
}

/// A node's status as it goes to its peers.
#[derive(Debug, Clone)]
pub(super) struct StatusReport {
    pub(super) status: NodeStatus,
    pub(super) factor: usize,
    pub(super) layout: GossipDigest,
}

/// Whether a node's process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// It runs.
    Running,
    /// It is stopped in its tracks (SIGSTOP): connections are accepted, nothing is answered.
    Frozen,
    /// It has ended.
    Ended {
        /// Exit code; `None` after a signal.
        code: Option<i32>,
    },
}

/// What a node has on disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    pub(super) layout: Option<Arc<LayoutHistory>>,
    pub(super) peers: Vec<(NodeId, SocketAddr)>,
    /// The last purge of the layout file that was carried out, by its name.
    pub(super) purged: Option<String>,
}

/// A node of a mesh.
#[derive(Debug)]
pub struct Node {
    pub(super) config: NodeConfig,
    pub(super) id: NodeId,
    pub(super) process: Process,
    /// How often it was started.
    pub(super) boot: u64,
    pub(super) started: Time,
    pub(super) incarnation: u64,
    /// How many milliseconds its wall clock was set ahead since it was configured.
    pub(super) skew: Option<i64>,
    pub(super) held: Held,
    pub(super) layout: LocalLayout,
    /// The state as it was last sent, shared by its messages.
    pub(super) snapshot: OnceLock<Arc<LayoutHistory>>,
    pub(super) digest: OnceLock<Arc<str>>,
    pub(super) gossip: OnceLock<GossipDigest>,
    /// How often the layout has changed.
    pub(super) layout_changes: u64,
    /// Digest of the addresses that it knows.
    pub(super) known: OnceLock<u64>,
    pub(super) peers: BTreeMap<NodeId, Peer>,
    pub(super) files: Files,
    /// The last synchronisation round that began.
    pub(super) round: Option<SyncRound>,
    /// Whether it is still under way.
    pub(super) syncing: bool,
    pub(super) peering_at: Option<Time>,
    pub(super) status_pause: std::time::Duration,
    pub(super) status_at: Option<Time>,
    pub(super) peers_saved: Time,
    /// Digest of the addresses that were saved then.
    pub(super) saved: Option<u64>,
    /// What would have happened while the process was frozen.
    pub(super) frozen: Vec<Event>,
    /// Connections that wait for the frozen process.
    pub(super) knocking: Vec<Knock>,
    pub(super) attempts: OpenAttempts,
}

impl Node {
    /// What it was started with.
    #[must_use]
    pub const fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Its identity.
    #[must_use]
    pub const fn id(&self) -> NodeId {
        self.id
    }

    /// Whether its process runs.
    #[must_use]
    pub const fn process(&self) -> Process {
        self.process
    }

    /// Whether its process runs and answers.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.process, Process::Running)
    }

    /// Whether its process has ended.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        matches!(self.process, Process::Ended { .. })
    }

    /// How often its process was started.
    #[must_use]
    pub const fn boot(&self) -> u64 {
        self.boot
    }

    /// How often its layout began anew.
    #[must_use]
    pub const fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Its layout copy.
    #[must_use]
    pub const fn layout(&self) -> &LocalLayout {
        &self.layout
    }

    /// What it knows about others.
    #[must_use]
    pub const fn peers(&self) -> &BTreeMap<NodeId, Peer> {
        &self.peers
    }

    /// Whether it sees `id` as up; a node always sees itself so.
    #[must_use]
    pub fn sees_up(&self, id: NodeId) -> bool {
        id == self.id || self.peers.get(&id).is_some_and(Peer::is_up)
    }

    /// Digest of its layout, staging and trackers included.
    #[must_use]
    pub fn layout_digest(&self) -> &Arc<str> {
        self.digest.get_or_init(|| self.layout.history().digest().to_string().into())
    }

    /// How often its layout has changed, restarts and losses of files included.
    #[must_use]
    pub const fn layout_changes(&self) -> u64 {
        self.layout_changes
    }

    pub(super) fn gossip_digest(&self) -> GossipDigest {
        *self.gossip.get_or_init(|| self.layout.history().gossip_digest())
    }

    /// How many milliseconds its wall clock is ahead.
    #[must_use]
    pub const fn clock_offset(&self) -> i64 {
        match self.skew {
            Some(skew) => skew,
            None => self.config.clock_offset,
        }
    }

    /// Which of its own trackers it does not raise for now.
    #[must_use]
    pub const fn held(&self) -> Held {
        self.held
    }

    /// Begins with `history`. What is held stays held.
    pub(super) fn start_layout(&mut self, history: LayoutHistory) {
        self.layout = LocalLayout::start(self.id, self.config.mode, history);
        if self.held.any() {
            self.layout.hold(self.held);
        }
        self.layout_changed();
    }

    /// What the node holds of the version that `event` is about.
    pub(super) fn held_content(&self, event: LayoutEvent) -> HeldContent {
        let history = self.layout.history();
        let number = match event {
            LayoutEvent::Conflict { version, .. }
            | LayoutEvent::Dropped { version, .. }
            | LayoutEvent::Retired { version } => version,
            LayoutEvent::Applied { to, .. }
            | LayoutEvent::Merged { to, .. }
            | LayoutEvent::Replaced { to, .. } => to,
            LayoutEvent::Reverted | LayoutEvent::Reset { .. } => history.current().number,
        };
        let versions = history.live().iter().rev().chain(history.old().iter().rev());
        let version = versions.into_iter().find(|version| version.number == number);
        let content = version.unwrap_or_else(|| history.current()).digest();
        HeldContent { content, layout: self.layout_digest().to_string() }
    }

    pub(super) fn snapshot(&self) -> Arc<LayoutHistory> {
        Arc::clone(self.snapshot.get_or_init(|| Arc::new(self.layout.history().clone())))
    }

    pub(super) fn layout_changed(&mut self) {
        self.snapshot = OnceLock::new();
        self.digest = OnceLock::new();
        self.gossip = OnceLock::new();
        self.layout_changes += 1;
    }

    pub(super) fn save_layout(&mut self) {
        self.files.layout = Some(self.snapshot());
    }
}
