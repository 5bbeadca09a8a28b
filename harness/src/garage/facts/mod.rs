//! What an API server's audit log tells of the operator's objects, as state events.
//!
//! The audit log has every write with the object that came out of it. A history keeps of that only what checks need:
//!
//! | subject | value | what it says |
//! |---|---|---|
//! | [`CLUSTER`] | [`ClusterFact`] | a GarageCluster after a write: declared and enforced role, annotations, deletion |
//! | [`NODE`] | [`NodeFact`] | a GarageNode after a write: identity, declared role in the layout, deletion |
//! | [`OBJECT`] | [`ObjectFact`] | any other object of a cell's namespace after a write |
//! | [`EVENT`] | [`EventFact`] | an Event object after a write: who tells what about which object |
//! | [`LAYOUT_SEEN`] | [`LayoutSeen`] | the layout that the harness itself read from a node |
//! | [`METRIC`] | [`MetricFact`] | what a site's operator counts, when the harness asked it |
//! | [`QUIET`] | [`Quiet`] | from here on nothing changes that an operator would have to act on; or it may again |
//! | [`RECORDS`] | list of subjects | which of these the run records: what is missing then was lost |
//!
//! The operators' logs are in the history as they are; [`LogFact`] is what a line of them tells.
//!
//! Histories without [`RECORDS`] are older than these facts; checks that need them do not apply there.

pub mod cluster;
pub mod event;
pub mod metric;
pub mod node;
pub mod object;
pub mod quantity;
pub mod refusal;

pub use cluster::ClusterFact;
pub use event::EventFact;
pub use metric::MetricFact;
pub use node::NodeFact;
pub use object::ObjectFact;
pub use refusal::LogFact;

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
/// Subject of an Event object.
pub const EVENT: &str = "event";
/// Subject of a layout that the harness read.
pub const LAYOUT_SEEN: &str = "layout-seen";
/// Subject of what an operator's metrics say.
pub const METRIC: &str = "metric";
/// Subject of the beginning and end of a quiet time.
pub const QUIET: &str = "quiet";
pub use crate::run::execute::RECORDS;

/// Every subject that runs of this version record.
pub const ALL: [&str; 7] = [CLUSTER, NODE, OBJECT, EVENT, LAYOUT_SEEN, METRIC, QUIET];

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
        let value = &state.value;
        let written = Written::deserialize(value).ok()?;
        Some(match state.subject.as_str() {
            CLUSTER => Self::Cluster(ClusterFact { written, ..ClusterFact::deserialize(value).ok()? }),
            NODE => Self::Node(NodeFact { written, ..NodeFact::deserialize(value).ok()? }),
            OBJECT => Self::Object(ObjectFact { written, ..ObjectFact::deserialize(value).ok()? }),
            _ => return None,
        })
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
        "events" | "events.k8s.io/events" => {
            EventFact::of(audit, object).map(|fact| state(EVENT, json!(fact))).into_iter().collect()
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::garage::role::Role;

    fn audit(resource: &str, verb: &str, status: u16) -> Audit {
        Audit {
            site: "east".to_owned(),
            audit_id: "a".to_owned(),
            stage: "ResponseComplete".to_owned(),
            user: "admin".to_owned(),
            user_agent: None,
            verb: verb.to_owned(),
            uri: String::new(),
            resource: Some(resource.to_owned()),
            namespace: Some("ns".to_owned()),
            name: Some("garage".to_owned()),
            status: Some(status),
        }
    }

    fn fact(resource: &str, verb: &str, object: &Value) -> Option<Fact> {
        of_audit(&audit(resource, verb, 200), object).first().and_then(Fact::of)
    }

    #[test]
    fn a_cluster_tells_its_roles_its_annotations_and_its_deletion() {
        let object = json!({
            "metadata": {"name": "garage", "generation": 3, "resourceVersion": "9", "deletionTimestamp": "2026",
                "finalizers": ["f"], "annotations": {"garage.rajsingh.info/revert-layout": "true"}},
            "spec": {"layoutManagement": {"siteRole": "Follower"}, "deletionPolicy": "Drain"},
            "status": {"observedGeneration": 2, "layoutWriter": {"role": "Writer"}},
        });
        let Some(Fact::Cluster(fact)) = fact("garage.rajsingh.info/garageclusters/status", "patch", &object)
        else {
            panic!("no fact")
        };
        assert_eq!((fact.role(), fact.enforced), (Role::Follower, Some(Role::Writer)));
        assert_eq!((fact.written.generation, fact.observed_generation), (3, 2));
        assert_eq!(fact.operations, ["revert-layout"]);
        assert!(fact.written.deleting && !fact.written.gone && !fact.is_destroyed());
    }

    #[test]
    fn a_node_tells_the_role_that_is_declared_for_it() {
        let object = json!({
            "metadata": {"name": "west-garage-0"},
            "spec": {"nodeId": "AB", "zone": "west", "capacity": "10Gi", "external": {"address": "127.0.0.1"}},
        });
        let Some(Fact::Node(fact)) = fact("garage.rajsingh.info/garagenodes", "create", &object) else {
            panic!("no fact")
        };
        assert_eq!((fact.node_id.as_deref(), fact.zone.as_deref()), (Some("ab"), Some("west")));
        assert_eq!((fact.capacity, fact.external, fact.gateway), (Some(10 << 30), true, false));
    }

    #[test]
    fn an_object_is_gone_once_nothing_keeps_it() {
        let object = |metadata: Value| json!({"kind": "Pod", "metadata": metadata});
        let gone = |verb, object: &Value| fact("pods", verb, object).is_some_and(|fact| fact.written().gone);
        let deleted =
            json!({"resourceVersion": "1", "deletionTimestamp": "2026", "deletionGracePeriodSeconds": 30});
        assert!(!gone("delete", &object(deleted)), "it ends gracefully");
        let killed =
            json!({"resourceVersion": "1", "deletionTimestamp": "2026", "deletionGracePeriodSeconds": 0});
        assert!(gone("delete", &object(killed)));
        assert!(gone("delete", &json!({"kind": "Status", "status": "Success"})));
        assert!(!gone("patch", &object(json!({"resourceVersion": "1"}))));
    }

    #[test]
    fn an_event_of_either_group_tells_what_it_is_about() {
        for (resource, key) in [("events", "involvedObject"), ("events.k8s.io/events", "regarding")] {
            let object = json!({key: {"kind": "GarageNode", "name": "n"}, "reason": "R"});
            let told = of_audit(&audit(resource, "create", 201), &object).remove(0);
            let fact = EventFact::deserialize(&told.value).unwrap();
            assert_eq!(
                (told.subject.as_str(), fact.regarding.as_str(), fact.reason.as_str()),
                (EVENT, "GarageNode/n", "R")
            );
        }
    }

    #[test]
    fn a_refused_write_tells_nothing() {
        let object = json!({"metadata": {"resourceVersion": "1"}});
        assert_eq!(of_audit(&audit("pods", "create", 409), &object), []);
    }
}
