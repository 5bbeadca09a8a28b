//! When tokens and keys end.

use std::fmt;

use jiff::Timestamp;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use super::super::error::ApiError;

/// A moment in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(pub Timestamp);

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A visitor, so that the error names the place of the text (capture 01c).
        deserializer.deserialize_str(MomentVisitor)
    }
}

struct MomentVisitor;

impl Visitor<'_> for MomentVisitor {
    type Value = Moment;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an RFC 3339 formatted date and time string or a unix timestamp")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Moment, E> {
        // The words are those of the library that real Garage reads dates with.
        text.parse().map(Moment).map_err(|_| E::custom("input contains invalid characters"))
    }
}

/// The new expiration that a request asks for, if it changes.
pub fn change(
    expiration: Option<Moment>,
    never_expires: bool,
) -> Result<Option<Option<Timestamp>>, ApiError> {
    match (expiration, never_expires) {
        (Some(_), true) => Err(ApiError::bad_request("cannot specify `expiration` and `never_expires`")),
        (Some(Moment(moment)), false) => Ok(Some(Some(moment))),
        (None, true) => Ok(Some(None)),
        (None, false) => Ok(None),
    }
}

/// Whether something that ends at `expiration` has ended.
#[must_use]
pub fn is_over(expiration: Option<Timestamp>, now: Timestamp) -> bool {
    expiration.is_some_and(|moment| moment <= now)
}
