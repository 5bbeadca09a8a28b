//! What a request asks for, read and checked as far as the request alone tells.

use serde::de::DeserializeOwned;

use super::auth::header_text;
use super::blocks::{BlockRequest, LocalRetryBlockResyncRequest, RepairRequest};
use super::error::ApiError;
use super::layout::{ApplyClusterLayoutRequest, SkipDeadNodesRequest, UpdateClusterLayoutRequest};
use super::query::Query;
use super::request::Request;
use super::tables::TableCall;
use super::workers::{GetVariableRequest, ListWorkersRequest, SetVariableRequest, WorkerRequest};

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
    /// `GetClusterStatistics`.
    ClusterStatistics,
    /// A call on buckets, access keys or admin tokens.
    OnTables(TableCall),
}

/// What a node-scoped endpoint asks each node.
#[derive(Debug, Clone)]
pub enum Question {
    /// `GetNodeInfo`.
    Info,
    /// `GetNodeStatistics`.
    Statistics,
    /// `CreateMetadataSnapshot`.
    Snapshot,
    /// `LaunchRepairOperation`.
    Repair(RepairRequest),
    /// `ListWorkers`.
    ListWorkers(ListWorkersRequest),
    /// `GetWorkerInfo`.
    Worker(WorkerRequest),
    /// `GetWorkerVariable`.
    GetVariable(GetVariableRequest),
    /// `SetWorkerVariable`.
    SetVariable(SetVariableRequest),
    /// `ListBlockErrors`.
    BlockErrors,
    /// `GetBlockInfo`.
    BlockInfo(BlockRequest),
    /// `RetryBlockResync`.
    RetryResync(LocalRetryBlockResyncRequest),
    /// `PurgeBlocks`.
    Purge(Vec<String>),
}

impl Call {
    /// Reads the call of `endpoint`: first the body, then the query.
    pub fn read(endpoint: &'static str, request: &Request, query: &Query) -> Result<Self, ApiError> {
        if let Some(call) = TableCall::read(endpoint, request, query)? {
            return Ok(Self::OnTables(call));
        }
        Ok(match endpoint {
            "GetClusterStatus" => Self::ClusterStatus,
            "GetClusterHealth" => Self::ClusterHealth,
            "GetClusterStatistics" => Self::ClusterStatistics,
            "GetClusterLayout" => Self::ClusterLayout,
            "GetClusterLayoutHistory" => Self::LayoutHistory,
            "UpdateClusterLayout" => Self::UpdateLayout(body(request)?),
            "PreviewClusterLayoutChanges" => Self::PreviewLayout,
            "ApplyClusterLayout" => Self::ApplyLayout(body(request)?),
            "RevertClusterLayout" => Self::RevertLayout,
            "ClusterLayoutSkipDeadNodes" => Self::SkipDeadNodes(body(request)?),
            "ConnectClusterNodes" => Self::ConnectNodes(body(request)?),
            _ => {
                let question = Question::read(endpoint, request)?;
                Self::OnNodes { selector: query.required("node")?.to_owned(), question }
            }
        })
    }
}

impl Question {
    fn read(endpoint: &str, request: &Request) -> Result<Self, ApiError> {
        Ok(match endpoint {
            "GetNodeInfo" => Self::Info,
            "GetNodeStatistics" => Self::Statistics,
            "CreateMetadataSnapshot" => Self::Snapshot,
            "LaunchRepairOperation" => Self::Repair(body(request)?),
            "ListWorkers" => Self::ListWorkers(body(request)?),
            "GetWorkerInfo" => Self::Worker(body(request)?),
            "GetWorkerVariable" => Self::GetVariable(body(request)?),
            "SetWorkerVariable" => Self::SetVariable(body(request)?),
            "ListBlockErrors" => Self::BlockErrors,
            "GetBlockInfo" => Self::BlockInfo(body(request)?),
            "RetryBlockResync" => {
                // Read in two steps, so that the error names no position, as in capture 17.
                let value: serde_json::Value = body(request)?;
                let retry = serde_json::from_value(value).map_err(|error| ApiError::bad_json(&error))?;
                Self::RetryResync(retry)
            }
            "PurgeBlocks" => Self::Purge(body(request)?),
            other => return Err(ApiError::internal(format_args!("no handler for {other}"))),
        })
    }
}

pub(super) fn body<T: DeserializeOwned>(request: &Request) -> Result<T, ApiError> {
    serde_json::from_slice(&request.body).map_err(|error| ApiError::bad_json(&error))
}

/// This endpoint reads the header while reading the request, so that a bad one is 400 (capture 01c).
pub(super) fn check_bearer(request: &Request) -> Result<(), ApiError> {
    let header = request
        .authorization
        .as_deref()
        .ok_or_else(|| ApiError::bad_request("Missing Authorization header"))?;
    match header_text(header)?.strip_prefix("Bearer ") {
        Some(_) => Ok(()),
        None => Err(ApiError::bad_request("Authorization header must be Bearer token")),
    }
}
