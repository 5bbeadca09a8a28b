//! `ServiceExportConfig`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::open::Open;

/// A service that one cluster offers to a slice; made by workers.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "controller.kubeslice.io",
    version = "v1alpha1",
    kind = "ServiceExportConfig",
    plural = "serviceexportconfigs",
    namespaced,
    status = "ServiceExportConfigStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct ServiceExportConfigSpec {
    /// The service.
    pub service_name: String,
    /// Its namespace in the worker cluster.
    pub service_namespace: String,
    /// The cluster that offers it.
    pub source_cluster: String,
    /// The slice.
    pub slice_name: String,
    /// Where it is reached; kept as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_discovery_endpoints: Vec<Open>,
    /// Its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_discovery_ports: Vec<ServicePort>,
    /// Other names of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// A port of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its number.
    pub port: i32,
    /// Its protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// Nothing is reported of an export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceExportConfigStatus {}
