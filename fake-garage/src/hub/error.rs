//! Why a hub could not start or go on.

use std::io;
use std::net::SocketAddr;

use onewriter_history::WriteError;

/// Why a hub could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address} for {purpose}: {}", hint(.source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What would have listened.
        purpose: String,
        /// Why.
        source: io::Error,
    },
    /// The history cannot be begun.
    #[error("cannot begin the history")]
    Begin(#[source] WriteError),
    /// The history cannot be continued, so nothing may happen any more.
    #[error("cannot continue the history")]
    Record(#[source] WriteError),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is taken; stop what listens there or choose another one",
        io::ErrorKind::AddrNotAvailable => "the address does not belong to this machine",
        io::ErrorKind::PermissionDenied => "the system does not permit it",
        _ => "the system refuses it",
    }
}
