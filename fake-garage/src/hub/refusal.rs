//! What the control API refuses, and how it says so.

use axum::response::{IntoResponse, Json, Response};
use http::StatusCode;
use serde_json::json;

/// Something that the control API refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// There is no mesh of that name.
    #[error("no mesh `{0}` is registered")]
    NoMesh(String),
    /// There is no node of that name.
    #[error("no node `{0}` is known; start it with PUT /control/v1/nodes/SITE/NAMESPACE/POD")]
    NoNode(String),
    /// The process of a node has ended.
    #[error("the process of node `{0}` has ended; start it with PUT /control/v1/nodes/SITE/NAMESPACE/POD")]
    Ended(String),
    /// The node's process was not started so often, or never as that.
    #[error(
        "node `{node}` has no start number {boot}: it was started {started} times; PUT answers which start is `boot`"
    )]
    NoBoot {
        /// The node.
        node: String,
        /// What was asked for.
        boot: u64,
        /// How often it was started.
        started: u64,
    },
    /// There is no such rule.
    #[error("there is no rule {0}; it may have ended by itself")]
    NoRule(u64),
    /// There is no such fault.
    #[error("there is no fault {0}; it may have been healed by itself")]
    NoFault(u64),
    /// Another mesh has the secret.
    #[error("mesh `{0}` has that rpc secret already")]
    SecretTaken(String),
    /// The secret of a mesh cannot change.
    #[error("mesh `{0}` is registered with another rpc secret; delete it first")]
    SecretChanged(String),
    /// No mesh has the secret of a node.
    #[error("no mesh has the node's rpc secret (sha256 {0}…); register it with PUT /control/v1/meshes/NAME")]
    UnknownSecret(String),
    /// The history cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A request that cannot be read.
    #[error("{0}")]
    Malformed(String),
    /// A value that makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// No address is left, or the node's is taken.
    #[error("{0}")]
    Address(String),
}

impl ControlError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Unreadable(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoMesh(_) | Self::NoNode(_) | Self::NoBoot { .. } | Self::NoRule(_) | Self::NoFault(_) => {
                StatusCode::NOT_FOUND
            }
            Self::Ended(_) | Self::SecretTaken(_) | Self::SecretChanged(_) | Self::Address(_) => {
                StatusCode::CONFLICT
            }
            Self::UnknownSecret(_) | Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }
}

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        refuse(self.status(), self)
    }
}

/// An error as the control API tells it.
pub(super) fn refuse(status: StatusCode, text: impl std::fmt::Display) -> Response {
    (status, Json(json!({ "error": text.to_string() }))).into_response()
}
