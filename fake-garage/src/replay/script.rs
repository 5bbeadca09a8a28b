//! Recorded sessions, format `garage-conformance/1`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub use super::operation::{Operation, ScriptConfig, ScriptCut, ScriptLoss};
use crate::layout::NodeId;

/// No session lasts longer: a moment beyond it is a mistake, and would take as long to get to.
pub(super) const LONGEST_MS: u64 = 24 * 60 * 60 * 1000;

/// Name of the format.
pub const FORMAT: &str = "garage-conformance/1";

/// A file that is no script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Not JSON, or not of the shape of a script.
    #[error("not a script of format {FORMAT}")]
    Json(#[from] serde_json::Error),
    /// Another format.
    #[error("format `{0}` is not {FORMAT}")]
    Format(String),
    /// A step that makes no sense.
    #[error("step {step}: {problem}")]
    Step {
        /// Number of the step, from 0.
        step: usize,
        /// What is wrong.
        problem: String,
    },
}

/// A recorded session.
#[derive(Debug)]
pub struct Script {
    /// Its name.
    pub name: String,
    /// The nodes that may take part.
    pub nodes: BTreeMap<String, ScriptNode>,
    /// What was done and what was answered, in order.
    pub steps: Vec<Step>,
}

/// A node of a session.
#[derive(Debug, Clone, Deserialize)]
pub struct ScriptNode {
    /// Its identity.
    #[serde(deserialize_with = "node_id")]
    pub id: NodeId,
    /// Its site.
    pub site: String,
    /// Where its RPC is.
    pub rpc: SocketAddr,
}

fn node_id<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<NodeId, D::Error> {
    let text = String::deserialize(deserializer)?;
    NodeId::parse(&text).map_err(serde::de::Error::custom)
}

/// A step of a session.
#[derive(Debug)]
pub struct Step {
    /// When, in milliseconds since the session began.
    pub at_ms: u64,
    /// What.
    pub action: Action,
}

/// What a step does.
#[derive(Debug)]
pub enum Action {
    /// A request and what is expected of its answer.
    Exchange(Box<Exchange>),
    /// Something that is done to nodes, or expected of them.
    Operation(Operation),
}

/// A request and what is expected of its answer.
#[derive(Debug)]
pub struct Exchange {
    /// The node that is called.
    pub node: String,
    /// The request.
    pub request: ScriptRequest,
    /// What is expected.
    pub expect: Expectation,
    /// How much of it is compared.
    pub scope: Scope,
    /// Paths that are not compared.
    pub volatile: Vec<String>,
}

/// How much of an answer is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    All,
    /// The status.
    Status,
    /// Nothing.
    Nothing,
}

/// A request of a session.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptRequest {
    /// HTTP method.
    pub method: String,
    /// Path.
    pub path: String,
    /// Query string.
    #[serde(default)]
    pub query: Option<String>,
    /// Headers, names in lower case; null for one that is left out.
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    /// JSON body.
    #[serde(default)]
    pub body: Option<Box<RawValue>>,
    /// Body that is no JSON, or was sent as it stands.
    #[serde(default)]
    pub body_text: Option<String>,
}

/// What is expected of an answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expectation {
    /// HTTP status; null where no answer came.
    pub status: Option<u16>,
    /// Headers, names in lower case.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// JSON body.
    #[serde(default)]
    pub body: Option<Value>,
    /// Body that is no JSON.
    #[serde(default)]
    pub body_text: Option<String>,
}

#[derive(Deserialize)]
struct RawScript {
    format: String,
    name: String,
    nodes: BTreeMap<String, ScriptNode>,
    steps: Vec<RawStep>,
}

#[derive(Deserialize)]
struct RawStep {
    at_ms: u64,
    #[serde(rename = "do", default)]
    operation: Option<Operation>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    request: Option<ScriptRequest>,
    #[serde(default)]
    expect: Option<Expectation>,
    #[serde(default)]
    setup: bool,
    #[serde(default)]
    poll: bool,
    #[serde(rename = "final", default)]
    last: bool,
    #[serde(default)]
    volatile: Vec<String>,
}

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let raw: RawScript = serde_json::from_str(text)?;
        if raw.format != FORMAT {
            return Err(ScriptError::Format(raw.format));
        }
        let mut before = 0;
        let mut steps = Vec::with_capacity(raw.steps.len());
        for (number, step) in raw.steps.into_iter().enumerate() {
            let problem = |problem: String| ScriptError::Step { step: number, problem };
            if step.at_ms < before {
                return Err(problem(format!("at_ms goes back from {before} to {}", step.at_ms)));
            }
            if step.at_ms > LONGEST_MS {
                return Err(problem(format!("at_ms {} is more than a day", step.at_ms)));
            }
            before = step.at_ms;
            steps.push(step.read(&raw.nodes).map_err(problem)?);
        }
        Ok(Self { name: raw.name, nodes: raw.nodes, steps })
    }
}

