//! `GarageNode` v1beta1.

use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::condition::list_schema;
use crate::api::federation::ClusterRef;
use crate::api::layout::LayoutSiteRole;
use crate::api::network::RPC_PORT;
use crate::api::quantity::ByteQuantity;
use crate::api::secret::SecretKeyRef;
use crate::api::storage::NodeStorage;

/// The wanted state of one Garage node.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "garage.rajsingh.info",
    version = "v1beta1",
    kind = "GarageNode",
    plural = "garagenodes",
    shortname = "gn",
    category = "garage",
    namespaced,
    status = "GarageNodeStatus",
    derive = "PartialEq",
    doc = "One Garage node: a workload of this site, or an external node whose role this site declares.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterRef.name"),
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zone"),
    printcolumn(name = "Capacity", type_ = "string", json_path = ".spec.capacity"),
    printcolumn(name = "Gateway", type_ = "boolean", json_path = ".spec.gateway"),
    printcolumn(name = "Connected", type_ = "boolean", json_path = ".status.connected"),
    printcolumn(name = "InLayout", type_ = "boolean", json_path = ".status.inLayout"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("!has(self.external) || has(self.nodeId)")
        .message("external requires nodeId: the operator cannot discover the identity of a node it does not run"),
    validation = Rule::new("!has(self.external) || !has(self.storage)")
        .message("external forbids storage: an external node has no workload at this site"),
    validation = Rule::new("(has(self.gateway) && self.gateway) || has(self.capacity)")
        .message("capacity is mandatory for storage nodes; set it, or gateway: true for a node that stores nothing")
)]
#[serde(rename_all = "camelCase")]
pub struct GarageNodeSpec {
    /// The `GarageCluster` the node belongs to.
    pub cluster_ref: ClusterRef,
    /// Garage node ID (64 hex digits): declares an external node, pins a managed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-fA-F]{64}$"))]
    pub node_id: Option<String>,
    /// Zone of its role.
    #[schemars(length(min = 1))]
    pub zone: String,
    /// Capacity of its role; mandatory for storage nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<ByteQuantity>,
    /// The node stores nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gateway: bool,
    /// Tags of its role besides those that the operator adds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Volumes; those of the cluster when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<NodeStorage>,
    /// Image of Garage; that of the cluster when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Environment of the Garage container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// The node runs elsewhere; this site only declares its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// Work on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
}

/// Where an external node is reached by its peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// Host name or address.
    #[schemars(length(min = 1))]
    pub address: String,
    /// RPC port.
    #[serde(default = "default_rpc_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
}

fn default_rpc_port() -> u16 {
    RPC_PORT
}

/// Work on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// The workload is scaled to zero.
    #[serde(default)]
    pub suspended: bool,
}

/// The observed state of a `GarageNode`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GarageNodeStatus {
    /// Pending, Running, Draining or Failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Garage node ID, as the node itself answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// The pod that answered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_pod_uid: Option<String>,
    /// Zone of its role in the layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The node is up in the view of its cluster.
    #[serde(default)]
    pub connected: bool,
    /// The node has a role in the current layout.
    #[serde(default)]
    pub in_layout: bool,
    /// The layout version in which this was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout_version: Option<i64>,
    /// The admin endpoint of the cluster, for the time after the cluster is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_admin_endpoint: Option<String>,
    /// The Secret with the token for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_admin_token_ref: Option<SecretKeyRef>,
    /// The layout role of the cluster when it was last seen, for the time after the cluster is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_role: Option<LayoutSiteRole>,
    /// Conditions by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_schema")]
    pub conditions: Vec<Condition>,
}
