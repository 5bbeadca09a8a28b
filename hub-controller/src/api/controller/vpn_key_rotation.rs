//! `VpnKeyRotation`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::open::Open;

/// When the keys of a slice were made and when they are made anew. Has the name of its slice.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "controller.kubeslice.io",
    version = "v1alpha1",
    kind = "VpnKeyRotation",
    plural = "vpnkeyrotations",
    namespaced,
    status = "VpnKeyRotationStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct VpnKeyRotationSpec {
    /// The slice.
    pub slice_name: String,
    /// Gateways of each cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cluster_gateway_mapping: BTreeMap<String, Vec<String>>,
    /// When the keys were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_creation_time: Option<Time>,
    /// When they are made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_expiry_time: Option<Time>,
    /// Days between two rotations.
    #[serde(default)]
    pub rotation_interval: u8,
    /// Clusters of the slice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// How often keys were made, the first time included.
    #[serde(default)]
    pub rotation_count: u32,
}

/// What workers report of a rotation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpnKeyRotationStatus {
    /// State of the rotation at each gateway.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub current_rotation_state: BTreeMap<String, RotationState>,
    /// Earlier states; kept as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_history: Option<Open>,
}

/// State of a rotation at a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotationState {
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated_timestamp: Option<String>,
}
