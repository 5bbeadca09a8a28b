//! What an API server's audit log tells of the operator's objects, as state events.
//!
//! The audit log has every write with the object that came out of it. A history keeps of that only what checks need:
//!
//! | subject | value | what it says |
//! |---|---|---|
//! | [`CLUSTER`] | [`ClusterFact`] | a GarageCluster after a write: declared and enforced role, annotations, deletion |
//! | [`NODE`] | [`NodeFact`] | a GarageNode after a write: identity, declared role in the layout, deletion |
//! | [`OBJECT`] | [`ObjectFact`] | any other object of a cell's namespace after a write |
//! | [`LAYOUT_SEEN`] | [`LayoutSeen`] | the layout that the harness itself read from a node |
//! | [`QUIET`] | [`Quiet`] | from here on nothing changes that an operator would have to act on; or it may again |
//! | [`RECORDS`] | list of subjects | which of these the run records: what is missing then was lost |
//!
//! Histories without [`RECORDS`] are older than these facts; checks that need them do not apply there.

pub mod cluster;
pub mod node;
pub mod object;
pub mod quantity;

pub use cluster::ClusterFact;
pub use node::NodeFact;
pub use object::ObjectFact;

use onewriter_history::{Audit, Event, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::checks::Seen;

/// Subject of the state of a GarageCluster.
pub const CLUSTER: &str = "garage-cluster";
/// Subject of the state of a GarageNode.
pub const NODE: &str = "garage-node";
/// Subject of the state of any other object.
pub const OBJECT: &str = "object";
/// Subject of a layout that the harness read.
pub const LAYOUT_SEEN: &str = "layout-seen";
/// Subject of the beginning and end of a quiet time.
pub const QUIET: &str = "quiet";
pub use crate::run::execute::RECORDS;

/// Every subject that runs of this version record.
pub const ALL: [&str; 5] = [CLUSTER, NODE, OBJECT, LAYOUT_SEEN, QUIET];

/// Beginning or end of a time in which nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// Whether the quiet time begins.
    pub on: bool,
}

/// The layout of a node as the harness read it from that node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayoutSeen {
    /// Where it was read: the node's address.
    pub node: String,
    /// Its current version.
    pub version: u64,
    /// Its roles.
    pub roles: Vec<SeenRole>,
}

/// A role in a layout that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRole {
    /// Garage's identity of the node.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// Bytes; none for a gateway.
    pub capacity: Option<u64>,
}

/// A fact about an object, as checks read it.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// Of a GarageCluster.
    Cluster(ClusterFact),
    /// Of a GarageNode.
    Node(NodeFact),
    /// Of any other object.
    Object(ObjectFact),
}

impl Fact {
    /// The fact in `state`; none if it is about something else or cannot be read.
    fn of(state: &State) -> Option<Self> {
        match state.subject.as_str() {
            CLUSTER => ClusterFact::deserialize(&state.value).ok().map(Self::Cluster),
            NODE => NodeFact::deserialize(&state.value).ok().map(Self::Node),
            OBJECT => ObjectFact::deserialize(&state.value).ok().map(Self::Object),
            _ => None,
        }
    }

    /// The fact that an event is, with its mesh. It is read once for all checks.
    #[must_use]
    pub fn seen<'a>(seen: &Seen<'a>) -> Option<(&'a str, &'a Self)> {
        let Event::State(state) = &seen.record.event else { return None };
        if !matches!(state.subject.as_str(), CLUSTER | NODE | OBJECT) {
            return None;
        }
        let fact = seen.read(|record| match &record.event {
            Event::State(state) => Self::of(state),
            _ => None,
        });
        Some((state.mesh.as_deref()?, fact?.as_ref()?))
    }

    /// The write that it is about.
    #[must_use]
    pub fn written(&self) -> &Written {
        match self {
            Self::Cluster(fact) => &fact.written,
            Self::Node(fact) => &fact.written,
            Self::Object(fact) => &fact.written,
        }
    }

    /// What kind of object it is about.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Cluster(_) => CLUSTER,
            Self::Node(_) => NODE,
            Self::Object(fact) => &fact.resource,
        }
    }
}

/// Whether `user` is the operator under test.
#[must_use]
pub fn is_operator(user: &str) -> bool {
    user.starts_with("system:serviceaccount:") && user.ends_with(":garage-operator")
}

/// The facts of one audit entry whose request was granted; `object` is what the server answered.
#[must_use]
pub fn of_audit(audit: &Audit, object: &Value) -> Vec<State> {
    let (Some(resource), Some(namespace)) = (&audit.resource, &audit.namespace) else { return Vec::new() };
    if audit.stage != "ResponseComplete" || !audit.status.is_some_and(|status| (200..300).contains(&status)) {
        return Vec::new();
    }
    let state = |subject: &str, value: Value| State {
        cell: None,
        mesh: Some(namespace.clone()),
        subject: subject.to_owned(),
        value,
    };
    let kind = resource.strip_suffix("/status").unwrap_or(resource);
    match kind {
        "garage.rajsingh.info/garageclusters" => {
            vec![state(CLUSTER, json!(ClusterFact::of(audit, object)))]
        }
        "garage.rajsingh.info/garagenodes" => vec![state(NODE, json!(NodeFact::of(audit, object)))],
        "events" | "events.k8s.io/events" => Vec::new(),
        _ => ObjectFact::of(audit, kind, object).map(|fact| state(OBJECT, json!(fact))).into_iter().collect(),
    }
}

/// Where the object of a fact stands among its writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Written {
    /// Site of the API server.
    pub site: String,
    /// Name of the object.
    pub name: String,
    /// Who wrote.
    pub by: String,
    /// Version of the object after the write; unchanged by a write that changed nothing.
    pub resource_version: String,
    /// Version of its spec.
    pub generation: u64,
    /// Whether it was asked to go.
    pub deleting: bool,
    /// What keeps it from going.
    pub finalizers: Vec<String>,
    /// Whether it is gone with this write.
    pub gone: bool,
}

impl Written {
    fn of(audit: &Audit, object: &Value) -> Self {
        let metadata = &object["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
        let deleting = metadata["deletionTimestamp"].is_string();
        let finalizers: Vec<String> = Vec::deserialize(&metadata["finalizers"]).unwrap_or_default();
        // A deletion that is carried out at once is answered with a Status, or with the last state of the object.
        let deleted = audit.verb == "delete" && (object["kind"] == "Status" || !deleting);
        let graceful = metadata["deletionGracePeriodSeconds"].as_u64().is_some_and(|seconds| seconds > 0);
        Self {
            site: audit.site.clone(),
            name: audit.name.clone().unwrap_or_else(|| text("name")),
            by: audit.user.clone(),
            resource_version: text("resourceVersion"),
            generation: metadata["generation"].as_u64().unwrap_or_default(),
            gone: deleted || (deleting && !graceful && finalizers.is_empty()),
            deleting: deleting || deleted,
            finalizers,
        }
    }
}
