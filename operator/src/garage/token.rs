//! A bearer token that does not show itself.

use std::fmt;

/// An admin token. Neither `Debug` nor any log shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes a token, without the white space that a Secret made from a file often ends with.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The value for an `Authorization: Bearer` header.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// The value for the Secret that keeps it.
    pub(crate) fn for_secret(&self) -> &str {
        &self.0
    }

    /// A dotted token is a dynamic one for Garage and can never be the configured one (Garage admin reference §1).
    pub fn is_dynamic(&self) -> bool {
        self.0.contains('.')
    }

    /// Whether there is no token at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
