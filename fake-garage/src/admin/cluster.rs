//! A mesh with the admin API of its nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::auth::{self, Caller, Credentials, DynamicTokens};
use super::call::{Call, Question};
use super::error::ApiError;
use super::health::Health;
use super::layout::{AppliedBody, PreviewBody, SkippedBody, history_body, layout_body};
use super::metrics;
use super::node_info::NodeInfo;
use super::nodes::{MultiAnswer, NodeAnswer, Reachable, addressed, reachable};
use super::profile::Profile;
use super::query::Query;
use super::request::{Request, Response};
use super::route::{Route, route};
use super::status::status_body;
use crate::layout::LayoutEvent;
use crate::mesh::{Mesh, NodeIndex, Output, Process, Surroundings, Target, Time};

/// Something that happened in a cluster, in the order in which it did.
#[derive(Debug)]
pub enum Happening {
    /// A call was answered, or (with `None`) will never be: the process ended.
    Answered {
        /// The number the caller gave the call.
        call: u64,
        /// The node that was called.
        node: NodeIndex,
        /// The answer.
        response: Option<Response>,
        /// The node's layout right then.
        after: LayoutMark,
    },
    /// Something happened to a node's layout.
    Layout {
        /// The node.
        node: NodeIndex,
        /// What.
        event: LayoutEvent,
    },
    /// A process started or ended.
    Process {
        /// The node.
        node: NodeIndex,
        /// Its state since.
        process: Process,
    },
    /// A node wrote a line to its log.
    Log {
        /// The node.
        node: NodeIndex,
        /// The line.
        line: String,
    },
}

/// Where a node's layout stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutMark {
    /// How often the layout began anew.
    pub incarnation: u64,
    /// Number of the current version.
    pub version: u64,
    /// Digest of everything.
    pub digest: String,
}

/// A mesh with the admin API of its nodes.
#[derive(Debug)]
pub struct Cluster {
    mesh: Mesh,
    profile: Profile,
    credentials: BTreeMap<NodeIndex, Credentials>,
    counters: BTreeMap<NodeIndex, metrics::Counters>,
    /// Calls that wait for the mesh, by its ticket.
    waiting: BTreeMap<u64, (u64, NodeIndex)>,
    /// Calls on frozen nodes, and calls that wait for frozen ones.
    stalled: Vec<(u64, NodeIndex, Request)>,
    happenings: Vec<Happening>,
}

enum Reply {
    Now(Response),
    /// The mesh will tell, under this ticket.
    Ticket(u64),
    /// Nobody knows when.
    Hangs,
}

struct NoTokens;

impl DynamicTokens for NoTokens {
    fn admits(&self, _: &str, _: &str, _: Option<&str>) -> bool {
        false
    }
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
            waiting: BTreeMap::new(),
            stalled: Vec::new(),
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

