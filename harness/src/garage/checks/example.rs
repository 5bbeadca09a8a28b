//! Small histories for the tests of the checks.

use onewriter_history::{
    CallBegin, CallEnd, Event, Fault, Header, History, Log, Moment, Source, State, Step,
};
use serde_json::{Value, json};

use super::roles::{EXPECTATION, ROLES};
use crate::checks::{Check, Finding, Judgement, judge};
use crate::garage::facts;
use crate::garage::role::Role;
use crate::history::{Stream, merge};

const MESH: &str = "m1";

/// A history that is written event by event.
#[derive(Default)]
pub(crate) struct Example {
    events: Vec<Event>,
    calls: u64,
}

impl Example {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn roles(self, east: Role, west: Role) -> Self {
        self.state(ROLES, json!({"east": east, "west": west}))
    }

    pub(crate) fn expect(self, writes: &[&str], reads: &[&str]) -> Self {
        self.state(EXPECTATION, json!({"writes": writes, "reads": reads}))
    }

    pub(crate) fn layout(self, value: &Value) -> Self {
        self.state("layout", value.clone())
    }

    /// A node of `site` starts, stops, …; its pod is garage-0-0.
    pub(crate) fn node(self, site: &str, id: &str, event: &str) -> Self {
        self.pod(site, id, "garage-0-0", event)
    }

    pub(crate) fn pod(self, site: &str, id: &str, pod: &str, event: &str) -> Self {
        self.state("node", json!({"node": format!("{site}/ns/{pod}"), "nodeId": id, "event": event}))
    }

    pub(crate) fn fact(self, subject: &str, value: &Value) -> Self {
        self.state(subject, value.clone())
    }

    /// The history records every fact.
    pub(crate) fn records(self) -> Self {
        self.state(facts::RECORDS, json!(facts::ALL))
    }

    /// A call during which a layout event happens.
    pub(crate) fn call_with(self, call: ExampleCall, event: &Value) -> Self {
        let mut during = self.call(call);
        let end = during.events.pop();
        let mut after = during.layout(event);
        after.events.extend(end);
        after
    }

    /// The end of a call that never began.
    pub(crate) fn end_of(mut self, call: u64) -> Self {
        let end = anonymous().end;
        self.events.push(Event::CallEnd(CallEnd { call, ..end }));
        self
    }

    /// A process of the operator of `site` begins.
    pub(crate) fn up(self, site: &str) -> Self {
        self.log(site, &json!({"message": "garage-operator is up", "version": "0.1.0"}))
    }

    /// The operator of `site` logs that it refused to stage.
    pub(crate) fn refused(self, site: &str) -> Self {
        let cluster = format!("{MESH}/garage");
        let operation = "UpdateClusterLayout";
        self.log(
            site,
            &json!({"message": "layout write blocked", "cluster": cluster, "operation": operation}),
        )
    }

    /// The harness breaks something in the mesh.
    pub(crate) fn fault(mut self, action: &str) -> Self {
        let (mesh, action, target) = (Some(MESH.to_owned()), action.to_owned(), "west".to_owned());
        self.events.push(Event::Fault(Fault { cell: None, mesh, action, target, detail: None }));
        self
    }

    fn log(mut self, site: &str, line: &Value) -> Self {
        let (site, program) = (Some(site.to_owned()), "operator".to_owned());
        self.events.push(Event::Log(Log { site, program, line: line.to_string() }));
        self
    }

    pub(crate) fn step(mut self, title: &str) -> Self {
        let (cell, mesh) = (Some("cell".to_owned()), Some(MESH.to_owned()));
        self.events.push(Event::Step(Step { cell, mesh, title: title.to_owned(), detail: None }));
        self
    }

    pub(crate) fn call(mut self, call: ExampleCall) -> Self {
        self.calls += 1;
        let ExampleCall { mut begin, mut end, finished } = call;
        begin.call = self.calls;
        end.call = self.calls;
        self.events.push(Event::CallBegin(begin));
        if finished {
            self.events.push(Event::CallEnd(end));
        }
        self
    }

    pub(crate) fn history(&self) -> History {
        let timed = (1..)
            .zip(&self.events)
            .map(|(ns, event)| (Moment { mono_ns: ns, ..Moment::now() }, event.clone()));
        merge(Header::new("example"), vec![Stream::of_events(Source::hub(), timed)])
    }

