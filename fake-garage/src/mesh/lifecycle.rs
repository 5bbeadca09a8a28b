//! How processes begin and end, and what survives (Garage admin reference §10).

use std::sync::OnceLock;

use super::events::Event;
use super::node::{Files, Node, NodeConfig, NodeIndex, Process};
use super::{Mesh, Output};
use crate::layout::{Held, LayoutEvent, LayoutHistory, LocalLayout, NodeId};

/// What a node loses of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loss {
    /// Nothing.
    #[default]
    Nothing,
    /// The file that holds the layout.
    LayoutFile,
    /// All metadata: also the identity and the list of peers. The node starts under a new, random identity.
    AllMetadata,
}

impl Mesh {
    /// Adds a node that was never started, with empty files and `id`, and starts it.
    pub fn add(&mut self, id: NodeId, config: NodeConfig) -> NodeIndex {
        let index = NodeIndex(self.nodes.len());
        self.by_name.insert(config.name.clone(), index);
        let history = LayoutHistory::fresh(config.factor, 0);
        let layout = LocalLayout::start(id, config.mode, history);
        self.nodes.push(Node {
            config,
            id,
            process: Process::Ended { code: None },
            boot: 0,
            started: self.now,
            incarnation: 0,
            skew: None,
            held: Held::default(),
            layout,
            snapshot: OnceLock::new(),
            digest: OnceLock::new(),
            gossip: OnceLock::new(),
            layout_changes: 0,
            known: OnceLock::new(),
            peers: std::collections::BTreeMap::new(),
            files: Files::default(),
            round: None,
            syncing: false,
            peering_at: None,
            status_pause: self.pacing.status_eager,
            status_at: None,
            peers_saved: self.now,
            saved: None,
            frozen: Vec::new(),
            knocking: Vec::new(),
            attempts: std::collections::BTreeMap::new(),
        });
        self.by_id.insert(id, index);
        self.start(index);
        index
    }

    /// Starts a node whose process has ended, with what its files hold. A running one stays as it is.
    ///
    /// A node whose stored layout has another factor than its configuration exits with code 1 at once.
    pub fn start(&mut self, index: NodeIndex) {
        if !matches!(self.node(index).process, Process::Ended { .. }) {
            return;
        }
        let (now, boot) = (self.now, self.random.duration(&self.pacing.boot));
        let wall = self.wall_clock(index);
        let node = self.node_mut(index);
        node.boot += 1;
        node.started = now + boot;
        node.peers_saved = now;
        node.saved = None;
        node.process = Process::Running;
        node.peers.clear();
        node.known = OnceLock::new();
        node.round = None;
        node.syncing = false;
        node.peering_at = None;
        node.status_at = None;
        node.attempts.clear();
        node.frozen.clear();
        let stored = node.files.layout.clone();
        let history =
            stored.map_or_else(|| LayoutHistory::fresh(node.config.factor, wall), |stored| (*stored).clone());
        let fits = history.current().factor == node.config.factor;
        node.start_layout(history);
        self.outputs.push(Output::Process { node: index, process: Process::Running });
        if !fits {
            self.log(index, "ERROR the stored layout has another replication factor".to_owned());
            return self.end(index, Process::Ended { code: Some(1) });
        }
        self.begin_work(index);
    }

    fn begin_work(&mut self, index: NodeIndex) {
        let known = self.node(index).files.peers.clone();
        for (id, address) in known {
            self.hear_of(index, id, Some(address));
        }
        // A round that the stored state asks for was done by the process before, as far as this one knows.
        let eager = self.pacing.status_eager;
        let node = self.node_mut(index);
        node.round = Some(node.layout.sync_round());
        node.status_pause = eager;
        let first = node.started + eager;
        self.plan_status(index, first);
        self.tend_all(index);
        self.expect_peering(index);
    }

    /// Ends a node as SIGTERM does.
    pub fn stop(&mut self, index: NodeIndex) {
        self.end(index, Process::Ended { code: Some(0) });
    }

    /// Ends a node as SIGKILL does.
    pub fn kill(&mut self, index: NodeIndex) {
        self.end(index, Process::Ended { code: None });
    }

    pub(super) fn end(&mut self, index: NodeIndex, process: Process) {
        if matches!(self.node(index).process, Process::Ended { .. }) {
            return;
        }
        self.node_mut(index).process = process;
        self.refuse_knocks(index);
        self.outputs.push(Output::Process { node: index, process });
    }

    /// Takes files away from a node whose process has ended.
    pub fn lose_files(&mut self, index: NodeIndex, loss: Loss) {
        if loss == Loss::Nothing {
            return;
        }
        let from = self.node(index).layout.current().number;
        if loss == Loss::AllMetadata {
            let id = NodeId::new(self.random.bytes());
            self.by_id.insert(id, index);
            let node = self.node_mut(index);
            node.id = id;
            node.files.peers.clear();
            node.files.purged = None;
        }
        let wall = self.wall_clock(index);
        let node = self.node_mut(index);
        node.files.layout = None;
        node.incarnation += 1;
        node.start_layout(LayoutHistory::fresh(node.config.factor, wall));
        self.tell_layout(index, LayoutEvent::Reset { from });
    }

    /// Takes the layout file away from a node whose process has ended, once for each name of a purge: what an init
    /// container does that leaves a marker beside the file.
    pub fn purge_layout_once(&mut self, index: NodeIndex, purge: &str) {
        if self.node(index).files.purged.as_deref() == Some(purge) {
            return;
        }
        if self.node(index).files.layout.is_some() {
            self.lose_files(index, Loss::LayoutFile);
        }
        self.node_mut(index).files.purged = Some(purge.to_owned());
    }

    /// Empties the files of a node whose process has ended, and gives it the identity `id`.
    pub fn erase(&mut self, index: NodeIndex, id: NodeId) {
        self.by_id.insert(id, index);
        let node = self.node_mut(index);
        node.id = id;
        node.files = Files::default();
        node.incarnation += 1;
    }

    /// Gives a node whose process has ended another configuration. Its name stays.
    pub fn configure(&mut self, index: NodeIndex, config: NodeConfig) {
        let node = self.node_mut(index);
        let name = std::mem::take(&mut node.config.name);
        node.config = NodeConfig { name, ..config };
    }

    /// Stops a process in its tracks, as SIGSTOP does.
    pub fn freeze(&mut self, index: NodeIndex) {
        if self.node(index).is_running() {
            self.node_mut(index).process = Process::Frozen;
            self.outputs.push(Output::Process { node: index, process: Process::Frozen });
        }
    }

    /// Lets a frozen process go on, as SIGCONT does: what it missed happens to it now.
    pub fn resume(&mut self, index: NodeIndex) {
        if self.node(index).process != Process::Frozen {
            return;
        }
        self.node_mut(index).process = Process::Running;
        self.outputs.push(Output::Process { node: index, process: Process::Running });
        self.answer_knocks(index);
        let now = self.now;
        let missed = std::mem::take(&mut self.node_mut(index).frozen);
        for event in missed {
            match event {
                Event::Peering => self.node_mut(index).peering_at = Some(now),
                Event::Status => self.node_mut(index).status_at = Some(now),
                _ => {}
            }
            self.schedule(now, index, event);
        }
    }
}
