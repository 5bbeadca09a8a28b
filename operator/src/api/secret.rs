//! References to one key of a Secret in the same namespace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One key of a Secret in the namespace of the object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Key in the Secret; each reference has its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl SecretKeyRef {
    /// The key, or what this kind of reference means without one.
    pub fn key_or<'a>(&'a self, default: &'a str) -> &'a str {
        self.key.as_deref().unwrap_or(default)
    }
}

/// Default key of `spec.admin.adminTokenSecretRef`.
pub const ADMIN_TOKEN_KEY: &str = "admin-token";
/// Default key of `spec.network.rpcSecretRef`.
pub const RPC_SECRET_KEY: &str = "rpc-secret";
/// Default key of `remoteClusters[].connection.adminTokenSecretRef`.
pub const REMOTE_TOKEN_KEY: &str = "token";
