//! The typed refusal.

use thiserror::Error;

use super::operation::LayoutOperation;
use super::roles::ClusterKey;

/// A layout write was refused because this site is not the layout writer. It is a pending state: the writer site
/// acts, this site requeues; it is never a failure and never ends a finalizer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{operation} is refused for GarageCluster {cluster}: {reason}")]
pub struct LayoutWritesDisabled {
    /// The cluster on whose behalf the write was asked for.
    pub cluster: ClusterKey,
    /// What was asked for.
    pub operation: LayoutOperation,
    /// Whose role forbids it.
    pub reason: String,
}
