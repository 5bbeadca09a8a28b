//! A mesh with the admin API of its nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::auth::Credentials;
use super::error::ApiError;
use super::happening::{Happening, LayoutMark};
use super::layout::AppliedBody;
use super::metrics;
use super::nodes::Patience;
use super::profile::Profile;
use super::request::{Attribution, Request, Response};
use super::store::Store;
use super::workers::Variables;
use crate::mesh::{Mesh, NodeIndex, Output, Process, Surroundings, Time};

/// A mesh with the admin API of its nodes.
#[derive(Debug)]
pub struct Cluster {
    pub(super) mesh: Mesh,
    pub(super) profile: Profile,
    pub(super) credentials: BTreeMap<NodeIndex, Credentials>,
    pub(super) counters: BTreeMap<NodeIndex, metrics::Counters>,
    pub(super) variables: BTreeMap<NodeIndex, Variables>,
    pub(super) store: Store,
    /// Nodes whose next apply loses against another one.
    pub(super) losing: BTreeSet<NodeIndex>,
    /// What nodes answer about a layout that has not changed since.
    pub(super) layout_answers: BTreeMap<NodeIndex, LayoutAnswers>,
    /// Calls that wait for the mesh, by its ticket.
    waiting: BTreeMap<u64, (u64, NodeIndex)>,
    /// Calls on frozen nodes, and calls that wait for what other nodes do not answer.
    stalled: Vec<Stalled>,
    /// Answers that are on their way over slow links, by the ticket that brings them.
    under_way: BTreeMap<u64, (u64, NodeIndex, Response)>,
    /// Whether other nodes are still waited for, in the call that is being answered.
    pub(super) patience: Patience,
    happenings: Vec<Happening>,
}

/// Answers about a node's layout, which are good until it changes.
#[derive(Debug, Default)]
pub(super) struct LayoutAnswers {
    changes: u64,
    pub(super) layout: Option<Response>,
    pub(super) history: Option<Response>,
}

impl LayoutAnswers {
    /// Those about the layout that has changed so many times.
    pub(super) fn at(&mut self, changes: u64) -> &mut Self {
        if self.changes != changes {
            *self = Self { changes, ..Self::default() };
        }
        self
    }
}

/// A call that cannot go on.
#[derive(Debug)]
struct Stalled {
    call: u64,
    node: NodeIndex,
    request: Request,
    /// What tells that it has waited long enough; none while its own node is frozen.
    timeout: Option<u64>,
}

/// How a call is answered.
pub(super) enum Reply {
    /// At once.
    Now(Response),
    /// After some time: what other nodes told came over slow links.
    After(Time, Response),
    /// The mesh will tell, under this ticket.
    Ticket(u64),
    /// Nobody knows when.
    Hangs,
}

impl Cluster {
    /// A cluster on `mesh`.
    #[must_use]
    pub fn new(mesh: Mesh, profile: Profile) -> Self {
        Self {
            mesh,
            profile,
            credentials: BTreeMap::new(),
            counters: BTreeMap::new(),
            variables: BTreeMap::new(),
            store: Store::default(),
            losing: BTreeSet::new(),
            layout_answers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            stalled: Vec::new(),
            under_way: BTreeMap::new(),
            patience: Patience::Waiting,
            happenings: Vec::new(),
        }
    }

    /// The mesh.
    #[must_use]
    pub const fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Which version of Garage the nodes pretend to be.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// How `node` tells `error` about a request for `path`.
    #[must_use]
    pub fn refusal(&self, error: &ApiError, node: NodeIndex, path: &str) -> Response {
        Response::error(error, path, &self.mesh.node(node).config().region)
    }

    /// Sets the tokens of a node.
    pub fn set_credentials(&mut self, node: NodeIndex, credentials: Credentials) {
        self.credentials.insert(node, credentials);
    }

    /// Does something to the mesh, and collects what that led to.
    pub fn alter<T>(&mut self, change: impl FnOnce(&mut Mesh) -> T) -> T {
        let result = change(&mut self.mesh);
        self.collect(true);
        result
    }

    /// Lets everything happen that is due at or before `now`.
    pub fn advance(&mut self, now: Time) {
        while self.mesh.step(now) {
            self.collect(false);
        }
    }

