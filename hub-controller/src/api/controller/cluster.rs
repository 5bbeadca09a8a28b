//! `Cluster`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::active_controller::ActiveController;
use crate::api::open::Open;

/// A worker cluster that is registered with the project.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "controller.kubeslice.io",
    version = "v1alpha1",
    kind = "Cluster",
    plural = "clusters",
    namespaced,
    status = "ClusterStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Active", type_ = "string", json_path = ".status.activeController.identity")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Address of a node; deprecated, use `nodeIPs`.
    #[serde(default, rename = "nodeIP", skip_serializing_if = "Option::is_none")]
    pub node_ip: Option<String>,
    /// Addresses of its gateway nodes.
    #[serde(default, rename = "nodeIPs", skip_serializing_if = "Vec::is_empty")]
    pub node_ips: Vec<String>,
    /// Network interface that gateways use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_interface: Option<String>,
    /// What is known about the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_property: Option<ClusterProperty>,
    /// Whether an unhealthy cluster is removed by itself. Kept, and not acted on by this hub.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_auto_eviction: bool,
    /// Whether a failed removal is tried again. Kept, and not acted on by this hub.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requeue_on_failure: bool,
}

/// What is known about a cluster; kept as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProperty {
    /// How it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Open>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geo_location: Option<Open>,
    /// How it is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<Open>,
}

/// What hub and worker report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Secret with the credential of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Pod networks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cni_subnet: Vec<String>,
    /// Namespaces of the worker and their slices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<NamespaceInSlice>,
    /// Health as the worker sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_health: Option<ClusterHealth>,
    /// Addresses of its gateway nodes, found by the worker.
    #[serde(default, rename = "nodeIPs", skip_serializing_if = "Vec::is_empty")]
    pub node_ips: Vec<String>,
    /// How far the registration is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_status: Option<String>,
    /// The worker is being asked to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_deregister_in_progress: Option<bool>,
    /// Whether gateways can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_present: Option<bool>,
    /// Limit of processors.
    #[serde(default, rename = "vCPURestriction", skip_serializing_if = "Option::is_none")]
    pub vcpu_restriction: Option<Open>,
    /// Limit of graphics processors.
    #[serde(default, rename = "GPURestriction", skip_serializing_if = "Option::is_none")]
    pub gpu_restriction: Option<Open>,
    /// The hub that leads, by its own declaration on its own API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_controller: Option<ActiveController>,
}

/// A namespace of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceInSlice {
    /// Its name.
    pub name: String,
    /// Its slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_name: Option<String>,
}

/// Health of a worker cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterHealth {
    /// `Normal` or `Warning`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_health_status: Option<String>,
    /// Health of its components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub component_statuses: Vec<ComponentStatus>,
    /// When the worker looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
}

/// Health of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// Its name.
    pub component: String,
    /// `Normal` or `Error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_health_status: Option<String>,
}
