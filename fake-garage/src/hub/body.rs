//! Reading the body of a request within bounds.

use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;

/// How long a node waits for the next piece of a request, and for the whole of a body.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The longest body that a node takes. Garage has no limit that was met (Garage admin reference §1); this one only
/// keeps a caller gone astray from filling the memory of the hub.
pub const LONGEST_BODY: usize = 32 << 20;

/// A body that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The caller broke off, or the encoding is broken.
    #[error("{0}")]
    Broken(String),
    /// The rest of it did not come.
    #[error("the body was not complete after {} s", PATIENCE.as_secs())]
    Late,
}

/// Reads a whole body, within [`PATIENCE`] and [`LONGEST_BODY`].
pub async fn read_body(body: Incoming) -> Result<Vec<u8>, BodyError> {
    let read = tokio::time::timeout(PATIENCE, Limited::new(body, LONGEST_BODY).collect());
    match read.await {
        Err(_) => Err(BodyError::Late),
        Ok(Err(error)) => Err(BodyError::Broken(error.to_string())),
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
    }
}
