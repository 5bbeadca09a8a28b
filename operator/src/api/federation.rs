//! `spec.remoteClusters`, `spec.connectTo` and `spec.deletionPolicy`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::secret::SecretKeyRef;

/// Another site of the federation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteCluster {
    /// Name of the site, unique in the list.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Zone of its nodes; differs from the local zone.
    #[schemars(length(min = 1))]
    pub zone: String,
    /// How this site reaches it.
    pub connection: RemoteConnection,
}

/// How this site reaches another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteConnection {
    /// URL of its admin API, used verbatim.
    #[schemars(length(min = 1))]
    pub admin_api_endpoint: String,
    /// Token for it, default key `token`; the local static token when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_token_secret_ref: Option<SecretKeyRef>,
}

/// Another cluster whose layout this one acts on (edge gateways and management handles).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectTo {
    /// A `GarageCluster` in the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterRef>,
    /// URL of an admin API, used verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_api_endpoint: Option<String>,
    /// Token for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_token_secret_ref: Option<SecretKeyRef>,
    /// The RPC secret of that cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc_secret_ref: Option<SecretKeyRef>,
    /// `id@host:port` of nodes to start from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bootstrap_peers: Vec<String>,
}

/// A `GarageCluster` in the namespace of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRef {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What happens to the roles of a cluster when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Nothing: no layout write and no wait.
    Destroy,
    /// The roles leave the layout first.
    Drain,
}