impl RawStep {
    fn read(self, nodes: &BTreeMap<String, ScriptNode>) -> Result<Step, String> {
        let scope = if self.volatile.iter().any(|path| path == "*") || (self.poll && !self.last) {
            Scope::Nothing
        } else if self.setup {
            Scope::Status
        } else {
            Scope::All
        };
        let action = match (self.operation, self.node, self.request, self.expect) {
            (Some(operation), None, None, None) => Action::Operation(operation),
            (None, Some(node), Some(request), Some(expect)) => {
                Action::Exchange(Box::new(Exchange { node, request, expect, scope, volatile: self.volatile }))
            }
            _ => return Err("needs either `do`, or `node`, `request` and `expect`".to_owned()),
        };
        if let Action::Operation(operation) = &action {
            operation.check()?;
        }
        match action.names().into_iter().find(|name| !nodes.contains_key(*name)) {
            Some(name) => Err(format!("there is no node `{name}`")),
            None => Ok(Step { at_ms: self.at_ms, action }),
        }
    }
}

impl Action {
    fn names(&self) -> Vec<&str> {
        fn all(nodes: &[String]) -> Vec<&str> {
            nodes.iter().map(String::as_str).collect()
        }
        match self {
            Self::Exchange(exchange) => vec![exchange.node.as_str()],
            Self::Operation(operation) => match operation {
                Operation::Start { nodes, .. }
                | Operation::Kill { nodes }
                | Operation::Restart { nodes, .. }
                | Operation::Pause { nodes }
                | Operation::Resume { nodes } => all(nodes),
                Operation::Partition { between, .. } => {
                    between.iter().flatten().map(String::as_str).collect()
                }
                Operation::ExpectExit { node, .. } | Operation::ExpectRunning { node } => vec![node],
                Operation::StopAll | Operation::Heal | Operation::Note {} => Vec::new(),
            },
        }
    }
}

impl ScriptRequest {
    /// The body as it was sent: JSON with a space after each comma and colon, as the recorder wrote it.
    #[must_use]
    pub fn wire_body(&self) -> String {
        match (&self.body_text, &self.body) {
            (Some(text), _) => text.clone(),
            (None, Some(raw)) if raw.get() != "null" => spaced(raw.get()),
            _ => String::new(),
        }
    }
}

/// JSON text with exactly one space after each comma and colon, and no other white space.
fn spaced(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + json.len() / 8);
    let (mut in_string, mut escaped) = (false, false);
    for character in json.chars() {
        if !in_string && character.is_ascii_whitespace() {
            continue;
        }
        text.push(character);
        match character {
            '"' if !escaped => in_string = !in_string,
            ',' | ':' if !in_string => text.push(' '),
            _ => {}
        }
        escaped = in_string && character == '\\' && !escaped;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_sent_as_the_recorder_wrote_them() {
        assert_eq!(spaced(r#"{"a":[1,{"b":"x,\":y"}]}"#), r#"{"a": [1, {"b": "x,\":y"}]}"#);
    }

    fn refused(steps: &str) -> String {
        let text = format!(r#"{{"format":"{FORMAT}","name":"n","nodes":{{}},"steps":[{steps}]}}"#);
        let error = Script::parse(&text).unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        format!("{error} {source}")
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_step() {
        assert!(refused(r#"{"at_ms":0,"do":{"op":"explode"}}"#).contains("unknown variant `explode`"));
        assert!(
            refused(r#"{"at_ms":0,"do":{"op":"kill","nodes":["n9"]}}"#)
                .contains("step 0: there is no node `n9`")
        );
        assert!(
            refused(r#"{"at_ms":5,"do":{"op":"heal"}},{"at_ms":4,"do":{"op":"heal"}}"#)
                .contains("step 1: at_ms goes back")
        );
        assert!(refused(r#"{"at_ms":0}"#).contains("step 0: needs either"));
        let config = r#""config":{"replication_factor":0}"#;
        assert!(
            refused(&format!(r#"{{"at_ms":0,"do":{{"op":"start","nodes":[],{config}}}}}"#))
                .contains("step 0: replication_factor 0 is not from 1 to 256")
        );
        assert!(
            refused(r#"{"at_ms":0,"do":{"op":"expect-exit","node":"n","code":1,"within_ms":86400001}}"#)
                .contains("step 0: within_ms 86400001 is more than a day")
        );
        assert!(
            refused(r#"{"at_ms":86400001,"do":{"op":"heal"}}"#)
                .contains("step 0: at_ms 86400001 is more than")
        );
    }
}