    /// Lets what is due at or before `now` happen for as long as `more` says so. Whether that was everything.
    pub fn advance_while(&mut self, now: Time, mut more: impl FnMut() -> bool) -> bool {
        while self.mesh.step(now) {
            self.collect(false);
            if !more() {
                return false;
            }
        }
        true
    }

    /// What has happened since this was asked last.
    #[must_use]
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happenings)
    }

    /// Who made the token of that identity through the API.
    #[must_use]
    pub fn token_creator(&self, id: &str) -> Option<&Attribution> {
        self.store.tokens.creator(id)
    }

    /// Where a node's layout stands.
    #[must_use]
    pub fn layout_mark(&self, node: NodeIndex) -> LayoutMark {
        let node = self.mesh.node(node);
        LayoutMark {
            incarnation: node.incarnation(),
            version: node.layout().current().number,
            digest: Arc::clone(node.layout_digest()),
        }
    }

    /// A request reaches a node. The answer comes as a [`Happening`], at once or later.
    pub fn handle(&mut self, call: u64, node: NodeIndex, request: Request, surroundings: &dyn Surroundings) {
        match self.mesh.node(node).process() {
            Process::Frozen => self.stalled.push(Stalled { call, node, request, timeout: None }),
            Process::Ended { .. } => self.answered(call, node, None),
            Process::Running => self.reply(call, node, request, surroundings),
        }
        self.collect(false);
    }

    /// The next apply on `node` is answered, and another version of its number will have come first.
    pub fn lose_next_race(&mut self, node: NodeIndex) {
        self.losing.insert(node);
    }

    /// Gives up a call whose caller has gone away.
    pub fn abandon(&mut self, call: u64) {
        self.waiting.retain(|_, (waiting, _)| *waiting != call);
        self.stalled.retain(|stalled| stalled.call != call);
        self.under_way.retain(|_, (waiting, _, _)| *waiting != call);
    }

    fn reply(&mut self, call: u64, node: NodeIndex, request: Request, surroundings: &dyn Surroundings) {
        let counters = self.counters.entry(node).or_default();
        counters.requests(&request.path);
        match self.respond(node, &request, surroundings) {
            Ok(Reply::Now(response)) => self.answered(call, node, Some(response)),
            Ok(Reply::Ticket(ticket)) => {
                self.waiting.insert(ticket, (call, node));
            }
            Ok(Reply::After(time, response)) => {
                let ticket = self.mesh.wake(node, time);
                self.under_way.insert(ticket, (call, node, response));
            }
            Ok(Reply::Hangs) => {
                let timeout = Some(self.mesh.wake(node, self.mesh.pacing().rpc_timeout));
                self.stalled.push(Stalled { call, node, request, timeout });
            }
            Err(error) => {
                self.counters.entry(node).or_default().errors(&request.path, error.status());
                self.answered(call, node, Some(self.refusal(&error, node, &request.path)));
            }
        }
    }

    fn answered(&mut self, call: u64, node: NodeIndex, response: Option<Response>) {
        let after = self.layout_mark(node);
        self.happenings.push(Happening::Answered { call, node, response, after });
    }

    /// Turns what the mesh tells into happenings. `mended` tells that stalled calls may go on.
    fn collect(&mut self, mended: bool) {
        let mut retry = mended;
        for output in self.mesh.take_outputs() {
            match output {
                Output::Layout { node, event, held } => {
                    self.happenings.push(Happening::Layout { node, event, held });
                }
                Output::Disconnected { .. } => retry = true,
                Output::Woken { ticket } => self.woken(ticket),
                Output::Log { node, line } => self.happenings.push(Happening::Log { node, line }),
                Output::Process { node, process } => {
                    self.happenings.push(Happening::Process { node, process });
                    self.process_changed(node, process);
                    retry = true;
                }
                Output::Applied { ticket, applied } => {
                    let body = AppliedBody::new(&applied.version, &applied.statistics, self.profile);
                    let response = Response::json(&body);
                    self.ticket_done(ticket, response);
                }
                Output::Connected { ticket, results } => {
                    let results: Vec<_> = results.into_iter().map(connect_body).collect();
                    self.ticket_done(ticket, Response::json(&results));
                }
            }
        }
        if retry && !self.stalled.is_empty() {
            self.retry_stalled();
        }
    }

    fn ticket_done(&mut self, ticket: u64, response: Response) {
        if let Some((call, node)) = self.waiting.remove(&ticket) {
            self.answered(call, node, Some(response));
        }
    }

    /// Whoever waits for a process that has ended gets no answer.
    fn process_changed(&mut self, node: NodeIndex, process: Process) {
        if !matches!(process, Process::Ended { .. }) {
            return;
        }
        self.counters.remove(&node);
        let waiting: BTreeSet<_> =
            self.waiting.values().filter(|(_, at)| *at == node).map(|(call, _)| *call).collect();
        self.waiting.retain(|_, (call, _)| !waiting.contains(call));
        let stalled = self.stalled.extract_if(.., |stalled| stalled.node == node).map(|stalled| stalled.call);
        let under_way =
            self.under_way.extract_if(.., |_, (_, at, _)| *at == node).map(|(_, (call, ..))| call);
        let calls: Vec<_> = stalled.chain(under_way).chain(waiting).collect();
        for call in calls {
            self.answered(call, node, None);
        }
    }

    fn retry_stalled(&mut self) {
        for stalled in std::mem::take(&mut self.stalled) {
            if self.mesh.node(stalled.node).is_running() {
                self.try_again(stalled);
            } else {
                self.stalled.push(stalled);
            }
        }
    }

    /// Tries a stalled call again. One that still cannot go on has waited since it began, not since now.
    fn try_again(&mut self, stalled: Stalled) {
        let Stalled { call, node, request, timeout } = stalled;
        self.reply(call, node, request, &crate::mesh::connect::Nowhere);
        if let (Some(again), Some(began)) = (self.stalled.last_mut(), timeout)
            && again.call == call
        {
            again.timeout = Some(began);
        }
    }

    /// An answer has come over slow links, or a call has waited for another node for long enough.
    fn woken(&mut self, ticket: u64) {
        if let Some((call, node, response)) = self.under_way.remove(&ticket) {
            return self.answered(call, node, Some(response));
        }
        let place = self.stalled.iter().position(|stalled| stalled.timeout == Some(ticket));
        if let Some(place) = place {
            let stalled = self.stalled.remove(place);
            self.patience = Patience::Over;
            self.try_again(stalled);
            self.patience = Patience::Waiting;
        }
    }
}

