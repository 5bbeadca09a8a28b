//! A mesh in the hub: the simulation, driven by the real clock, with what is recorded about it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::attribution::{NodeTokens, TokenTable};
use super::body::BodyError;
use super::directory::SiteView;
use super::flight::{Amendment, Begun, CallInProgress, Pending};
use super::journal;
use super::listener::Port;
use super::rule::{CallFacts, Effect, Intervention};
use super::shared::Shared;
use crate::admin::{ApiError, Cluster, Happening, LayoutMark, Profile, Request, Response};
use crate::mesh::{Mesh, NodeIndex, Process};

/// A mesh in the hub.
#[derive(Debug)]
pub struct MeshActor {
    /// Its name.
    pub name: String,
    shared: Arc<Shared>,
    began: Instant,
    inner: Mutex<Inner>,
    /// Something may be due sooner than the driver thinks.
    changed: Notify,
    /// Ends the driver and everything that listens.
    ended: CancellationToken,
}

#[derive(Debug)]
struct Inner {
    cluster: Cluster,
    tokens: TokenTable,
    own_tokens: BTreeMap<NodeIndex, NodeTokens>,
    pending: BTreeMap<u64, Pending>,
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
const TURN: Duration = Duration::from_millis(20);

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
    fn wake_driver(&self, inner: &Inner) {
        let next = inner.cluster.mesh().next_event();
        if next.is_some_and(|next| inner.planned.is_none_or(|planned| next < planned)) {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mesh, with everything that is due having happened, if there was time for it.
    fn now(&self) -> MutexGuard<'_, Inner> {
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
                tracing::warn!(
                    mesh = self.name,
                    "the machine is too slow for this mesh: its time falls behind"
                );
            }
            inner.behind += backlog;
        }
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

    /// A request has reached a node: records it, does what rules say, and gives the answer.
    ///
    /// `None` means that there will be no answer: the connection closes. Dropping the future ends the call.
    pub async fn call(
        self: &Arc<Self>,
        node: NodeIndex,
        request: Request,
        host: Option<String>,
    ) -> Option<Response> {
        let (progress, held) = {
            let mut inner = self.now();
            if inner.has_ended(node) {
                // Its port closes just now: nobody has read this request.
                return None;
            }
            let Begun { progress, request, intervention } = self.begin_call(&mut inner, node, request, host);
            if let Some(intervention) = intervention {
                (progress, Some((request, intervention)))
            } else {
                self.perform_now(&mut inner, &progress, request);
                (progress, None)
            }
        };
        if let Some((request, intervention)) = held {
            // The call may stay in flight for long: whoever reads the history finds it.
            self.shared.recorder.flush();
            self.intervene(&progress, request, intervention).await;
        }
        // What takes long is in the history meanwhile.
        self.shared.recorder.flush();
        let response = progress.answer().await;
        // Nobody is told what is not in the history.
        response.filter(|_| self.shared.recorder.flush())
    }

    /// Does to a call what a rule says.
    async fn intervene(&self, progress: &CallInProgress, request: Request, mut intervention: Intervention) {
        intervention.wait().await;
        match intervention.effect {
            Effect::Answer { status, body, perform } => {
                let replacement = Response::replaced(status, &body);
                if perform {
                    self.perform(progress, request, Some(Amendment::Replace(replacement)));
                } else {
                    self.answer_instead(progress, Some(replacement));
                }
            }
            Effect::Drop { perform: true } => self.perform(progress, request, Some(Amendment::Drop)),
            Effect::Drop { perform: false } => self.answer_instead(progress, None),
            Effect::LoseRace => {
                self.lock().cluster.lose_next_race(progress.node);
                self.perform(progress, request, None);
            }
            Effect::Delay { .. } | Effect::Hold { .. } => self.perform(progress, request, None),
        }
    }

    /// A request whose body could not be read: records it as a call that had no effect, and gives the answer.
    pub fn call_cut_short(
        self: &Arc<Self>,
        node: NodeIndex,
        request: Request,
        host: Option<String>,
        error: &BodyError,
    ) -> Option<Response> {
        let error = ApiError::new(500, "InternalError", error.to_string());
        let response = Response::error(&error, &request.path);
        let begun = {
            let mut inner = self.now();
            if inner.has_ended(node) {
                return None;
            }
            self.begin_call(&mut inner, node, request, host)
        };
        self.answer_instead(&begun.progress, Some(response.clone()));
        self.shared.recorder.flush();
        Some(response)
    }

