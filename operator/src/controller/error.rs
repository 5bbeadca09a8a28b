//! Failures of a reconcile. What Garage refuses or delays is not among them: that is a state, told in a condition.

use std::time::Duration;

use thiserror::Error;

/// A reconcile that could not be finished.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// The Kubernetes API refused or did not answer.
    #[error("the Kubernetes API did not let the operator {what}")]
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
        matches!(source.as_ref(), kube::Error::Api(status) if status.is_conflict())
    }
}

/// The whole chain of an error in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut current = error.source();
    while let Some(source) = current {
        text.push_str(": ");
        text.push_str(&source.to_string());
        current = source.source();
    }
    text
}
