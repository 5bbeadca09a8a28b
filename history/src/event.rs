//! The kinds of events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::LayoutState;

/// What happened. `kind` in the file tells which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Event {
    /// A request reached a node's admin API.
    #[serde(rename = "call.begin")]
    CallBegin(CallBegin),
    /// A node answered, or the caller went away before it could.
    #[serde(rename = "call.end")]
    CallEnd(CallEnd),
    /// The harness did something on purpose.
    #[serde(rename = "step")]
    Step(Step),
    /// The harness broke or mended something on purpose.
    #[serde(rename = "fault")]
    Fault(Fault),
    /// An API server handled a request.
    #[serde(rename = "audit")]
    Audit(Audit),
    /// Something was declared or observed to be in a state.
    #[serde(rename = "state")]
    State(State),
    /// A program wrote a log line.
    #[serde(rename = "log")]
    Log(Log),
}

/// Subject of the state event with which a history ends.
pub const END: &str = "end";

impl Event {
    /// The event with which a history of so many `events` ends. Numbers show what is missing in the middle, only this
    /// shows what is missing at the end.
    #[must_use]
    pub fn end(events: u64) -> Self {
        let value = serde_json::json!({ "events": events });
        Self::State(State { cell: None, mesh: None, subject: END.to_owned(), value })
    }
}

/// A request as it reached a node, before it was handled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallBegin {
    /// Number of the call, unique in the run; [`CallEnd::call`] repeats it.
    pub call: u64,
    /// The mesh that the node belongs to.
    pub mesh: String,
    /// Who called: a site's name, `harness`, or null where the token is unknown or absent.
    pub caller: Option<String>,
    /// Site of the node that was called.
    pub target: String,
    /// Name of the node that was called: `site/namespace/pod`.
    pub node: String,
    /// Garage's identity of that node, 64 lower-case hex digits.
    pub node_id: String,
    /// How often the node's layout began anew (0 at first; a wipe or purge adds one).
    pub incarnation: u64,
    /// Label of the token that was presented, never the token.
    pub token: Option<String>,
    /// HTTP method, upper case.
    pub method: String,
    /// Path without the query, as received.
    pub path: String,
    /// Query string without the question mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The `Host` header: it tells the route (Service name, pod address, remote endpoint).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The JSON body, for calls whose body can hold no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Whether the call is one of the four layout writes (or an older alias), whatever the answer will be.
    pub layout_write: bool,
    /// Layout version of the called node before the call.
    pub layout_version: u64,
    /// Digest of the called node's layout, staging included, before the call.
    pub layout_digest: String,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallEnd {
    /// The call that ended.
    pub call: u64,
    /// HTTP status; null when no answer was sent.
    pub status: Option<u16>,
    /// SHA-256 of the answer's body, hex; null when no answer was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_digest: Option<String>,
    /// The error text of an answer that is not a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The node's incarnation after the call.
    pub incarnation: u64,
    /// Layout version of the called node after the call.
    pub layout_version: u64,
    /// Digest of the called node's layout after the call.
    pub layout_digest: String,
}

/// Something that the harness did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The cell (scenario with its roles) that the step belongs to; null for the run's own steps.
    pub cell: Option<String>,
    /// The mesh that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
    /// What was done, as a short sentence without a subject: `create GarageCluster on east`.
    pub title: String,
    /// Figures and names that belong to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// Something that the harness broke or mended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// The cell that asked for it.
    pub cell: Option<String>,
    /// The mesh that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
    /// What was done: `kill`, `freeze`, `partition`, `wipe`, `purge`, `heal`, …
    pub action: String,
    /// Node or site that it was done to.
    pub target: String,
    /// Figures and names that belong to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// A request that an API server handled, from its audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// Site of the API server.
    pub site: String,
    /// The server's own identifier of the request.
    pub audit_id: String,
    /// Stage of the entry: `ResponseComplete`, `ResponseStarted`, `Panic`.
    pub stage: String,
    /// Authenticated user.
    pub user: String,
    /// What the client says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// Kubernetes verb.
    pub verb: String,
    /// Requested path with its query.
    pub uri: String,
    /// `group/resource[/subresource]`; core resources have no group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// HTTP status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// Something that was declared or observed to be so from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The cell that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The mesh that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
    /// What is in the state: `roles`, `layout`, `node`, `condition`, …
    pub subject: String,
    /// The state. With the subject `layout` it is a `LayoutState`.
    #[schemars(with = "StateValue")]
    pub value: Value,
}

/// The values of states, for the schema.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "exists for its schema only")]
enum StateValue {
    /// With the subject `layout`.
    Layout(LayoutState),
    /// With any other subject.
    Other(Value),
}

/// A log line of a program under observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    /// Site at which the program runs; null for programs of no site.
    pub site: Option<String>,
    /// Name of the program.
    pub program: String,
    /// The line, without its line end.
    pub line: String,
}
