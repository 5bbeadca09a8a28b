//! What a hub says about itself in the status of each `Cluster` (design record, decision 7).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The hub that holds the leadership, as it declares itself on its own API server.
///
/// A mirror never copies it: the copy would make the Standby declare the Active.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveController {
    /// URL of the hub's API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// PEM bundle that the endpoint's certificate is verified with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
    /// Identity of the hub, the holder of its Lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// When the hub last acquired its Lease; of two hubs that declare themselves, the later one counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquire_time: Option<MicroTime>,
    /// When the declaration was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<MicroTime>,
}

impl ActiveController {
    /// Whether both say the same, whenever they were written.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let said = |it: &Self| Self { last_updated: None, ..it.clone() };
        said(self) == said(other)
    }
}
