//! The six layout writes. Each takes a permit, and its first act is to check it again.
//!
//! Without a permit no call compiles:
//!
//! ```compile_fail,E0061
//! async fn sneak(admin: garage_operator::garage::AdminClient) {
//!     let _ = admin.apply_cluster_layout(1).await;
//! }
//! ```
//!
//! and nothing outside the guard can make one:
//!
//! ```compile_fail,E0451
//! let permit = garage_operator::guard::LayoutWritePermit { authority: todo!() };
//! ```

use reqwest::Method;
use serde::Serialize;
use serde::de::IgnoredAny;

use super::client::AdminClient;
use super::error::AdminError;
use super::layout::{LayoutParameters, RoleChange, SkippedNodes};
use crate::guard::{LayoutOperation, LayoutWritePermit};

#[derive(Serialize)]
struct Update<'a> {
    #[serde(skip_serializing_if = "<[RoleChange]>::is_empty")]
    roles: &'a [RoleChange],
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<LayoutParameters>,
}

#[derive(Serialize)]
struct Apply {
    version: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Skip {
    version: i64,
    allow_missing_data: bool,
}

impl AdminClient {
    /// Stages roles: POST `UpdateClusterLayout`.
    pub async fn update_cluster_layout(
        &self,
        permit: &LayoutWritePermit,
        roles: &[RoleChange],
    ) -> Result<(), AdminError> {
        self.still_permitted(permit, LayoutOperation::UpdateClusterLayout)?;
        let update = Update { roles, parameters: None };
        self.post::<_, IgnoredAny>("UpdateClusterLayout", Some(&update)).await.map(drop)
    }

    /// Stages roles and parameters: POST `UpdateClusterLayout`.
    pub async fn update_cluster_layout_with_params(
        &self,
        permit: &LayoutWritePermit,
        roles: &[RoleChange],
        parameters: LayoutParameters,
    ) -> Result<(), AdminError> {
        self.still_permitted(permit, LayoutOperation::UpdateClusterLayoutWithParams)?;
        let update = Update { roles, parameters: Some(parameters) };
        self.post::<_, IgnoredAny>("UpdateClusterLayout", Some(&update)).await.map(drop)
    }

    /// Makes what is staged the layout with this number: POST `ApplyClusterLayout`.
    pub async fn apply_cluster_layout(
        &self,
        permit: &LayoutWritePermit,
        version: i64,
    ) -> Result<(), AdminError> {
        self.still_permitted(permit, LayoutOperation::ApplyClusterLayout)?;
        self.post::<_, IgnoredAny>("ApplyClusterLayout", Some(&Apply { version })).await.map(drop)
    }

    /// Applies what is staged as the next version; sends no POST when nothing is. Answers the version it made.
    pub async fn apply_staged_layout_changes(
        &self,
        permit: &LayoutWritePermit,
    ) -> Result<Option<i64>, AdminError> {
        self.still_permitted(permit, LayoutOperation::ApplyStagedLayoutChanges)?;
        let layout = self.cluster_layout().await?;
        if layout.staged_role_changes.is_empty() && layout.staged_parameters.is_none() {
            return Ok(None);
        }
        let version = layout.version + 1;
        self.apply_cluster_layout(permit, version).await?;
        Ok(Some(version))
    }

    /// Drops what is staged: POST `RevertClusterLayout`.
    pub async fn revert_cluster_layout(&self, permit: &LayoutWritePermit) -> Result<(), AdminError> {
        self.still_permitted(permit, LayoutOperation::RevertClusterLayout)?;
        self.post::<(), IgnoredAny>("RevertClusterLayout", None).await.map(drop)
    }

    /// Stops waiting for dead nodes: POST `ClusterLayoutSkipDeadNodes`.
    pub async fn cluster_layout_skip_dead_nodes(
        &self,
        permit: &LayoutWritePermit,
        version: i64,
        allow_missing_data: bool,
    ) -> Result<SkippedNodes, AdminError> {
        self.still_permitted(permit, LayoutOperation::ClusterLayoutSkipDeadNodes)?;
        self.post("ClusterLayoutSkipDeadNodes", Some(&Skip { version, allow_missing_data })).await
    }

    fn still_permitted(
        &self,
        permit: &LayoutWritePermit,
        operation: LayoutOperation,
    ) -> Result<(), AdminError> {
        permit.check(operation).map_err(|source| AdminError::Refused {
            call: self.call(&Method::POST, operation.endpoint()),
            source: Box::new(source),
        })
    }
}