    /// What has happened since this was asked last.
    #[must_use]
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happenings)
    }

    /// Where a node's layout stands.
    #[must_use]
    pub fn layout_mark(&self, node: NodeIndex) -> LayoutMark {
        let node = self.mesh.node(node);
        LayoutMark {
            incarnation: node.incarnation(),
            version: node.layout().current().number,
            digest: node.layout_digest().to_owned(),
        }
    }

    /// A request reaches a node. The answer comes as a [`Happening`], at once or later.
    pub fn handle(&mut self, call: u64, node: NodeIndex, request: Request, surroundings: &dyn Surroundings) {
        match self.mesh.node(node).process() {
            Process::Frozen => self.stalled.push((call, node, request)),
            Process::Ended { .. } => self.answered(call, node, None),
            Process::Running => self.reply(call, node, request, surroundings),
        }
        self.collect(false);
    }

    /// Gives up a call whose caller has gone away.
    pub fn abandon(&mut self, call: u64) {
        self.waiting.retain(|_, (waiting, _)| *waiting != call);
        self.stalled.retain(|(stalled, _, _)| *stalled != call);
    }

    fn reply(&mut self, call: u64, node: NodeIndex, request: Request, surroundings: &dyn Surroundings) {
        let counters = self.counters.entry(node).or_default();
        counters.requests(&request.path);
        match self.respond(node, &request, surroundings) {
            Ok(Reply::Now(response)) => self.answered(call, node, Some(response)),
            Ok(Reply::Ticket(ticket)) => {
                self.waiting.insert(ticket, (call, node));
            }
            Ok(Reply::Hangs) => self.stalled.push((call, node, request)),
            Err(error) => {
                self.counters.entry(node).or_default().errors(&request.path, error.status());
                self.answered(call, node, Some(Response::error(&error, &request.path)));
            }
        }
    }

    fn answered(&mut self, call: u64, node: NodeIndex, response: Option<Response>) {
        let after = self.layout_mark(node);
        self.happenings.push(Happening::Answered { call, node, response, after });
    }

    fn respond(
        &mut self,
        node: NodeIndex,
        request: &Request,
        surroundings: &dyn Surroundings,
    ) -> Result<Reply, ApiError> {
        let query = Query::parse(request.query.as_deref())?;
        let endpoint = match route(&request.method, &request.path, &query, self.profile.is_2_5())? {
            Route::Endpoint(endpoint) => endpoint,
            special => return self.special(node, special, request, &query).map(Reply::Now),
        };
        let call = Call::read(endpoint, request, &query)?;
        let closed = Credentials::default();
        let credentials = self.credentials.get(&node).unwrap_or(&closed);
        let _: Caller = auth::authorize(request, endpoint, credentials, &NoTokens, self.profile)?;
        self.perform(node, call, surroundings)
    }

    fn special(
        &self,
        node: NodeIndex,
        route: Route,
        request: &Request,
        query: &Query,
    ) -> Result<Response, ApiError> {
        match route {
            Route::Health => {
                let (status, text) = Health::of(self.mesh.node(node)).probe();
                Ok(Response::text(status, Some("text/plain"), text))
            }
            Route::Metrics => {
                let closed = Credentials::default();
                let credentials = self.credentials.get(&node).unwrap_or(&closed);
                auth::authorize_metrics(request, credentials, &NoTokens, self.profile)?;
                let text = metrics::render(self.mesh.node(node), self.counters.get(&node), self.profile);
                Ok(Response::text(200, Some("text/plain; version=0.0.4"), text))
            }
            Route::CheckDomain => {
                let domain = query.required("domain")?;
                Err(ApiError::bad_request(format_args!("Domain '{domain}' is not managed by Garage")))
            }
            Route::Options | Route::Endpoint(_) => Ok(options()),
        }
    }

    fn perform(
        &mut self,
        node: NodeIndex,
        call: Call,
        surroundings: &dyn Surroundings,
    ) -> Result<Reply, ApiError> {
        let profile = self.profile;
        Ok(Reply::Now(match call {
            Call::ClusterStatus => Response::json(&status_body(&self.mesh, node, profile)),
            Call::ClusterHealth => Response::json(&Health::of(self.mesh.node(node))),
            Call::ClusterLayout => self.layout(node),
            Call::LayoutHistory => Response::json(&history_body(self.mesh.node(node).layout().history())),
            Call::UpdateLayout(body) => {
                self.mesh.stage(node, &body.changes()?).map_err(ApiError::bad_request)?;
                self.layout(node)
            }
            Call::PreviewLayout => self.preview(node),
            Call::ApplyLayout(body) => {
                return self.mesh.apply(node, body.version).map(Reply::Ticket).map_err(ApiError::internal);
            }
            Call::RevertLayout => {
                self.mesh.revert(node);
                self.layout(node)
            }
            Call::SkipDeadNodes(body) => {
                let skipped = self.mesh.skip_dead_nodes(node, body.version, body.allow_missing_data);
                let skipped = skipped.map_err(ApiError::bad_request)?;
                Response::json(&SkippedBody { ack_updated: skipped.ack, sync_updated: skipped.sync })
            }
            Call::ConnectNodes(entries) => {
                let targets: Vec<_> =
                    entries.iter().map(|entry| Target::parse(entry, surroundings)).collect();
                return Ok(Reply::Ticket(self.mesh.connect(node, &targets, surroundings)));
            }
            Call::OnNodes { selector, question } => return self.ask_nodes(node, &selector, &question),
            Call::NotOffered(endpoint) => {
                return Err(ApiError::new(
                    501,
                    "NotImplemented",
                    format!("Not implemented: this fake does not offer {endpoint}"),
                ));
            }
        }))
    }

    fn layout(&self, node: NodeIndex) -> Response {
        Response::json(&layout_body(self.mesh.node(node).layout().history(), self.profile))
    }

    fn preview(&self, node: NodeIndex) -> Response {
        match self.mesh.preview(node) {
            Ok(computed) => Response::json(&PreviewBody::new(
                computed.history.current(),
                &computed.statistics,
                self.profile,
            )),
            Err(error) => Response::json(&PreviewBody::Error { error: error.to_string() }),
        }
    }

    fn ask_nodes(&mut self, from: NodeIndex, selector: &str, question: &Question) -> Result<Reply, ApiError> {
        let mut answer = MultiAnswer::default();
        for id in addressed(self.mesh.node(from), selector)? {
            match reachable(&self.mesh, from, id) {
                Reachable::Hangs => return Ok(Reply::Hangs),
                Reachable::No(text) => {
                    // A failed call is more than the connection to a dead process takes (capture 17).
                    self.mesh.disconnect(from, id);
                    answer.error.insert(id, text);
                }
                Reachable::Yes(to) => {
                    answer.success.insert(id, self.ask(to, question));
                }
            }
        }
        Ok(Reply::Now(Response::json(&answer)))
    }

    fn ask(&self, node: NodeIndex, question: &Question) -> NodeAnswer {
        match question {
            Question::Info => NodeAnswer::Info(Box::new(NodeInfo::of(&self.mesh, node, self.profile))),
        }
    }

    /// Turns what the mesh tells into happenings. `mended` tells that stalled calls may go on.
    fn collect(&mut self, mended: bool) {
        let mut retry = mended;
        for output in self.mesh.take_outputs() {
            match output {
                Output::Layout { node, event } => self.happenings.push(Happening::Layout { node, event }),
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
        let stalled = self.stalled.extract_if(.., |(_, at, _)| *at == node).map(|(call, _, _)| call);
        let calls: Vec<_> = stalled.collect::<Vec<_>>().into_iter().chain(waiting).collect();
        for call in calls {
            self.answered(call, node, None);
        }
    }

    fn retry_stalled(&mut self) {
        for (call, node, request) in std::mem::take(&mut self.stalled) {
            if self.mesh.node(node).is_running() {
                self.reply(call, node, request, &crate::mesh::connect::Nowhere);
            } else {
                self.stalled.push((call, node, request));
            }
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

fn options() -> Response {
    Response {
        status: 200,
        headers: vec![
            ("allow", "OPTIONS,GET,POST"),
            ("access-control-allow-methods", "OPTIONS,GET,POST"),
            ("access-control-allow-headers", "authorization,content-type"),
            ("access-control-allow-origin", "*"),
        ],
        body: Vec::new(),
        error: None,
    }
}
