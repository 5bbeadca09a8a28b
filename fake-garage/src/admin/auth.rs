//! Who may call what (Garage admin reference §1, "Authentication").

use std::collections::BTreeSet;
use std::fmt;

use super::error::ApiError;
use super::profile::Profile;
use super::request::Request;

/// The tokens in a node's configuration.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Credentials {
    /// Tokens that may call every endpoint but `/metrics`. Real nodes have at most one.
    pub admin: BTreeSet<String>,
    /// The token for `/metrics`.
    pub metrics: Option<String>,
    /// Whether `/metrics` needs a token even if none is configured (`metrics_require_token`).
    pub metrics_require_token: bool,
}

impl fmt::Debug for Credentials {
    /// Says how many there are, never what they are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} admin tokens, metrics token: {}", self.admin.len(), self.metrics.is_some())
    }
}

/// Who called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Somebody with a token of the configuration.
    Configured,
    /// Somebody with a token made through the API; its id.
    Dynamic(String),
    /// Nobody in particular: the endpoint is open.
    Anyone,
}

/// Looks up tokens that were made through the API: the id of the token and secret given, if it may call `scope`.
pub trait DynamicTokens {
    /// Whether the token `id` has `secret` and is valid, and if it also has `scope` (or `None` asks for no scope).
    fn admits(&self, id: &str, secret: &str, scope: Option<&str>) -> bool;
}

/// The token a request presents, or what is wrong with its header.
pub fn presented(request: &Request, profile: Profile) -> Result<&str, ApiError> {
    let header = request
        .authorization
        .as_deref()
        .ok_or_else(|| ApiError::forbidden("Bearer token must be provided in Authorization header"))?;
    let text = header_text(header)?;
    let token =
        text.strip_prefix("Bearer ").ok_or_else(|| ApiError::forbidden("Invalid Authorization header"))?;
    Ok(if profile.trims_tokens() { token.trim() } else { token })
}

/// The text of a header, which must be visible ASCII.
pub fn header_text(header: &[u8]) -> Result<&str, ApiError> {
    let text = std::str::from_utf8(header)
        .ok()
        .filter(|text| text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')));
    text.ok_or_else(|| {
        ApiError::new(400, "InvalidHeaderValue", "Invalid header value: failed to convert header to a str")
    })
}

/// The token of a request, without regard to whether it is any good.
#[must_use]
pub fn token_of(request: &Request) -> Option<&str> {
    let header = std::str::from_utf8(request.authorization.as_deref()?).ok()?;
    header.strip_prefix("Bearer ").map(str::trim)
}

/// Checks that `request` may call the endpoint `scope`.
pub fn authorize(
    request: &Request,
    scope: &str,
    credentials: &Credentials,
    tokens: &dyn DynamicTokens,
    profile: Profile,
) -> Result<Caller, ApiError> {
    let token = presented(request, profile)?;
    // Every valid dynamic token may ask about itself.
    let needed = (scope != "GetCurrentAdminTokenInfo").then_some(scope);
    check(token, credentials.admin.contains(token), needed, tokens)
}

/// Checks that `request` may read `/metrics`.
pub fn authorize_metrics(
    request: &Request,
    credentials: &Credentials,
    tokens: &dyn DynamicTokens,
    profile: Profile,
) -> Result<Caller, ApiError> {
    if credentials.metrics.is_none() && !credentials.metrics_require_token {
        return Ok(Caller::Anyone);
    }
    let token = presented(request, profile)?;
    check(token, credentials.metrics.as_deref() == Some(token), Some("Metrics"), tokens)
}

fn check(
    token: &str,
    configured: bool,
    scope: Option<&str>,
    tokens: &dyn DynamicTokens,
) -> Result<Caller, ApiError> {
    let refused = || ApiError::forbidden("Invalid bearer token");
    // A token with a dot is looked up by its id and never falls back to the configuration.
    match token.split_once('.') {
        Some((id, secret)) if tokens.admits(id, secret, scope) => Ok(Caller::Dynamic(id.to_owned())),
        None if configured => Ok(Caller::Configured),
        _ => Err(refused()),
    }
}
