//! Reading the body of a request within bounds.

use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;

/// How long a node waits for a head, and for the whole of a body. Garage was not seen to give up at all (idle for 45 s,
/// half a body for 75 s); this is longer than any client keeps a connection that it does not use.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// The longest body that a node takes. No limit of Garage was met with 40 MB (observed); this one only keeps a caller
/// gone astray from filling the memory of the hub.
pub const LONGEST_BODY: usize = 64 << 20;

/// A body that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The caller broke off, or the encoding is broken. The text is what Garage 2.5.0 was seen to answer.
    #[error("Internal error (Hyper error): error reading a body from connection")]
    Broken,
    /// It is too long.
    #[error("Internal error: the body is longer than the {LONGEST_BODY} bytes that the fake takes")]
    Long,
    /// The rest of it did not come.
    #[error("Internal error: the body was not complete after {} s", PATIENCE.as_secs())]
    Late,
}

/// Reads a whole body, within [`PATIENCE`] and [`LONGEST_BODY`].
pub async fn read_body(body: Incoming) -> Result<Vec<u8>, BodyError> {
    let read = tokio::time::timeout(PATIENCE, Limited::new(body, LONGEST_BODY).collect());
    match read.await {
        Err(_) => Err(BodyError::Late),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::Long),
        Ok(Err(_)) => Err(BodyError::Broken),
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
    }
}
