//! Buckets, access keys and admin tokens of a cluster (Garage admin reference §10c).
//!
//! One store per cluster: real Garage replicates these tables to every node, and by quorum, so that nobody sees a
//! difference. What is modelled is whether a quorum is there, see [`quorum`](super::quorum).

pub mod bucket;
mod bucket_body;
pub mod bucket_name;
pub mod expiration;
pub mod key;
pub mod token;

use jiff::Timestamp;

use super::error::ApiError;
use bucket::Buckets;
use key::Keys;
use token::Tokens;

/// Buckets, access keys and admin tokens.
#[derive(Debug, Default)]
pub struct Store {
    /// Admin tokens made through the API.
    pub tokens: Tokens,
    /// Access keys.
    pub keys: Keys,
    /// Buckets with their aliases and permissions.
    pub buckets: Buckets,
}

/// The circumstances of a call.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    /// What the answering node's clock shows.
    pub now: Timestamp,
    /// Bytes that nobody has drawn before, for identities and secrets.
    pub random: [u8; 32],
}

/// A moment as Garage writes it: UTC with milliseconds.
#[must_use]
pub(super) fn written(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// The items from `offset` on, at most `limit`.
pub(super) fn page<T>(items: Vec<(String, T)>, offset: Option<&str>, limit: Option<usize>) -> Vec<T> {
    let from = items.into_iter().skip_while(|(id, _)| offset.is_some_and(|offset| id.as_str() < offset));
    from.take(limit.unwrap_or(usize::MAX)).map(|(_, item)| item).collect()
}

/// Exactly one of an identity and a pattern.
pub(super) enum Selector<'a> {
    Id(&'a str),
    Search(&'a str),
}

impl<'a> Selector<'a> {
    pub(super) fn of(id: Option<&'a str>, search: Option<&'a str>) -> Result<Self, ApiError> {
        match (id, search) {
            (Some(id), None) => Ok(Self::Id(id)),
            (None, Some(search)) => Ok(Self::Search(search)),
            _ => Err(ApiError::bad_request("Either id or search must be provided (but not both)")),
        }
    }
}
