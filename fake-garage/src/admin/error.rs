//! Errors as the admin API answers them (Garage admin reference §1).

use serde::Serialize;

/// An error answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    status: u16,
    code: &'static str,
    message: String,
}

/// The body of an error answer.
#[derive(Debug, Serialize)]
pub struct ErrorBody<'a> {
    code: &'a str,
    message: &'a str,
    region: &'a str,
    path: &'a str,
}

impl ApiError {
    /// An error of `status` and `code` with its whole message.
    #[must_use]
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// The request makes no sense.
    #[must_use]
    pub fn bad_request(reason: impl std::fmt::Display) -> Self {
        Self::new(400, "InvalidRequest", format!("Bad request: {reason}"))
    }

    /// The body is not what the endpoint takes.
    #[must_use]
    pub fn bad_json(error: &serde_json::Error) -> Self {
        Self::bad_request(format_args!("Invalid JSON: {error}"))
    }

    /// A mandatory query parameter is missing or empty.
    #[must_use]
    pub fn missing(parameter: &str) -> Self {
        Self::bad_request(format_args!("Missing argument `{parameter}` for endpoint"))
    }

    /// The caller is not who may do that.
    #[must_use]
    pub fn forbidden(reason: &str) -> Self {
        Self::new(403, "AccessDenied", format!("Forbidden: {reason}"))
    }

    /// The node cannot do that; all refusals of an apply are of this kind.
    #[must_use]
    pub fn internal(reason: impl std::fmt::Display) -> Self {
        Self::new(500, "InternalError", format!("Internal error: {reason}"))
    }

    /// HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The whole message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How a node writes this error in a node-scoped answer: `Code (status): message`.
    #[must_use]
    pub fn remote(&self) -> String {
        format!("{} ({}): {}", self.code, self.status, self.message)
    }

    /// The body of the answer to a request for `path`, from a node whose `s3_region` is `region`.
    #[must_use]
    pub fn body<'a>(&'a self, path: &'a str, region: &'a str) -> ErrorBody<'a> {
        ErrorBody { code: self.code, message: &self.message, region, path }
    }
}
