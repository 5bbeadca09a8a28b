//! `spec.network`, `spec.admin` and the other listeners of Garage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::secret::SecretKeyRef;

/// RPC between Garage nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// The RPC secret (64 hex digits), the same at every site of a federation; default key `rpc-secret`. Without it
    /// the operator generates one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc_secret_ref: Option<SecretKeyRef>,
    /// RPC port; 3901 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub rpc_bind_port: Option<u16>,
    /// RPC timeout such as `30s`; only lengthens the quiet period of a drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc_timeout: Option<String>,
}

impl Network {
    /// The RPC port in force.
    pub fn rpc_port(&self) -> u16 {
        self.rpc_bind_port.unwrap_or(RPC_PORT)
    }
}

/// The admin API of Garage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Admin {
    /// The static admin token; default key `admin-token`. It must not contain a dot. Without it the operator cannot
    /// reach Garage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_token_secret_ref: Option<SecretKeyRef>,
    /// Admin port; 3903 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub bind_port: Option<u16>,
}

impl Admin {
    /// The admin port in force.
    pub fn port(&self) -> u16 {
        self.bind_port.unwrap_or(ADMIN_PORT)
    }
}

/// The S3 API of Garage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Api {
    /// S3 port; 3900 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub bind_port: Option<u16>,
    /// `s3_region`; `garage` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl S3Api {
    /// The S3 port in force.
    pub fn port(&self) -> u16 {
        self.bind_port.unwrap_or(S3_PORT)
    }
}

/// Default port of the S3 API.
pub const S3_PORT: u16 = 3900;
/// Default port of Garage RPC.
pub const RPC_PORT: u16 = 3901;
/// Default port of static web sites.
pub const WEB_PORT: u16 = 3902;
/// Default port of the admin API.
pub const ADMIN_PORT: u16 = 3903;