    pub(crate) fn len(&self) -> u64 {
        self.events.len() as u64
    }

    pub(crate) fn into_events(self) -> Vec<Event> {
        self.events
    }

    fn state(mut self, subject: &str, value: Value) -> Self {
        let (cell, mesh) = (Some("cell".to_owned()), Some(MESH.to_owned()));
        self.events.push(Event::State(State { cell, mesh, subject: subject.to_owned(), value }));
        self
    }
}

/// What `check` finds in `example`.
pub(crate) fn judged(check: &(impl Check + Copy + 'static), example: &Example) -> Vec<Finding> {
    judgement(check, example).findings
}

/// All that `check` says of `example`.
pub(crate) fn judgement(check: &(impl Check + Copy + 'static), example: &Example) -> Judgement {
    let checks: Vec<Box<dyn Check>> = vec![Box::new(*check)];
    judge(&checks, &example.history()).remove(0)
}

/// Something that happens to the layout of a node.
pub(crate) fn layout(node: &str, event: &str, from: u64, to: u64) -> Value {
    json!({"node": format!("east/ns/{node}"), "nodeId": node, "incarnation": 0, "event": event, "from": from, "to": to})
}

/// A role as it is staged.
pub(crate) fn role(node: &str, zone: &str, capacity: u64) -> Value {
    json!({"id": node, "zone": zone, "capacity": capacity, "tags": []})
}

/// A removal as it is staged.
pub(crate) fn removal(node: &str) -> Value {
    json!({"id": node, "remove": true})
}

/// One call of an example: by default a finished `GET /`, answered 200.
pub(crate) struct ExampleCall {
    begin: CallBegin,
    end: CallEnd,
    finished: bool,
}

pub(crate) fn call(caller: &str) -> ExampleCall {
    let mut call = anonymous();
    call.begin.caller = Some(caller.to_owned());
    call.begin.token = Some(format!("{caller}@{caller}"));
    call
}

pub(crate) fn anonymous() -> ExampleCall {
    let begin = CallBegin {
        call: 0,
        mesh: MESH.to_owned(),
        caller: None,
        target: "east".to_owned(),
        node: "east/ns/garage-0".to_owned(),
        node_id: "aa".repeat(32),
        incarnation: 0,
        token: None,
        method: "GET".to_owned(),
        path: "/".to_owned(),
        query: None,
        host: None,
        body: None,
        layout_write: false,
        layout_version: 0,
        layout_digest: String::new(),
    };
    let end = CallEnd {
        call: 0,
        status: Some(200),
        answer_digest: None,
        error: None,
        incarnation: 0,
        layout_version: 0,
        layout_digest: String::new(),
    };
    ExampleCall { begin, end, finished: true }
}

impl ExampleCall {
    pub(crate) fn get(mut self, path: &str) -> Self {
        path.clone_into(&mut self.begin.path);
        self
    }

    pub(crate) fn post(mut self, path: &str) -> Self {
        "POST".clone_into(&mut self.begin.method);
        self.get(path)
    }

    pub(crate) fn write(mut self, path: &str) -> Self {
        self.begin.layout_write = true;
        self.post(path)
    }

    pub(crate) fn update(mut self, changes: &[Value]) -> Self {
        self.begin.body = Some(json!({"roles": changes}));
        self.write("/v2/UpdateClusterLayout")
    }

    pub(crate) fn node(mut self, id: &str) -> Self {
        self.begin.node = format!("east/ns/{id}");
        id.clone_into(&mut self.begin.node_id);
        self
    }

    pub(crate) fn versions(mut self, before: u64, after: u64) -> Self {
        self.begin.layout_version = before;
        self.end.layout_version = after;
        self
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.end.status = Some(status);
        self
    }

    pub(crate) fn refused(mut self, status: u16, error: &str) -> Self {
        self.end.error = Some(error.to_owned());
        self.status(status)
    }

    pub(crate) fn version(mut self, version: u64) -> Self {
        self.begin.layout_version = version;
        self.end.layout_version = version;
        self
    }

    pub(crate) fn incarnation(mut self, incarnation: u64) -> Self {
        self.begin.incarnation = incarnation;
        self.end.incarnation = incarnation;
        self
    }

    pub(crate) fn unfinished(mut self) -> Self {
        self.finished = false;
        self
    }
}
