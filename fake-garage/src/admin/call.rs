//! What a request asks for, read and checked as far as the request alone tells.

use serde::de::DeserializeOwned;

use super::auth::header_text;
use super::error::ApiError;
use super::layout::{ApplyClusterLayoutRequest, SkipDeadNodesRequest, UpdateClusterLayoutRequest};
use super::query::Query;
use super::request::Request;

/// A call of an endpoint of version 2.
#[derive(Debug)]
pub enum Call {
    /// `GetClusterStatus`.
    ClusterStatus,
    /// `GetClusterHealth`.
    ClusterHealth,
    /// `GetClusterLayout`.
    ClusterLayout,
    /// `GetClusterLayoutHistory`.
    LayoutHistory,
    /// `UpdateClusterLayout`.
    UpdateLayout(UpdateClusterLayoutRequest),
    /// `PreviewClusterLayoutChanges`.
    PreviewLayout,
    /// `ApplyClusterLayout`.
    ApplyLayout(ApplyClusterLayoutRequest),
    /// `RevertClusterLayout`.
    RevertLayout,
    /// `ClusterLayoutSkipDeadNodes`.
    SkipDeadNodes(SkipDeadNodesRequest),
    /// `ConnectClusterNodes`.
    ConnectNodes(Vec<String>),
    /// A node-scoped endpoint.
    OnNodes {
        /// Which nodes.
        selector: String,
        /// What they are asked.
        question: Question,
    },
    /// An endpoint that exists and that this fake does not offer yet.
    NotOffered(&'static str),
}

/// What a node-scoped endpoint asks each node.
#[derive(Debug, Clone)]
pub enum Question {
    /// `GetNodeInfo`.
    Info,
}

impl Call {
    /// Reads the call of `endpoint`: first the body, then the query.
    pub fn read(endpoint: &'static str, request: &Request, query: &Query) -> Result<Self, ApiError> {
        Ok(match endpoint {
            "GetClusterStatus" => Self::ClusterStatus,
            "GetClusterHealth" => Self::ClusterHealth,
            "GetClusterLayout" => Self::ClusterLayout,
            "GetClusterLayoutHistory" => Self::LayoutHistory,
            "UpdateClusterLayout" => Self::UpdateLayout(body(request)?),
            "PreviewClusterLayoutChanges" => Self::PreviewLayout,
            "ApplyClusterLayout" => Self::ApplyLayout(body(request)?),
            "RevertClusterLayout" => Self::RevertLayout,
            "ClusterLayoutSkipDeadNodes" => Self::SkipDeadNodes(body(request)?),
            "ConnectClusterNodes" => Self::ConnectNodes(body(request)?),
            "GetNodeInfo" => {
                Self::OnNodes { selector: query.required("node")?.to_owned(), question: Question::Info }
            }
            "GetCurrentAdminTokenInfo" => {
                check_bearer(request)?;
                Self::NotOffered(endpoint)
            }
            other => Self::NotOffered(other),
        })
    }
}

fn body<T: DeserializeOwned>(request: &Request) -> Result<T, ApiError> {
    serde_json::from_slice(&request.body).map_err(|error| ApiError::bad_json(&error))
}

/// This endpoint reads the header while reading the request, so that a bad one is 400 (capture 01c).
fn check_bearer(request: &Request) -> Result<(), ApiError> {
    let header = request
        .authorization
        .as_deref()
        .ok_or_else(|| ApiError::bad_request("Missing Authorization header"))?;
    match header_text(header)?.strip_prefix("Bearer ") {
        Some(_) => Ok(()),
        None => Err(ApiError::bad_request("Authorization header must be Bearer token")),
    }
}
