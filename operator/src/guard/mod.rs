//! The guard of the layout: who may write, and the permit that only a Writer gets.
//!
//! Asking for a permit as a Follower *is* the refusal: it is counted, logged, and answered with a typed error. The
//! permit is checked once more at the call, against the role as it is then.

mod operation;
mod permit;
mod refusal;
mod roles;

pub use operation::LayoutOperation;
pub use permit::{LayoutAuthority, LayoutGuard, LayoutWritePermit};
pub use refusal::LayoutWritesDisabled;
pub use roles::{ClusterKey, RoleDecision, RoleSource};
