//! The typed refusal.

use thiserror::Error;

/// This hub does not lead. Not a failure: what is refused is dropped, and everything is reconciled when the fence opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fenced {
    /// It does not lead.
    #[error("this hub is not the leader")]
    NotLeader,
    /// It led when the permit was given, and its term has ended since.
    #[error("this hub's leadership has ended")]
    TermEnded,
    /// It has not renewed its Lease in time, and does not know whether it still leads.
    #[error("this hub has not renewed its Lease in time")]
    Expired,
}
