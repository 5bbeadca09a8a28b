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

    /// What the API server has against an object that was sent to it, if that is what went wrong: the spec it was made from
    /// makes no sense, and the next attempt ends as this one did.
    pub fn objection(&self) -> Option<String> {
        let Self::Kube { what, source } = self else { return None };
        let kube::Error::Api(status) = source.as_ref() else { return None };
        matches!(status.code, 400 | 422)
            .then(|| format!("the API server did not let the operator {what}: {}", status.message))
    }

    /// How long the API server wants to be left alone, if that is what it answered.
    pub fn throttled(&self) -> Option<Duration> {
        let Self::Kube { source, .. } = self else { return None };
        let kube::Error::Api(status) = source.as_ref() else { return None };
        let wait = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        (status.code == 429).then(|| Duration::from_secs(wait.into()))
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

#[cfg(test)]
mod tests {
    use super::ReconcileError;
    use kube::core::Status;
    use rstest::rstest;
    use std::time::Duration;

    fn answered(code: u16, wait: u32) -> ReconcileError {
        let status = serde_json::json!({ "code": code, "details": { "retryAfterSeconds": wait } });
        let status: Status = serde_json::from_value(status).unwrap();
        ReconcileError::kube("write")(kube::Error::Api(Box::new(status)))
    }

    #[rstest]
    #[case::invalid(422, true)]
    #[case::malformed(400, true)]
    #[case::forbidden(403, false)]
    #[case::conflict(409, false)]
    #[case::broken(500, false)]
    fn only_what_the_api_server_finds_wrong_with_an_object_is_an_objection(
        #[case] code: u16,
        #[case] is: bool,
    ) {
        assert_eq!(answered(code, 0).objection().is_some(), is);
    }

    #[rstest]
    #[case(answered(429, 7), Some(7))]
    #[case(answered(429, 0), Some(0))]
    #[case(answered(503, 7), None)]
    #[case(ReconcileError::TimedOut(Duration::from_secs(1)), None)]
    fn a_throttled_reconcile_waits_as_long_as_it_was_told(
        #[case] error: ReconcileError,
        #[case] wait: Option<u64>,
    ) {
        assert_eq!(error.throttled(), wait.map(Duration::from_secs));
    }
}
