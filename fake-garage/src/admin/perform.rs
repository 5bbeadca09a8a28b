//! What a call does, once it is read.

use std::collections::BTreeSet;

use super::auth::{self, Caller, Credentials};
use super::blocks;
use super::call::{Call, Question};
use super::cluster::{Cluster, Reply};
use super::error::ApiError;
use super::health::Health;
use super::layout::{PreviewBody, SkippedBody, history_body, layout_body};
use super::metrics;
use super::node_info::NodeInfo;
use super::nodes::{MultiAnswer, NodeAnswer, Reachable, addressed, reachable};
use super::query::Query;
use super::quorum::{self, Access};
use super::request::{Request, Response};
use super::route::{Route, route};
use super::statistics::{cluster_statistics, node_statistics};
use super::status::status_body;
use super::store::Circumstances;
use super::tables::TableCall;
use super::workers;
use crate::mesh::{NodeIndex, Surroundings, Target, Time};
use jiff::Timestamp;

impl Cluster {
    pub(super) fn respond(
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
        let tokens = self.store.tokens.at(self.clock(node));
        let caller = auth::authorize(request, endpoint, self.credentials_of(node), &tokens, self.profile)?;
        match call {
            Call::OnTables(call) => self.on_tables(node, call, &caller, request),
            call => self.perform(node, call, surroundings),
        }
    }

    fn credentials_of(&self, node: NodeIndex) -> &Credentials {
        static NONE: Credentials =
            Credentials { admin: BTreeSet::new(), metrics: None, metrics_require_token: false };
        self.credentials.get(&node).unwrap_or(&NONE)
    }

    /// What the node's clock shows.
    fn clock(&self, node: NodeIndex) -> Timestamp {
        let millis = i64::try_from(self.mesh.wall_clock(node)).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
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
                let tokens = self.store.tokens.at(self.clock(node));
                auth::authorize_metrics(request, self.credentials_of(node), &tokens, self.profile)?;
                let text = metrics::render(self.mesh.node(node), self.counters.get(&node), self.profile);
                Ok(Response::text(200, Some("text/plain; version=0.0.4"), text))
            }
            Route::CheckDomain => {
                let domain = query.required("domain")?;
                if self.store.buckets.is_website(domain) {
                    return Ok(Response::text(200, None, format!("Domain '{domain}' is managed by Garage")));
                }
                Err(ApiError::bad_request(format_args!("Domain '{domain}' is not managed by Garage")))
            }
            Route::Options | Route::Endpoint(_) => Ok(options()),
        }
    }

    fn on_tables(
        &mut self,
        node: NodeIndex,
        call: TableCall,
        caller: &Caller,
        request: &Request,
    ) -> Result<Reply, ApiError> {
        call.check()?;
        let reached = match call.access(caller) {
            Some(access) => quorum::check(&self.mesh, node, access, self.patience)?,
            None => true,
        };
        if !reached {
            return Ok(Reply::Hangs);
        }
        let at = Circumstances { now: self.clock(node), random: self.mesh.draw() };
        let has_metrics_token = self.credentials_of(node).metrics.is_some();
        call.perform(&mut self.store, caller, &request.origin, has_metrics_token, at).map(Reply::Now)
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
            Call::ClusterStatistics => {
                if !quorum::check(&self.mesh, node, Access::Read, self.patience)? {
                    return Ok(Reply::Hangs);
                }
                Response::json(&cluster_statistics(&self.mesh, node, &self.store))
            }
            Call::ClusterLayout => self.layout(node),
            Call::LayoutHistory => self.layout_history(node),
            Call::UpdateLayout(body) => {
                self.mesh.stage(node, &body.changes()?).map_err(ApiError::bad_request)?;
                self.layout(node)
            }
            Call::PreviewLayout => self.preview(node),
            Call::ApplyLayout(body) => {
                let applied = if self.losing.remove(&node) {
                    self.mesh.apply_too_late(node, body.version)
                } else {
                    self.mesh.apply(node, body.version)
                };
                return applied.map(Reply::Ticket).map_err(ApiError::internal);
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
            Call::OnTables(_) => return Err(ApiError::internal("a call on tables went astray")),
        }))
    }

    fn layout(&mut self, node: NodeIndex) -> Response {
        let place = self.mesh.node(node);
        let answers = self.layout_answers.entry(node).or_default().at(place.layout_changes());
        let history = place.layout().history();
        answers.layout.get_or_insert_with(|| Response::json(&layout_body(history, self.profile))).clone()
    }

    fn layout_history(&mut self, node: NodeIndex) -> Response {
        let place = self.mesh.node(node);
        let answers = self.layout_answers.entry(node).or_default().at(place.layout_changes());
        let history = place.layout().history();
        answers.history.get_or_insert_with(|| Response::json(&history_body(history))).clone()
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
        let ids = addressed(self.mesh.node(from), selector)?;
        let reached: Vec<_> =
            ids.into_iter().map(|id| (id, reachable(&self.mesh, from, id, self.patience))).collect();
        if reached.iter().any(|(_, reachable)| *reachable == Reachable::Hangs) {
            return Ok(Reply::Hangs);
        }
        let mut answer = MultiAnswer::default();
        let mut slowest = Time::ZERO;
        for (id, reachable) in reached {
            if let Reachable::Yes(to) = reachable {
                slowest = slowest.max(self.mesh.extra_round_trip(from, to));
            }
            let told = match reachable {
                Reachable::Yes(to) => self.ask(to, question).map_err(|error| error.remote()),
                Reachable::Hangs => continue,
                Reachable::No(text) => {
                    // A failed call is more than the connection to a dead process takes (capture 17).
                    self.mesh.disconnect(from, id);
                    Err(text)
                }
            };
            match told {
                Ok(value) => {
                    answer.success.insert(id, value);
                }
                Err(text) => {
                    answer.error.insert(id, text);
                }
            }
        }
        let response = Response::json(&answer);
        Ok(if slowest.is_zero() { Reply::Now(response) } else { Reply::After(slowest, response) })
    }

    fn ask(&mut self, node: NodeIndex, question: &Question) -> Result<NodeAnswer, ApiError> {
        let now = self.clock(node);
        let variables = self.variables.entry(node).or_default();
        Ok(match question {
            Question::Info => NodeAnswer::Info(Box::new(NodeInfo::of(&self.mesh, node, self.profile))),
            Question::Statistics => {
                NodeAnswer::Statistics(Box::new(node_statistics(&self.mesh, node, self.profile)))
            }
            Question::Repair(request) if request.repairs_blocks() => {
                variables.launch_block_repair();
                NodeAnswer::Done(())
            }
            Question::Snapshot | Question::Repair(_) => NodeAnswer::Done(()),
            Question::ListWorkers(request) => NodeAnswer::Workers(workers::list(*request, variables, now)),
            Question::Worker(request) => {
                NodeAnswer::Worker(Box::new(workers::get(*request, variables, now)?))
            }
            Question::GetVariable(request) => NodeAnswer::Variables(variables.get(request, now)?),
            Question::SetVariable(request) => NodeAnswer::Variable(variables.set(request, now)?),
            Question::BlockErrors => NodeAnswer::BlockErrors([]),
            Question::BlockInfo(request) => return Err(blocks::info(request)),
            Question::RetryResync(request) => NodeAnswer::Retried(blocks::retry(request)?),
            Question::Purge(hashes) => NodeAnswer::Purged(blocks::purge(hashes)?),
        })
    }
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
        body: Vec::new().into(),
        error: None,
    }
}