#[derive(serde::Serialize)]
struct ConnectBody {
    success: bool,
    error: Option<String>,
}

fn connect_body(result: Result<(), String>) -> ConnectBody {
    ConnectBody { success: result.is_ok(), error: result.err() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::layout::{ConsistencyMode, NodeId};
    use crate::mesh::{NodeConfig, Pacing, Target, connect::Nowhere};

    fn node(place: u8) -> NodeConfig {
        NodeConfig {
            name: format!("east/ns/garage-{place}"),
            site: "east".into(),
            address: [127, 0, 0, place].into(),
            hostname: format!("garage-{place}"),
            region: "garage".to_owned(),
            factor: 1,
            mode: ConsistencyMode::Consistent,
            rpc_secret: "shared".into(),
            clock_offset: 0,
        }
    }

    #[test]
    fn work_that_is_cut_short_stays_due_and_the_time_stands_where_it_was_left() {
        let (first, second) = (NodeId::new([1; 32]), NodeId::new([2; 32]));
        let mut mesh = Mesh::new(Pacing::fast(), 0, 1);
        let (caller, callee) = (mesh.add(first, node(1)), mesh.add(second, node(2)));
        let target = Target::Node { id: second, address: mesh.node(callee).config().rpc_address() };
        mesh.connect(caller, &[target], &Nowhere);
        let mut cluster = Cluster::new(mesh, Profile::V2_5);
        let due = Duration::from_secs(2);

        assert!(!cluster.advance_while(due, || false), "one thing happened, and more is due");
        assert!(cluster.mesh().now() < due);
        assert!(!cluster.mesh().node(callee).sees_up(first));

        assert!(cluster.advance_while(due, || true));
        assert_eq!(cluster.mesh().now(), due);
        assert!(cluster.mesh().node(callee).sees_up(first));
    }
}
