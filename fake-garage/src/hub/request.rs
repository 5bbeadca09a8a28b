//! What the control API is asked for about meshes and nodes.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::attribution::TokenEntry;
use super::refusal::ControlError;
use crate::admin::Profile;
use crate::layout::{ConsistencyMode, LARGEST_FACTOR};

/// Body of `PUT /meshes/{mesh}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MeshRequest {
    /// SHA-256 of the text of `rpc_secret`, hex.
    pub(super) rpc_secret_sha256: String,
    #[serde(default)]
    pub(super) garage_version: Profile,
    #[serde(default)]
    pub(super) tokens: Vec<TokenEntry>,
}

/// Body of `PUT /nodes/{site}/{namespace}/{pod}`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeRequest {
    pub(super) rpc_secret: String,
    #[serde(default)]
    pub(super) admin_token: Option<String>,
    #[serde(default)]
    pub(super) metrics_token: Option<String>,
    pub(super) replication_factor: usize,
    #[serde(default)]
    pub(super) consistency_mode: ConsistencyMode,
    pub(super) hostname: String,
    /// `s3_region` of its configuration.
    #[serde(default = "default_region")]
    pub(super) region: String,
    /// Where others reach the node, if that is an address of its own and not the hub's to give: a pod's. Nothing
    /// listens there for the hub; its admin API is reached through tunnels.
    #[serde(default)]
    pub(super) address: Option<IpAddr>,
    /// How far the node's wall clock is ahead.
    #[serde(default)]
    pub(super) clock_offset_ms: i64,
    /// Name of a purge of the layout file, which is carried out before the start, once for each name.
    #[serde(default)]
    pub(super) purge_layout: Option<String>,
}

/// The region in everybody's examples.
fn default_region() -> String {
    "garage".to_owned()
}

/// No node's clock is off by more: ten years, in milliseconds.
pub(super) const LARGEST_OFFSET: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

impl NodeRequest {
    /// Says what in it no node can be started with.
    pub(super) fn check(&self) -> Result<(), ControlError> {
        if !is_rpc_secret(&self.rpc_secret) {
            return Err(ControlError::Malformed(format!("rpcSecret: {BAD_SECRET}")));
        }
        if !(1..=LARGEST_FACTOR).contains(&self.replication_factor) {
            let problem = format!("replicationFactor must be at least 1 and at most {LARGEST_FACTOR}");
            return Err(ControlError::Invalid(problem));
        }
        if self.clock_offset_ms.unsigned_abs() > LARGEST_OFFSET {
            return Err(ControlError::Invalid("clockOffsetMs must be less than ten years".to_owned()));
        }
        Ok(())
    }
}

/// What Garage says of a secret that is none (seen with 2.5.0).
pub const BAD_SECRET: &str = "Invalid RPC secret key: expected 32 bytes of random hex";

/// Whether Garage takes `text` as `rpc_secret`: 64 hex digits, in either case.
#[must_use]
pub fn is_rpc_secret(text: &str) -> bool {
    let text = text.trim();
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Checks a name that becomes a part of paths and of the history: of a mesh, a site, a namespace or a pod.
pub(super) fn check_name(kind: &str, name: &str) -> Result<(), ControlError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let problem = if name.is_empty() {
        "is empty"
    } else if name.len() > LONGEST_NAME {
        "is longer than 253 bytes"
    } else if !name.bytes().all(good) || name.bytes().all(|byte| byte == b'.') {
        "may have letters, digits, `-`, `.` and `_` only"
    } else {
        return Ok(());
    };
    Err(ControlError::Malformed(format!("the {kind} {name:?} {problem}")))
}

/// The longest name that Kubernetes has for anything.
const LONGEST_NAME: usize = 253;

/// Answer of `PUT /nodes/{site}/{namespace}/{pod}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAddress {
    /// Where its admin API (port 3903) and RPC (port 3901, only a name) are.
    pub address: IpAddr,
    /// Its identity, 64 hex digits.
    pub node_id: String,
    /// The mesh it belongs to.
    pub mesh: String,
    /// How often its process was started; tells one process of a name from the next.
    pub boot: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::empty("", "is empty")]
    #[case::slash("a/b", "letters, digits")]
    #[case::control("a\nb", "letters, digits")]
    #[case::parent("..", "letters, digits")]
    #[case::space("a b", "letters, digits")]
    fn a_name_that_cannot_stand_in_a_path_is_refused(#[case] name: &str, #[case] problem: &str) {
        let error = check_name("pod", name).unwrap_err().to_string();
        assert!(error.starts_with("the pod ") && error.contains(problem), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[rstest]
    #[case("garage-0")]
    #[case("ow-bootstrap-follower-noyc")]
    #[case("a.b_c")]
    fn a_name_of_kubernetes_is_taken(#[case] name: &str) {
        assert_eq!(check_name("pod", name), Ok(()));
    }

    #[rstest]
    #[case::short("abcd", false)]
    #[case::no_hex(&"xy".repeat(32), false)]
    #[case::lower(&"ab".repeat(32), true)]
    #[case::upper(&"AB".repeat(32), true)]
    #[case::line_end(&format!("{}\n", "ab".repeat(32)), true)]
    fn a_secret_is_64_hex_digits(#[case] secret: &str, #[case] good: bool) {
        assert_eq!(is_rpc_secret(secret), good);
    }
}
