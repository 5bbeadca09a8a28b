//! `spec.storage` of clusters and nodes, and `spec.gateway`.

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::LayoutPolicy;
use super::quantity::ByteQuantity;

/// The storage tier of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageTier {
    /// Who makes the `GarageNodes`; overrides `spec.layoutPolicy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout_policy: Option<LayoutPolicy>,
    /// Storage nodes of an Auto cluster.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50))]
    pub replicas: i32,
    /// Where each node keeps its metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Volume>,
    /// Where each node keeps its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Volume>,
    /// Percentage of the data volume that is not offered to Garage as capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 90))]
    pub capacity_reserve_percent: Option<u32>,
    /// Tags that the roles of all storage nodes carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Environment of the Garage container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Resources of the Garage container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Whether a `PodDisruptionBudget` protects the tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<DisruptionBudget>,
}

/// Whether a `PodDisruptionBudget` protects a tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionBudget {
    /// Off when false; on when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How many pods may be away at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_unavailable: Option<i32>,
}

/// Volumes of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStorage {
    /// Where the node keeps its metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Volume>,
    /// Where the node keeps its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Volume>,
}

/// One volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// What kind of volume it is.
    #[serde(rename = "type", default)]
    pub kind: VolumeKind,
    /// Its size; mandatory for claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteQuantity>,
    /// `StorageClass` of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

/// What kind of volume it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VolumeKind {
    /// A claim that outlives the pod.
    #[default]
    PersistentVolumeClaim,
    /// Gone with the pod.
    EmptyDir,
}

/// The gateway tier of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayTier {
    /// Gateway nodes.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50))]
    pub replicas: i32,
    /// Whether a `PodDisruptionBudget` protects the tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<DisruptionBudget>,
    /// Environment of the Garage container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
}
