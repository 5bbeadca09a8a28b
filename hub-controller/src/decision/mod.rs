//! What is decided, as plain functions over values: no clock, no network, no cluster.
//!
//! | module | what it decides |
//! |---|---|
//! | [`staleness`] | whether the Active is dead |
//! | [`promotion`] | what follows on each step of a promotion |
//! | [`standing`] | what a hub that starts as Standby may do with what it finds |
//! | [`lease`] | whether a Lease may be taken, and what is written into it |
//! | [`copy`] | what the copy of an object looks like |
//! | [`scope`] | which objects are mirrored |
//! | [`prune`] | which copies go |
//! | [`endpoint`] | whether a hub may declare itself under its endpoint |
//! | [`processes`] | which process runs in which role |
//! | [`octets`], [`gateways`], [`rotation`], [`slice_rules`] | what reconcilers make of a slice |

pub mod copy;
pub mod endpoint;
pub mod gateways;
pub mod lease;
pub mod octets;
pub mod processes;
pub mod promotion;
pub mod prune;
pub mod rotation;
pub mod scope;
pub mod slice_rules;
pub mod staleness;
pub mod standing;
