//! `WorkerSliceConfig`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::controller::{DeploymentMode, QosProfile};
use crate::api::open::Open;

/// A slice as one of its clusters sees it. Its name is `<slice>-<cluster>`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "worker.kubeslice.io",
    version = "v1alpha1",
    kind = "WorkerSliceConfig",
    plural = "workersliceconfigs",
    namespaced,
    status = "WorkerSliceConfigStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSliceConfigSpec {
    /// The slice.
    pub slice_name: String,
    /// How its network spans the clusters.
    #[serde(default)]
    pub overlay_network_deployment_mode: DeploymentMode,
    /// Its network.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub slice_subnet: String,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_type: Option<String>,
    /// Place of this cluster in the network; the same for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octet: Option<u8>,
    /// This cluster's part of the network.
    #[serde(default, rename = "clusterSubnetCIDR", skip_serializing_if = "Option::is_none")]
    pub cluster_subnet_cidr: Option<String>,
    /// Quality of service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos_profile_details: Option<QosProfile>,
    /// Which namespaces of this cluster may use it; kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_isolation_profile: Option<Open>,
}

/// What the worker reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSliceConfigStatus {
    /// Pods in the slice; kept as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connected_app_pods: Vec<Open>,
    /// Namespaces in the slice; kept as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub onboarded_app_namespaces: Vec<Open>,
    /// Health of the slice in this cluster; kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_health: Option<Open>,
}
