//! Pieces of status that the operator observes in Garage.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::LayoutSiteRole;

/// This site's effective layout role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayoutWriterStatus {
    /// The role the controller is currently enforcing.
    pub role: LayoutSiteRole,
    /// The last layout version that this site applied as a Writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_version: Option<i64>,
    /// The layout version from which a Writer counts: that which it found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_version: Option<i64>,
    /// What a Writer is about to apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended: Option<LayoutIntent>,
    /// Evidence that somebody else writes the layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignWriterStatus>,
}

/// A layout version that is about to be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayoutIntent {
    /// Its number.
    pub version: i64,
    /// Digest of its content.
    pub digest: String,
}

/// Evidence that somebody else writes the layout. It stays until the role changes or a person acknowledges it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForeignWriterStatus {
    /// Reason of the condition.
    pub reason: String,
    /// What was seen.
    pub message: String,
    /// The layout version in which it was seen.
    pub version: i64,
}

/// What `GetClusterHealth` answers, without the counts that change by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthStatus {
    /// `healthy`, `degraded` or `unavailable`.
    pub status: String,
    /// Nodes the answering node is connected to, itself included.
    pub connected_nodes: i64,
    /// Nodes the answering node has heard of.
    pub known_nodes: i64,
    /// Nodes with capacity in any live layout version.
    pub storage_nodes: i64,
    /// Those that are up.
    pub storage_nodes_up: i64,
    /// Partitions in all.
    pub partitions: i64,
    /// Partitions with a quorum.
    pub partitions_quorum: i64,
    /// Partitions with all their nodes.
    pub partitions_all_ok: i64,
}

/// The last one-shot operation that an annotation asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    /// Which one, such as `RevertLayout`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was carried out or refused.
    pub triggered_at: Time,
    /// Whether it was carried out.
    pub succeeded: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A gateway role that nobody serves any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayTombstone {
    /// Node ID of the role.
    pub node_id: String,
    /// Zone of the role.
    pub zone: String,
}

/// A recorded storage drain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageDrainStatus {
    /// The `GarageNode` that is leaving.
    pub node: String,
    /// Its Garage node ID.
    pub node_id: String,
    /// When the drain began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Since when nothing moved any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_since: Option<Time>,
    /// When the drain was proved complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A recorded storage rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageRolloutStatus {
    /// The `GarageNode` whose pod is being replaced.
    pub node: String,
    /// When its replacement began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
}

/// A factor migration, current or past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactorMigrationStatus {
    /// Phase: empty, `Validating`, `ScalingDown`, `Purging`, `Verifying`, `RebuildingLayout`, `Converging`,
    /// `Completed` or `Failed`.
    #[serde(default)]
    pub phase: String,
    /// What it waits for or why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The factor before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_factor: Option<u32>,
    /// The factor after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_factor: Option<u32>,
    /// It begins although Garage is not healthy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Name of the purge that the pods carry out once; it outlives the migration, so that no pod purges again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<String>,
    /// When it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When its phase began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_started_at: Option<Time>,
}
