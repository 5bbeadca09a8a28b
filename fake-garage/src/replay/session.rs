//! Running a session against a fake cluster, under virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::binding::Bindings;
use super::compare::{Comparison, Difference};
use super::report::{FileReport, Mismatch};
use super::script::{Action, Exchange, Scope, Script, ScriptRequest};
use crate::admin::request::Attribution;
use crate::admin::{Cluster, Happening, Profile, Request, Response};
use crate::mesh::connect::Nowhere;
use crate::mesh::{Mesh, NodeIndex, Pacing, Time};

/// How long the recorder waited for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// A session under way.
pub(super) struct Session<'a> {
    pub(super) script: &'a Script,
    pub(super) cluster: Cluster,
    pub(super) nodes: BTreeMap<String, NodeIndex>,
    pub(super) factors: BTreeMap<String, usize>,
    pub(super) bindings: Bindings,
    /// Steps that wait for an answer, with the moment at which the recorder gave up.
    pub(super) waiting: BTreeMap<usize, Time>,
    pub(super) exits: Vec<ExpectedExit>,
    pub(super) report: FileReport,
}

pub(super) struct ExpectedExit {
    pub(super) step: usize,
    pub(super) node: String,
    pub(super) code: i32,
    pub(super) deadline: Time,
}

/// Runs a session and compares every answer.
#[must_use]
pub fn run(script: &Script, seed: u64) -> FileReport {
    let mut bindings = Bindings::default();
    bindings.bind("<ADMIN_TOKEN>", "the-admin-token");
    bindings.bind("<METRICS_TOKEN>", "the-metrics-token");
    let mut session = Session {
        script,
        cluster: cluster(seed),
        nodes: BTreeMap::new(),
        factors: BTreeMap::new(),
        bindings,
        waiting: BTreeMap::new(),
        exits: Vec::new(),
        report: FileReport::new(&script.name),
    };
    for (number, step) in script.steps.iter().enumerate() {
        session.advance(Duration::from_millis(step.at_ms));
        match &step.action {
            Action::Exchange(exchange) => session.send(number, exchange),
            Action::Operation(operation) => session.operate(number, operation),
        }
    }
    session.finish()
}

fn cluster(seed: u64) -> Cluster {
    // A recent moment, so that dates look as they do today; nothing depends on it.
    const ORIGIN: u64 = 1_790_000_000_000;
    Cluster::new(Mesh::new(Pacing::calm(), ORIGIN, seed), Profile::V2_5)
}

