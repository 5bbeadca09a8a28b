//! `WorkerServiceImport`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::controller::ServicePort;
use crate::api::open::Open;

/// An exported service as one cluster of the slice sees it. Its name is `<service>-<namespace>-<slice>-<cluster>`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "worker.kubeslice.io",
    version = "v1alpha1",
    kind = "WorkerServiceImport",
    plural = "workerserviceimports",
    namespaced,
    status = "WorkerServiceImportStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct WorkerServiceImportSpec {
    /// The service.
    pub service_name: String,
    /// Its namespace.
    pub service_namespace: String,
    /// The slice.
    pub slice_name: String,
    /// The clusters that offer it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_clusters: Vec<String>,
    /// Where it is reached, of all exports together; kept as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_discovery_endpoints: Vec<Open>,
    /// Its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_discovery_ports: Vec<ServicePort>,
    /// Other names of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// Nothing is reported of an import.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerServiceImportStatus {}
