//! Failures of a reconcile.

use std::time::Duration;

use thiserror::Error;

use crate::error::status_of;
use crate::fence::Fenced;

/// A reconcile that could not be finished.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// The hub does not lead any more: what is left is dropped.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The Kubernetes API refused or did not answer.
    #[error("the Kubernetes API did not let the hub {what}")]
    Kube {
        /// What was attempted.
        what: String,
        /// What the client says.
        #[source]
        source: Box<kube::Error>,
    },
    /// It took too long.
    #[error("the reconcile was given up after {} seconds", .0.as_secs())]
    TimedOut(Duration),
    /// An object could not be turned into JSON.
    #[error("{what} could not be turned into JSON")]
    Json {
        /// Which object.
        what: String,
        /// What the encoder says.
        #[source]
        source: serde_json::Error,
    },
}

impl ReconcileError {
    /// For `map_err`: names what was attempted.
    pub fn kube(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Kube { what, source: Box::new(source) }
    }

    /// Another writer was faster; the next pass sees its result.
    pub fn is_conflict(&self) -> bool {
        let Self::Kube { source, .. } = self else { return false };
        status_of(source).is_some_and(kube::core::Status::is_conflict)
    }
}
