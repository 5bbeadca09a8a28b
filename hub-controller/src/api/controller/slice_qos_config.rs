//! `SliceQoSConfig`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A named profile of the quality of service.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "controller.kubeslice.io",
    version = "v1alpha1",
    kind = "SliceQoSConfig",
    plural = "sliceqosconfigs",
    namespaced,
    status = "SliceQoSConfigStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct QosProfile {
    /// Kind of queue: `HTB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_type: Option<String>,
    /// Priority, 0 to 3.
    #[serde(default)]
    pub priority: i32,
    /// Kind of traffic control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tc_type: Option<String>,
    /// Most bandwidth, kbit/s.
    #[serde(default)]
    pub bandwidth_ceiling_kbps: i32,
    /// Least bandwidth, kbit/s.
    #[serde(default)]
    pub bandwidth_guaranteed_kbps: i32,
    /// Class of its packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp_class: Option<String>,
}

/// Nothing is reported of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SliceQoSConfigStatus {}
