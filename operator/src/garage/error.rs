//! What can go wrong in a call, and what it means (operator contract §1.1).

use std::fmt;

use thiserror::Error;

use super::transport::TransportError;
use crate::guard::LayoutWritesDisabled;

/// Which call it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Base URL of the admin API.
    pub endpoint: String,
    /// Operation, such as `GetClusterStatus`.
    pub operation: &'static str,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/v2/{}", self.method, self.endpoint, self.operation)
    }
}

/// A call of the admin API that did not succeed.
#[derive(Debug, Error)]
pub enum AdminError {
    /// A layout write was refused before anything was sent.
    #[error("{call} was not sent")]
    Refused {
        /// Which call.
        call: Call,
        /// Why.
        #[source]
        source: Box<LayoutWritesDisabled>,
    },
    /// No answer: not resolved, not connected, cut off, or too slow.
    #[error("{call} got no answer")]
    Unreachable {
        /// Which call.
        call: Call,
        /// What the HTTP client says.
        #[source]
        source: TransportError,
    },
    /// An answer that is not a success.
    #[error("{call} was answered {status}: {text}")]
    Answered {
        /// Which call.
        call: Call,
        /// HTTP status.
        status: u16,
        /// The first 500 bytes of the answer.
        text: String,
    },
    /// A success whose body is not what Garage answers.
    #[error("{call} was answered with a body that cannot be read")]
    Garbled {
        /// Which call.
        call: Call,
        /// What the decoder says.
        #[source]
        source: serde_json::Error,
    },
    /// A success that contradicts the contract of the endpoint.
    #[error("{call} was answered with {what}")]
    Unexpected {
        /// Which call.
        call: Call,
        /// What is wrong with it.
        what: String,
    },
    /// The HTTP client could not be built.
    #[error("the HTTP client could not be set up")]
    Setup(#[source] reqwest::Error),
}

impl AdminError {
    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answered { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the call was a layout write that the guard refused.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Whether Garage refuses the layout for its factor or zone redundancy: it stays staged, and is pending.
    ///
    /// Garage answers 500; older versions answer 400 (operator contract §1.1, Garage admin reference §6).
    pub fn is_replication_constraint(&self) -> bool {
        const TEXTS: [&str; 4] =
            ["replication factor", "positive capacity", "zone redundancy", "redundancy parameter"];
        match self {
            Self::Answered { status: 400 | 500, text, .. } => TEXTS.iter().any(|part| text.contains(part)),
            _ => false,
        }
    }

    /// Whether another layout version came in between: Garage answers a wrong version with 500.
    pub fn is_wrong_version(&self) -> bool {
        matches!(self, Self::Answered { text, .. } if text.contains("Invalid new layout version"))
    }

    /// Whether the same call may succeed in a moment.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Answered { status, .. } => matches!(status, 502..=504),
            _ => false,
        }
    }
}