impl Session<'_> {
    fn advance(&mut self, to: Time) {
        // Patience ends at moments of its own.
        while let Some((step, until)) = self.next_timeout().filter(|(_, until)| *until <= to) {
            self.cluster.advance(until);
            self.collect();
            if self.waiting.remove(&step).is_some() {
                self.cluster.abandon(call_number(step));
                self.no_answer(step);
            }
        }
        self.cluster.advance(to);
        self.collect();
        self.check_exits(to);
    }

    fn next_timeout(&self) -> Option<(usize, Time)> {
        self.waiting.iter().map(|(step, until)| (*step, *until)).min_by_key(|(_, until)| *until)
    }

    fn finish(mut self) -> FileReport {
        let last = self.cluster.mesh().now();
        let deadline = self.exits.iter().map(|exit| exit.deadline).max();
        self.advance((last + PATIENCE).max(deadline.unwrap_or_default()) + Duration::from_millis(1));
        self.report
    }

    pub(super) fn index(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.get(name).copied()
    }

    fn exchange(&self, step: usize) -> Option<&Exchange> {
        match &self.script.steps.get(step)?.action {
            Action::Exchange(exchange) => Some(exchange),
            Action::Operation(_) => None,
        }
    }

    fn send(&mut self, step: usize, exchange: &Exchange) {
        let Some(node) = self.index(&exchange.node) else {
            let answered = "a node that was never started";
            return self.mismatch(step, vec![Difference::new("(node)", "a running node", answered)]);
        };
        self.waiting.insert(step, self.cluster.mesh().now() + PATIENCE);
        let request = self.request(&exchange.request);
        self.cluster.handle(call_number(step), node, request, &Nowhere);
        self.collect();
    }

    fn request(&self, request: &ScriptRequest) -> Request {
        let authorization = request.headers.get("authorization").cloned().flatten();
        Request {
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.as_deref().map(|query| self.bindings.fill(query)),
            // Surrounding white space is not part of a header's value.
            authorization: authorization.map(|value| self.bindings.fill(&value).trim().as_bytes().to_vec()),
            body: self.bindings.fill(&request.wire_body()).into_bytes(),
            origin: Attribution::default(),
        }
    }

    pub(super) fn collect(&mut self) {
        for happening in self.cluster.take_happenings() {
            if let Happening::Answered { call, response, .. } = happening {
                let step = usize::try_from(call).unwrap_or(usize::MAX);
                if self.waiting.remove(&step).is_some() {
                    match response {
                        Some(response) => self.judge(step, &response),
                        None => self.no_answer(step),
                    }
                }
            }
        }
    }

    fn no_answer(&mut self, step: usize) {
        let Some(exchange) = self.exchange(step) else { return };
        match (exchange.scope, exchange.expect.status) {
            (Scope::Nothing, _) => self.report.skipped += 1,
            (_, None) => self.report.compared += 1,
            (_, Some(status)) => {
                self.mismatch(step, vec![Difference::new("(status)", status, "no answer within 15 s")]);
            }
        }
    }

    fn judge(&mut self, step: usize, response: &Response) {
        let Some(exchange) = self.exchange(step) else { return };
        if exchange.scope == Scope::Nothing {
            self.report.skipped += 1;
            return;
        }
        let differences = self.differences(step, response);
        if differences.is_empty() {
            self.report.compared += 1;
        } else {
            self.mismatch(step, differences);
        }
    }

    fn differences(&mut self, step: usize, response: &Response) -> Vec<Difference> {
        let script = self.script;
        let Action::Exchange(exchange) = &script.steps[step].action else { return Vec::new() };
        if exchange.expect.status != Some(response.status) {
            let expected =
                exchange.expect.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
            let answered = format!("{} {}", response.status, String::from_utf8_lossy(&response.body));
            return vec![Difference::new("(status)", expected, answered)];
        }
        if exchange.scope == Scope::Status {
            // What is created while preparing may be named later.
            self.compare_body(exchange, response);
            return Vec::new();
        }
        let mut differences = headers(exchange, response);
        differences.extend(self.compare_body(exchange, response));
        differences
    }

    fn compare_body(&mut self, exchange: &Exchange, response: &Response) -> Vec<Difference> {
        let text = String::from_utf8_lossy(&response.body);
        if let Some(expected) = &exchange.expect.body {
            let Ok(answered) = serde_json::from_slice::<Value>(&response.body) else {
                return vec![Difference::new("$", expected, text)];
            };
            let factor = self.factors.get(&exchange.node).copied().unwrap_or(1);
            let mut comparison = Comparison {
                bindings: &mut self.bindings,
                volatile: &exchange.volatile,
                factor,
                differences: Vec::new(),
            };
            comparison.body(expected, &answered);
            return comparison.differences;
        }
        let free = exchange.request.path == "/metrics" && exchange.expect.status == Some(200)
            || exchange.request.method == "HEAD"
            || exchange.volatile.iter().any(|path| path == "text");
        let expected = exchange.expect.body_text.as_deref().unwrap_or_default();
        if free || self.bindings.matches(expected, &text) {
            Vec::new()
        } else {
            vec![Difference::new("text", expected, text)]
        }
    }

    pub(super) fn mismatch(&mut self, step: usize, differences: Vec<Difference>) {
        let step_of = &self.script.steps[step];
        let request = match &step_of.action {
            Action::Exchange(exchange) => {
                let query =
                    exchange.request.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
                let request = &exchange.request;
                format!(
                    "{} {} {}{query} {}",
                    exchange.node,
                    request.method,
                    request.path,
                    request.wire_body()
                )
            }
            Action::Operation(operation) => format!("{operation:?}"),
        };
        let state = self.nodes.iter().map(|(name, node)| state_line(&self.cluster, name, *node)).collect();
        self.report.mismatches.push(Mismatch { step, at_ms: step_of.at_ms, request, differences, state });
    }
}

fn call_number(step: usize) -> u64 {
    u64::try_from(step).unwrap_or(u64::MAX)
}

/// The headers that count.
fn headers(exchange: &Exchange, response: &Response) -> Vec<Difference> {
    let compared = exchange
        .expect
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "date" | "content-length"));
    let expected: BTreeMap<_, _> = compared.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answered: BTreeMap<_, _> = response.headers.iter().copied().collect();
    if expected == answered {
        return Vec::new();
    }
    vec![Difference::new("(headers)", format!("{expected:?}"), format!("{answered:?}"))]
}

fn state_line(cluster: &Cluster, name: &str, node: NodeIndex) -> String {
    let node = cluster.mesh().node(node);
    let history = node.layout().history();
    let live: Vec<_> = history.live().iter().map(|version| version.number).collect();
    let up: Vec<_> = node.peers().iter().filter(|(_, peer)| peer.is_up()).map(|(id, _)| id.short()).collect();
    format!(
        "{name}: {:?}, live versions {live:?}, {} staged, up: {}",
        node.process(),
        history.staging.roles.len(),
        up.join(" ")
    )
}
