//! `WorkerSliceGateway`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::open::Open;

/// One end of the tunnel between two clusters of a slice. Its name is `<slice>-<local>-<remote>`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "worker.kubeslice.io",
    version = "v1alpha1",
    kind = "WorkerSliceGateway",
    plural = "workerslicegateways",
    namespaced,
    status = "WorkerSliceGatewayStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSliceGatewaySpec {
    /// The slice.
    pub slice_name: String,
    /// `OpenVPN` or `WireGuard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_type: Option<String>,
    /// Which end it is.
    #[serde(default)]
    pub gateway_host_type: GatewayHostType,
    /// How it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_connectivity_type: Option<String>,
    /// Its protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_protocol: Option<String>,
    /// Its keys.
    #[serde(default)]
    pub gateway_credentials: GatewayCredentials,
    /// This end.
    #[serde(default)]
    pub local_gateway_config: GatewayConfig,
    /// The other end.
    #[serde(default)]
    pub remote_gateway_config: GatewayConfig,
    /// Number of the tunnel within its slice; the same for ever.
    #[serde(default)]
    pub gateway_number: u32,
}

/// An end of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GatewayHostType {
    /// It is dialled.
    #[default]
    Server,
    /// It dials.
    Client,
}

/// Keys of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayCredentials {
    /// The Secret, which has the gateway's name.
    #[serde(default)]
    pub secret_name: String,
}

/// One end of a tunnel, as both ends know it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayConfig {
    /// Name of the gateway.
    #[serde(default)]
    pub gateway_name: String,
    /// Its cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// Addresses of its nodes, reported by the worker.
    #[serde(default, rename = "nodeIps", skip_serializing_if = "Vec::is_empty")]
    pub node_ips: Vec<String>,
    /// Ports, reported by the worker; kept as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ports: Option<Vec<i32>>,
    /// Anything else; kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Open>,
}

/// What is reported of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSliceGatewayStatus {
    /// Number of the tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_number: Option<u32>,
    /// Place of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_insertion_index: Option<u32>,
}
