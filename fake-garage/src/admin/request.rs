//! A request to a node's admin port, and its answer.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::error::ApiError;

/// A request as it reached a node, free of any transport.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// HTTP method, upper case.
    pub method: String,
    /// Path as received, neither decoded nor normalised.
    pub path: String,
    /// Query string without the question mark.
    pub query: Option<String>,
    /// The first `Authorization` header, without surrounding white space.
    pub authorization: Option<Vec<u8>>,
    /// The body.
    pub body: Vec<u8>,
    /// Who calls, as far as whoever passes the request on knows. Tokens that the call makes inherit it.
    pub origin: Attribution,
}

/// Who called, as far as a token tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attribution {
    /// The caller's site, or `harness`.
    pub caller: Option<Arc<str>>,
    /// Name of the token, never the token.
    pub token: Option<Arc<str>>,
}

impl fmt::Debug for Request {
    /// Leaves out what may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} bytes)", self.method, self.path, self.body.len())
    }
}

/// An answer, free of any transport. `Date` and `Content-Length` are the transport's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Headers in the order in which they are sent, names in lower case.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The body; answers that are the same share it.
    pub body: Body,
    /// The error text, where the answer is an error.
    pub error: Option<String>,
}

/// The body of an answer. Copies share it, and the digest once it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bytes: Vec<u8>,
    digest: OnceLock<String>,
}

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Shared {}

impl Body {
    /// The SHA-256 of the body, hex.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.0.digest.get_or_init(|| hex::encode(Sha256::digest(&self.0.bytes)))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Shared { bytes, digest: OnceLock::new() }))
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Response {
    /// Status 200 with `value` as Garage prints JSON: two spaces, no line end.
    #[must_use]
    pub fn json(value: &impl Serialize) -> Self {
        match serde_json::to_vec_pretty(value) {
            Ok(body) => Self::with_json(200, body),
            Err(error) => {
                Self::error(&ApiError::internal(format!("cannot encode the answer: {error}")), "", "")
            }
        }
    }

    /// An answer that is not Garage's: what a fault says.
    #[must_use]
    pub fn replaced(status: u16, body: &serde_json::Value) -> Self {
        let error = (status >= 400).then(|| body.get("message").unwrap_or(body).to_string());
        Self { error, ..Self::with_json(status, serde_json::to_vec_pretty(body).unwrap_or_default()) }
    }

    /// The answer that tells `error` about a request for `path`, from a node of `region`.
    #[must_use]
    pub fn error(error: &ApiError, path: &str, region: &str) -> Self {
        let body = serde_json::to_vec_pretty(&error.body(path, region)).unwrap_or_default();
        Self { error: Some(error.message().to_owned()), ..Self::with_json(error.status(), body) }
    }

    /// An answer of plain text, without the header for browsers.
    #[must_use]
    pub fn text(status: u16, content_type: Option<&'static str>, body: impl Into<Vec<u8>>) -> Self {
        let headers = content_type.map(|content_type| ("content-type", content_type)).into_iter().collect();
        Self { status, headers, body: body.into().into(), error: None }
    }

    fn with_json(status: u16, body: Vec<u8>) -> Self {
        let headers = vec![("content-type", "application/json"), ("access-control-allow-origin", "*")];
        Self { status, headers, body: body.into(), error: None }
    }
}
