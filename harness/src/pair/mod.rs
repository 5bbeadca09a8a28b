//! A running pair of sites: how it is put together, and how its clients see it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`collect`](mod@collect) | saving what is to be seen of a running pair |
//! | [`description`] | where the parts of a running pair are |
//! | [`equipment`] | which operator runs on a pair |
//! | [`federation`] | the pair that a supervisor owns |
//! | [`lease`] | the Lease of an operator that was ended, or was cut off |
//! | [`manifests`] | an operator's manifests |
//! | [`hub`] | the hub as a child process |
//! | [`operator`] | the operator under test as a child process |
//! | [`probe`] | asking a child whether it is ready |
//! | [`secret_file`] | files that only their owner may read |

pub mod collect;
pub mod description;
pub mod equipment;
pub mod federation;
pub mod hub;
pub mod lease;
pub mod manifests;
pub mod operator;
pub mod probe;
pub mod secret_file;

pub use description::{HubDescription, OperatorDescription, PairDescription, SiteDescription};
