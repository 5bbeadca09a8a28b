//! `GarageCluster` v1beta2.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::condition::list_schema;
use crate::api::federation::{ConnectTo, DeletionPolicy, RemoteCluster};
use crate::api::layout::{LayoutManagement, LayoutPolicy, LayoutSiteRole};
use crate::api::network::{Admin, Network, S3Api};
use crate::api::observed::{
    FactorMigrationStatus, GatewayTombstone, HealthStatus, LastOperation, LayoutWriterStatus,
    StorageDrainStatus, StorageRolloutStatus,
};
use crate::api::replication::Replication;
use crate::api::storage::{GatewayTier, StorageTier};
use crate::mutant::{self, Mutant};

/// The wanted state of the Garage nodes of one site.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "garage.rajsingh.info",
    version = "v1beta2",
    kind = "GarageCluster",
    plural = "garageclusters",
    shortname = "gc",
    category = "garage",
    namespaced,
    status = "GarageClusterStatus",
    derive = "PartialEq",
    doc = "The Garage nodes of one site, and the part this site plays in the shared layout.",
    scale(
        spec_replicas_path = ".spec.storage.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Storage", type_ = "integer", json_path = ".spec.storage.replicas"),
    printcolumn(name = "Gateway", type_ = "integer", json_path = ".spec.gateway.replicas"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zone"),
    printcolumn(name = "Role", type_ = "string", json_path = ".status.layoutWriter.role"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("!has(self.layoutManagement) || !has(self.layoutManagement.siteRole) || self.layoutManagement.siteRole != 'Follower' || (has(self.remoteClusters) && size(self.remoteClusters) > 0)")
        .message("layoutManagement.siteRole: Follower requires at least one remoteClusters entry (a Follower with nothing to follow is a cluster nobody can assign roles to)"),
    validation = Rule::new("!has(self.layoutManagement) || !has(self.layoutManagement.siteRole) || self.layoutManagement.siteRole != 'Follower' || !has(self.connectTo)")
        .message("layoutManagement.siteRole: Follower is not supported with connectTo; edge gateways and management handles act on their layout owner")
)]
#[serde(rename_all = "camelCase")]
pub struct GarageClusterSpec {
    /// Who makes the `GarageNodes`.
    #[serde(default)]
    pub layout_policy: LayoutPolicy,
    /// Zone of the nodes of this site; the name of the cluster when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Image of Garage; overrides `imageRepository` and the operator's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// How Garage replicates data.
    #[serde(default)]
    pub replication: Replication,
    /// The storage tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageTier>,
    /// The gateway tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayTier>,
    /// RPC between Garage nodes.
    #[serde(default)]
    pub network: Network,
    /// The admin API.
    #[serde(default)]
    pub admin: Admin,
    /// The S3 API.
    #[serde(default)]
    pub s3_api: S3Api,
    /// How layout changes are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout_management: Option<LayoutManagement>,
    /// The other sites of the federation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub remote_clusters: Vec<RemoteCluster>,
    /// Another cluster whose layout this one acts on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_to: Option<ConnectTo>,
    /// What happens to the roles when the cluster is deleted; Drain when absent and federated, else Destroy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

impl GarageClusterSpec {
    /// The layout role as declared; `None` when the feature is not in use.
    pub fn site_role(&self) -> Option<LayoutSiteRole> {
        let declared = self.layout_management.as_ref().and_then(|management| management.site_role);
        declared.filter(|_| !mutant::is(Mutant::RoleUnknown))
    }

    /// The policy of the storage tier.
    pub fn storage_policy(&self) -> LayoutPolicy {
        self.storage.as_ref().and_then(|storage| storage.layout_policy).unwrap_or(self.layout_policy)
    }

    /// The deletion policy in force (operator contract §4.2).
    pub fn effective_deletion_policy(&self) -> DeletionPolicy {
        self.deletion_policy.unwrap_or(if self.remote_clusters.is_empty() {
            DeletionPolicy::Destroy
        } else {
            DeletionPolicy::Drain
        })
    }
}

/// The observed state of a `GarageCluster`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GarageClusterStatus {
    /// Pending, Running, Degraded or Failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Managed storage nodes.
    #[serde(default)]
    pub replicas: i32,
    /// Managed nodes whose pod is ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Managed storage nodes whose pod is ready.
    #[serde(default)]
    pub storage_ready_replicas: i32,
    /// Label selector of the pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selector: String,
    /// The layout version this site sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout_version: Option<i64>,
    /// What Garage says about its health.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthStatus>,
    /// This site's effective layout role; absent while `siteRole` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout_writer: Option<LayoutWriterStatus>,
    /// The recorded storage drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_drain: Option<StorageDrainStatus>,
    /// The recorded storage rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_rollout: Option<StorageRolloutStatus>,
    /// The replication factor that the nodes are configured with. That of the spec takes effect with the first layout,
    /// or by a factor migration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replication_factor: Option<u32>,
    /// The factor migration, current or past.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor_migration: Option<FactorMigrationStatus>,
    /// The last one-shot operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    /// Stale gateway roles that were not removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending_gateway_tombstones: Vec<GatewayTombstone>,
    /// Conditions by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_schema")]
    pub conditions: Vec<Condition>,
}
