//! The write fence: who may write, and the permit that only a leader gets (design record, decision 4).
//!
//! A permit belongs to one term of leadership. It is checked again at every write, against the term as it is then and
//! against the moment until which the own Lease was renewed: a process that was frozen does not write when it wakes.

mod permit;
mod refusal;

pub use permit::{Fence, WritePermit};
pub use refusal::Fenced;
