//! A mesh in the hub: the simulation, driven by the real clock, with what is recorded about it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::attribution::{NodeTokens, TokenTable};
use super::flight::Pending;
use super::journal;
use super::listener::Port;
use super::shared::Shared;
use crate::admin::{Cluster, Happening, Profile};
use crate::mesh::{Mesh, NodeIndex, Process};

/// A mesh in the hub.
#[derive(Debug)]
pub struct MeshActor {
    /// Its name.
    pub name: String,
    pub(super) shared: Arc<Shared>,
    began: Instant,
    inner: Mutex<Inner>,
    /// Something may be due sooner than the driver thinks.
    changed: Notify,
    /// Ends the driver and everything that listens.
    ended: CancellationToken,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) cluster: Cluster,
    pub(super) tokens: TokenTable,
    pub(super) own_tokens: BTreeMap<NodeIndex, NodeTokens>,
    pub(super) pending: BTreeMap<u64, Pending>,
    /// Open ports, and those that are closing.
    ports: BTreeMap<NodeIndex, Port>,
    closing: BTreeMap<NodeIndex, Port>,
    processes: BTreeMap<NodeIndex, Process>,
    /// When the driver looks at the mesh again, in the mesh's time; `None` while nothing is due.
    planned: Option<Duration>,
    /// How far the mesh's time is behind the machine's, which it falls when there is more to do than time for it.
    behind: Duration,
}

/// How long whoever looks at a mesh may work on what is due before others get their turn.
const TURN: Duration = Duration::from_micros(200);

/// What is due and not done after a turn stays due, up to so much; beyond it, time stands still for the mesh.
const BACKLOG: Duration = Duration::from_millis(250);

impl MeshActor {
    /// Begins a mesh without nodes and drives it until [`MeshActor::end`].
    #[must_use]
    pub fn begin(
        name: &str,
        profile: Profile,
        tokens: TokenTable,
        seed: u64,
        shared: Arc<Shared>,
    ) -> Arc<Self> {
        let origin = shared.recorder.clock().wall_ms();
        let mesh = Mesh::new(shared.pacing.clone(), origin, seed);
        let actor = Arc::new(Self {
            name: name.to_owned(),
            shared,
            began: Instant::now(),
            inner: Mutex::new(Inner {
                cluster: Cluster::new(mesh, profile),
                tokens,
                own_tokens: BTreeMap::new(),
                pending: BTreeMap::new(),
                ports: BTreeMap::new(),
                closing: BTreeMap::new(),
                processes: BTreeMap::new(),
                planned: None,
                behind: Duration::ZERO,
            }),
            changed: Notify::new(),
            ended: CancellationToken::new(),
        });
        tokio::spawn(Arc::clone(&actor).drive());
        actor
    }

