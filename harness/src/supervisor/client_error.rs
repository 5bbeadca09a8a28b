//! What can go wrong for a client.

use std::{io, path::PathBuf, time::Duration};

use super::{
    claim::ClaimError,
    life::Holder,
    pair::{LogTail, Progress},
    remote::RemoteError,
    root::RootError,
    start::SpawnError,
};
use crate::process::IdentityError;

/// Why there is no pair to use.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The state root cannot be used.
    #[error("cannot use the state folder")]
    Root(#[from] RootError),
    /// No folder or addresses could be had.
    #[error("cannot claim a pair")]
    Claim(#[from] ClaimError),
    /// No supervisor could be started.
    #[error("cannot start a supervisor for the pair")]
    Spawn(#[from] SpawnError),
    /// The supervisor could not be watched.
    #[error("cannot watch the pair's supervisor")]
    Identity(#[from] IdentityError),
    /// The pair did not start; nothing is left of it.
    #[error("the pair did not come up")]
    Failed {
        /// Why.
        source: RemoteError,
        /// Logs that may tell more.
        logs: Vec<LogTail>,
    },
    /// The pair was started by another build, and others use it.
    #[error(
        "{pair} cannot be used: {problem}; it is in use by {}; let that end, or take it down by force",
        describe(holders)
    )]
    Mismatch {
        /// Which pair.
        pair: String,
        /// What differs.
        problem: String,
        /// Who uses it.
        holders: Vec<Holder>,
    },
    /// The supervisor ended without a word.
    #[error("the pair's supervisor died\n{}", log.tail)]
    Lost {
        /// The end of its log.
        log: Box<LogTail>,
    },
    /// The supervisor lives but says nothing.
    #[error(
        "the supervisor of {} has not answered within {deadline:?}; `down` removes it",
        folder.display()
    )]
    Silent {
        /// The pair's folder.
        folder: PathBuf,
        /// How long it was waited for.
        deadline: Duration,
    },
    /// The pair took too long to start.
    #[error("the pair was not ready within {deadline:?}{}", last_step(last.as_ref()))]
    Timeout {
        /// How long it was waited for.
        deadline: Duration,
        /// What it did last.
        last: Option<Progress>,
    },
    /// The caller gave up; nothing is left of the pair unless others use it.
    #[error("cancelled while the pair was being started")]
    Cancelled,
    /// The pair was taken down while it was started or used.
    #[error("the pair is being taken down: {reason}")]
    Stopping {
        /// Why.
        reason: String,
    },
    /// Others use the pair.
    #[error("the pair is in use by {}", describe(holders))]
    Busy {
        /// Who.
        holders: Vec<Holder>,
    },
    /// The pair refused a request.
    #[error("the pair refused the request")]
    Refused {
        /// Why.
        source: RemoteError,
    },
    /// The connection broke.
    #[error("the connection to the pair's supervisor broke")]
    Connection {
        /// Why.
        source: io::Error,
    },
}

fn describe(holders: &[Holder]) -> String {
    let one = |holder: &Holder| format!("process {} ({})", holder.process.pid, holder.purpose);
    if holders.is_empty() {
        "nobody known".into()
    } else {
        holders.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn last_step(last: Option<&Progress>) -> String {
    last.map(|last| format!("; its last step was {}: {}", last.part, last.message)).unwrap_or_default()
}