    /// Attributes a call, records that it begins, and asks the rules.
    fn begin_call(
        self: &Arc<Self>,
        inner: &mut Inner,
        node: NodeIndex,
        request: Request,
        host: Option<String>,
    ) -> Begun {
        let (sender, answer) = oneshot::channel();
        let call = self.shared.next_call();
        let absent = NodeTokens::default();
        let own = inner.own_tokens.get(&node).unwrap_or(&absent);
        let creator = |id: &str| inner.cluster.token_creator(id).cloned();
        let origin = inner.tokens.attribute(&request, own, creator);
        let request = Request { origin, ..request };
        let before = inner.cluster.layout_mark(node);
        let place = inner.cluster.mesh().node(node);
        let name = &place.config().name;
        let intervention = self.shared.rules.meet(CallFacts {
            mesh: &self.name,
            caller: request.origin.caller.as_deref(),
            node: name,
            method: &request.method,
            path: &request.path,
        });
        let recorder = &self.shared.recorder;
        recorder.enqueue(|| journal::call_begin(call, &self.name, place, &request, host, before));
        if let Some(intervention) = &intervention {
            recorder.enqueue(|| journal::intervention_event(&self.name, name, call, intervention));
        }
        inner.pending.insert(call, Pending { node, sender, amendment: None });
        let progress = CallInProgress { actor: Arc::clone(self), call, node, answer };
        Begun { progress, request, intervention }
    }

    fn perform(&self, progress: &CallInProgress, request: Request, amendment: Option<Amendment>) {
        let mut inner = self.now();
        if let Some(pending) = inner.pending.get_mut(&progress.call) {
            pending.amendment = amendment;
        }
        self.perform_now(&mut inner, progress, request);
    }

    fn perform_now(&self, inner: &mut Inner, progress: &CallInProgress, request: Request) {
        let site = inner.cluster.mesh().node(progress.node).config().site.clone();
        let around = SiteView { directory: &self.shared.directory, site: &site, mesh: &self.name };
        inner.cluster.handle(progress.call, progress.node, request, &around);
        self.tell(inner);
        self.wake_driver(inner);
    }

    /// Ends a call without performing it.
    fn answer_instead(&self, progress: &CallInProgress, response: Option<Response>) {
        let mut inner = self.lock();
        let after = inner.cluster.layout_mark(progress.node);
        self.finish(&mut inner, progress.call, response, after);
    }

    fn finish(&self, inner: &mut Inner, call: u64, response: Option<Response>, after: LayoutMark) {
        let Some(pending) = inner.pending.remove(&call) else { return };
        let response = match pending.amendment {
            None => response,
            Some(Amendment::Replace(replacement)) => Some(replacement),
            Some(Amendment::Drop) => None,
        };
        self.shared.recorder.enqueue(|| journal::call_end(call, response.as_ref(), after));
        // The caller may have gone away just now; the answer is recorded all the same.
        drop(pending.sender.send(response));
    }

    /// Ends a call whose caller has gone away.
    pub(super) fn abandon(&self, call: u64, node: NodeIndex) {
        let mut inner = self.lock();
        if inner.pending.remove(&call).is_some() {
            inner.cluster.abandon(call);
            let after = inner.cluster.layout_mark(node);
            self.shared.recorder.enqueue(|| journal::call_end(call, None, after));
            drop(inner);
            self.shared.recorder.flush();
        }
    }

    /// Records what has happened, and answers the calls that are over.
    fn tell(&self, inner: &mut Inner) {
        for happening in inner.cluster.take_happenings() {
            match happening {
                Happening::Answered { call, response, after, .. } => {
                    self.finish(inner, call, response, after);
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

    /// Ends the calls on a process that has ended, those included that a rule holds.
    fn end_calls(&self, inner: &mut Inner, node: NodeIndex) {
        let calls = inner.pending.iter().filter(|(_, pending)| pending.node == node);
        let calls: Vec<_> = calls.map(|(call, _)| *call).collect();
        for call in calls {
            let after = inner.cluster.layout_mark(node);
            self.finish(inner, call, None, after);
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
    fn has_ended(&self, node: NodeIndex) -> bool {
        matches!(self.processes.get(&node), Some(Process::Ended { .. }))
    }

    fn refresh_credentials(&mut self, node: NodeIndex) {
        let own = self.own_tokens.get(&node).cloned().unwrap_or_default();
        let credentials = self.tokens.credentials(&self.cluster.mesh().node(node).config().site, &own);
        self.cluster.set_credentials(node, credentials);
    }
}
