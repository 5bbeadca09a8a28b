//! `Project`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tenant: its namespace, its roles, its users.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "controller.kubeslice.io",
    version = "v1alpha1",
    kind = "Project",
    plural = "projects",
    namespaced,
    status = "ProjectStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct ProjectSpec {
    /// Users of the project.
    #[serde(default)]
    pub service_account: ProjectAccounts,
    /// Whether every cluster joins a default slice. Kept, and not acted on by this hub.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_slice_creation: bool,
}

/// Users of a project, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectAccounts {
    /// Users who read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
    /// Users who read and write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_write: Vec<String>,
}

/// Nothing is reported of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectStatus {}
