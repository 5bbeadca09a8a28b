//! `SliceConfig`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::slice_qos_config::QosProfile;
use crate::api::open::Open;

/// A network across worker clusters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "controller.kubeslice.io",
    version = "v1alpha1",
    kind = "SliceConfig",
    plural = "sliceconfigs",
    namespaced,
    status = "SliceConfigStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct SliceConfigSpec {
    /// How its network spans the clusters.
    #[serde(default)]
    pub overlay_network_deployment_mode: DeploymentMode,
    /// Its network, a private /16.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub slice_subnet: String,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_type: Option<String>,
    /// How its gateways are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_gateway_provider: Option<GatewayProvider>,
    /// Who gives out addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ipam_type: Option<String>,
    /// The clusters that it spans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// Name of a `SliceQoSConfig`; excludes `qosProfileDetails`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_qos_profile_name: Option<String>,
    /// Quality of service of this slice alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos_profile_details: Option<QosProfile>,
    /// Which namespaces may use it; kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_isolation_profile: Option<Open>,
    /// Gateways to the outside; kept as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_gateway_config: Vec<Open>,
    /// Most clusters that it may span.
    #[serde(default = "max_clusters")]
    #[schemars(range(min = 2, max = 32))]
    pub max_clusters: u8,
    /// Days between two rotations of its keys.
    #[serde(default = "rotation_interval")]
    #[schemars(range(min = 30, max = 90))]
    pub rotation_interval: u8,
    /// Rotate before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_before: Option<String>,
    /// How its traffic is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpn_config: Option<VpnConfig>,
}

fn max_clusters() -> u8 {
    16
}

fn rotation_interval() -> u8 {
    30
}

/// How the network of a slice spans the clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeploymentMode {
    /// One network, with a pair of gateways between every two clusters.
    #[default]
    SingleNetwork,
    /// Several networks.
    MultiNetwork,
    /// No network: the clusters only know of the slice.
    NoNetwork,
}

/// How gateways are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayProvider {
    /// `OpenVPN` or `WireGuard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_gateway_type: Option<String>,
    /// Who signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ca_type: Option<String>,
    /// How gateways are reached; kept as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slice_gateway_service_type: Vec<Open>,
}

/// How traffic is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VpnConfig {
    /// The cipher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
}

/// What is reported of a slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SliceConfigStatus {
    /// What happened to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubeslice_events: Vec<Open>,
}