    async fn drive(self: Arc<Self>) {
        loop {
            let (next, behind) = {
                let mut inner = self.now();
                inner.planned = inner.cluster.mesh().next_event();
                (inner.planned, inner.behind)
            };
            self.shared.recorder.flush();
            if next.is_some_and(|next| next + behind <= self.began.elapsed()) {
                // There is more to do at once; whoever waits for this thread comes first.
                tokio::task::yield_now().await;
                continue;
            }
            // An idle mesh is looked at once a minute, for no other reason than to have a number here.
            let next = next.map(|next| next + behind);
            let at = self.began + next.unwrap_or_else(|| self.began.elapsed() + Duration::from_mins(1));
            tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = self.changed.notified() => {}
                () = self.ended.cancelled() => return,
            }
        }
    }

    /// Wakes the driver if something is due sooner than it thinks.
    pub(super) fn wake_driver(&self, inner: &Inner) {
        let next = inner.cluster.mesh().next_event();
        if next.is_some_and(|next| inner.planned.is_none_or(|planned| next < planned)) {
            self.changed.notify_one();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mesh, with everything that is due having happened, if there was time for it.
    pub(super) fn now(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.lock();
        let turn = Instant::now();
        let due = self.began.elapsed().saturating_sub(inner.behind);
        if !inner.cluster.advance_while(due, || turn.elapsed() < TURN) {
            self.fall_behind(&mut inner, due);
        }
        self.tell(&mut inner);
        inner
    }

    /// Without this, a mesh that is too large for the machine would catch up for ever and never answer a call.
    fn fall_behind(&self, inner: &mut Inner, due: Duration) {
        let backlog = due.saturating_sub(inner.cluster.mesh().now());
        if backlog > BACKLOG {
            if inner.behind.is_zero() {
                let line = format!("the machine is too slow for mesh `{}`: its time falls behind", self.name);
                tracing::warn!("{line}");
                self.shared.recorder.enqueue(|| journal::hub_log(line));
            }
            inner.behind += backlog;
        }
    }

    /// How far the mesh's time is behind the machine's: nothing, unless there is more to do than time for it.
    #[must_use]
    pub fn behind(&self) -> Duration {
        self.lock().behind
    }

    /// Reads something of the cluster as it is now.
    pub fn read<T>(&self, read: impl FnOnce(&Cluster) -> T) -> T {
        read(&self.now().cluster)
    }

    /// Does something to the mesh.
    pub fn alter<T>(&self, change: impl FnOnce(&mut Mesh) -> T) -> T {
        let mut inner = self.now();
        let result = inner.cluster.alter(change);
        self.tell(&mut inner);
        self.wake_driver(&inner);
        drop(inner);
        self.shared.recorder.flush();
        result
    }

    /// Replaces the mesh's tokens.
    pub fn set_tokens(&self, tokens: TokenTable) {
        let mut inner = self.lock();
        inner.tokens = tokens;
        let nodes: Vec<_> = inner.own_tokens.keys().copied().collect();
        for node in nodes {
            inner.refresh_credentials(node);
        }
    }

    /// Sets the tokens in a node's own configuration.
    pub fn set_own_tokens(&self, node: NodeIndex, tokens: NodeTokens) {
        let mut inner = self.lock();
        inner.own_tokens.insert(node, tokens);
        inner.refresh_credentials(node);
    }

    /// Notes what to close when the process of `node` ends.
    pub fn set_port(&self, node: NodeIndex, port: Port) {
        self.lock().ports.insert(node, port);
    }

    /// Waits until a port of `node` that is closing is closed.
    pub async fn port_closed(&self, node: NodeIndex) {
        let closing = self.lock().closing.remove(&node);
        if let Some(port) = closing {
            port.closed().await;
        }
    }

    /// The port of `node`, if it is open.
    #[must_use]
    pub fn port(&self, node: NodeIndex) -> Option<Port> {
        self.lock().ports.get(&node).cloned()
    }

    /// Whether the port of `node` is open.
    #[must_use]
    pub fn has_port(&self, node: NodeIndex) -> bool {
        self.lock().ports.contains_key(&node)
    }

    /// Records what has happened, and answers the calls that are over.
    pub(super) fn tell(&self, inner: &mut Inner) {
        for happening in inner.cluster.take_happenings() {
            match happening {
                Happening::Answered { call, response, after, .. } => {
                    self.finish(inner, call, response, &after);
                }
                Happening::Layout { node, event, held } => {
                    let node = inner.cluster.mesh().node(node);
                    self.shared.recorder.enqueue(|| journal::layout_event(&self.name, node, event, &held));
                }
                Happening::Log { node, line } => {
                    let node = inner.cluster.mesh().node(node);
                    self.shared.recorder.enqueue(|| journal::log_event(node, line));
                }
                Happening::Process { node, process } => self.process_changed(inner, node, process),
            }
        }
    }

    fn process_changed(&self, inner: &mut Inner, index: NodeIndex, process: Process) {
        let before = inner.processes.insert(index, process);
        let node = inner.cluster.mesh().node(index);
        let resumed = before == Some(Process::Frozen);
        self.shared.recorder.enqueue(|| journal::process_event(&self.name, node, process, resumed));
        if matches!(process, Process::Ended { .. }) {
            self.shared.directory.vacate(node.config().address);
            self.end_calls(inner, index);
            if let Some(port) = inner.ports.remove(&index) {
                port.close();
                inner.closing.insert(index, port);
            }
        } else {
            self.shared.directory.occupy(node.config().address, &self.name);
        }
    }

    /// Stops all nodes and the driver.
    pub fn end(&self) {
        self.alter(|mesh| {
            let nodes: Vec<_> = mesh.nodes().map(|(index, _)| index).collect();
            for node in nodes {
                mesh.stop(node);
            }
        });
        self.ended.cancel();
    }
}

impl Inner {
    pub(super) fn has_ended(&self, node: NodeIndex) -> bool {
        matches!(self.processes.get(&node), Some(Process::Ended { .. }))
    }

    fn refresh_credentials(&mut self, node: NodeIndex) {
        let own = self.own_tokens.get(&node).cloned().unwrap_or_default();
        let credentials = self.tokens.credentials(&self.cluster.mesh().node(node).config().site, &own);
        self.cluster.set_credentials(node, credentials);
    }
}
