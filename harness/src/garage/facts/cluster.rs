//! A GarageCluster after a write.

use onewriter_history::Audit;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Written;
use crate::garage::role::Role;

/// Prefix of the annotations that ask the operator for something (operator contract §5.8).
const PREFIX: &str = "garage.rajsingh.info/";
/// The annotations that ask for a layout write.
const OPERATIONS: [&str; 3] = ["revert-layout", "skip-dead-nodes", "purge-cluster-layout"];

/// A GarageCluster after a write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterFact {
    /// The write. Read apart from the rest: reading flattened fields would copy all of them first.
    #[serde(flatten, skip_deserializing)]
    pub written: Written,
    /// `spec.layoutManagement.siteRole`.
    pub declared: Option<Role>,
    /// `status.layoutWriter.role`: what the operator enforces.
    pub enforced: Option<Role>,
    /// The spec that the status speaks of.
    pub observed_generation: u64,
    /// The operations that annotations ask for, without their prefix.
    pub operations: Vec<String>,
    /// `spec.deletionPolicy`.
    pub deletion_policy: Option<String>,
    /// `spec.storage.replicas`.
    pub replicas: Option<u64>,
    /// Whether the cluster has no layout of its own: it has `spec.connectTo`.
    pub connected: bool,
}

impl ClusterFact {
    pub(super) fn of(audit: &Audit, object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let operations = OPERATIONS
            .into_iter()
            .filter(|name| object["metadata"]["annotations"].get(format!("{PREFIX}{name}")).is_some());
        Self {
            written: Written::of(audit, object),
            declared: role(&spec["layoutManagement"]["siteRole"]),
            enforced: role(&status["layoutWriter"]["role"]),
            observed_generation: status["observedGeneration"].as_u64().unwrap_or_default(),
            operations: operations.map(str::to_owned).collect(),
            deletion_policy: spec["deletionPolicy"].as_str().map(str::to_owned),
            replicas: spec["storage"]["replicas"].as_u64(),
            connected: spec["connectTo"].is_object(),
        }
    }

    /// The role that the spec gives to its site.
    #[must_use]
    pub fn role(&self) -> Role {
        self.declared.unwrap_or(Role::Absent)
    }

    /// Whether the status says Follower and speaks of spec `generation` or a later one.
    #[must_use]
    pub fn follows_since(&self, generation: u64) -> bool {
        self.enforced == Some(Role::Follower) && self.observed_generation >= generation
    }

    /// Whether it is going without taking its nodes out of the layout first.
    #[must_use]
    pub fn is_destroyed(&self) -> bool {
        self.written.deleting && self.deletion_policy.as_deref() != Some("Drain")
    }
}

fn role(value: &Value) -> Option<Role> {
    match value.as_str()? {
        "Writer" => Some(Role::Writer),
        "Follower" => Some(Role::Follower),
        _ => None,
    }
}
