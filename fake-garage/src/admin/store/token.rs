//! Admin tokens made through the API.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::auth::DynamicTokens;
use super::super::error::ApiError;
use super::super::request::Attribution;
use super::expiration::{self, Moment, is_over};
use super::{Circumstances, Selector, written};

/// Admin tokens by identity.
#[derive(Debug, Default)]
pub struct Tokens {
    valid: BTreeMap<String, Token>,
    /// Who made each token that ever was: calls with one that is deleted are still somebody's.
    creators: BTreeMap<String, Attribution>,
}

#[derive(Clone)]
struct Token {
    secret: String,
    created: Timestamp,
    name: String,
    expiration: Option<Timestamp>,
    scope: Vec<String>,
}

impl fmt::Debug for Token {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.scope)
    }
}

/// A token as it is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenBody {
    id: Option<String>,
    created: Option<String>,
    name: String,
    expiration: Option<String>,
    expired: bool,
    scope: Vec<String>,
}

/// A new token: the only time its secret is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTokenBody {
    secret_token: String,
    #[serde(flatten)]
    token: TokenBody,
}

/// Body of `CreateAdminToken` and `UpdateAdminToken`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRequest {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    expiration: Option<Moment>,
    #[serde(default)]
    never_expires: bool,
    #[serde(default)]
    scope: Option<Vec<String>>,
}

impl TokenBody {
    /// A token of the configuration, which is listed like the others.
    #[must_use]
    pub fn configured(option: &str, scope: &str) -> Self {
        Self {
            id: None,
            created: None,
            name: format!("{option} (from daemon configuration)"),
            expiration: None,
            expired: false,
            scope: vec![scope.to_owned()],
        }
    }

    fn of(id: &str, token: &Token, now: Timestamp) -> Self {
        Self {
            id: Some(id.to_owned()),
            created: Some(written(token.created)),
            name: token.name.clone(),
            expiration: token.expiration.map(|moment| moment.to_string()),
            expired: is_over(token.expiration, now),
            scope: token.scope.clone(),
        }
    }
}

fn missing(id: &str) -> ApiError {
    ApiError::new(404, "NoSuchAdminToken", format!("Admin token not found: {id}"))
}

impl Tokens {
    /// Makes a token; `creator` made the call.
    pub fn create(
        &mut self,
        request: TokenRequest,
        creator: Attribution,
        at: Circumstances,
    ) -> Result<NewTokenBody, ApiError> {
        let name = request.name.unwrap_or_else(|| at.now.strftime("token_%Y%m%d_%H%M").to_string());
        let token = Token {
            secret: hex::encode(&at.random[12..]),
            created: at.now,
            name,
            expiration: expiration::change(request.expiration, request.never_expires)?.flatten(),
            scope: request.scope.unwrap_or_else(|| vec!["*".to_owned()]),
        };
        let id = hex::encode(&at.random[..12]);
        let body = NewTokenBody {
            secret_token: format!("{id}.{}", token.secret),
            token: TokenBody::of(&id, &token, at.now),
        };
        self.creators.insert(id.clone(), creator);
        self.valid.insert(id, token);
        Ok(body)
    }

    /// Changes a token.
    pub fn update(&mut self, id: &str, request: TokenRequest, now: Timestamp) -> Result<TokenBody, ApiError> {
        let change = expiration::change(request.expiration, request.never_expires)?;
        let token = self.valid.get_mut(id).ok_or_else(|| missing(id))?;
        token.expiration = change.unwrap_or(token.expiration);
        token.name = request.name.unwrap_or_else(|| token.name.clone());
        token.scope = request.scope.unwrap_or_else(|| token.scope.clone());
        Ok(TokenBody::of(id, token, now))
    }

    /// Deletes a token.
    pub fn delete(&mut self, id: &str) -> Result<(), ApiError> {
        self.valid.remove(id).map(|_| ()).ok_or_else(|| missing(id))
    }

    /// All tokens, by identity.
    #[must_use]
    pub fn list(&self, now: Timestamp) -> Vec<TokenBody> {
        self.valid.iter().map(|(id, token)| TokenBody::of(id, token, now)).collect()
    }

    /// One token.
    pub fn get(&self, id: Option<&str>, search: Option<&str>, now: Timestamp) -> Result<TokenBody, ApiError> {
        match Selector::of(id, search)? {
            Selector::Id(id) => self.by_id(id, now).ok_or_else(|| missing(id)),
            Selector::Search(pattern) => {
                let matching: Vec<_> = self
                    .valid
                    .iter()
                    .filter(|(id, token)| id.starts_with(pattern) || token.name == pattern)
                    .collect();
                match matching.as_slice() {
                    [(id, token)] => Ok(TokenBody::of(id, token, now)),
                    several => {
                        Err(ApiError::bad_request(format_args!("{} matching admin tokens", several.len())))
                    }
                }
            }
        }
    }

    /// The token of that identity.
    #[must_use]
    pub fn by_id(&self, id: &str, now: Timestamp) -> Option<TokenBody> {
        self.valid.get(id).map(|token| TokenBody::of(id, token, now))
    }

    /// Who made the token of that identity, even if it is deleted since.
    #[must_use]
    pub fn creator(&self, id: &str) -> Option<&Attribution> {
        self.creators.get(id)
    }

    /// Looks tokens up as they are at `now`.
    #[must_use]
    pub const fn at(&self, now: Timestamp) -> TokensAt<'_> {
        TokensAt { tokens: self, now }
    }
}

/// Tokens as they are at a moment.
#[derive(Debug)]
pub struct TokensAt<'a> {
    tokens: &'a Tokens,
    now: Timestamp,
}

impl DynamicTokens for TokensAt<'_> {
    fn admits(&self, id: &str, secret: &str, scope: Option<&str>) -> bool {
        self.tokens.valid.get(id).is_some_and(|token| {
            let in_scope =
                scope.is_none_or(|wanted| token.scope.iter().any(|scope| scope == "*" || scope == wanted));
            token.secret == secret && !is_over(token.expiration, self.now) && in_scope
        })
    }
}
