//! Garage's cluster layout: what every node replicates, and how copies of it meet.
//!
//! Pure values: nothing here reads a clock, draws a number or does I/O. Times are arguments, in milliseconds.
//!
//! A **layout** says which node has which [`Role`], and which nodes hold which of 256 partitions. It changes in
//! numbered [`Version`]s: changes are *staged*, then *applied* as the next version. Every node has a copy of its own
//! ([`LocalLayout`] around a [`LayoutHistory`]); copies spread as whole states and are merged, without any leader:
//!
//! 1. A node whose current version is older than the oldest live one of an incoming state takes that state over as
//!    a whole, its own staging lost.
//! 2. Else incoming versions are appended in order. Of two different versions of one number, **each node keeps the
//!    one it had first**. Nothing resolves that but the next version.
//! 3. Trackers take the maximum per node.
//! 4. The [`Staging`] area with the later time T wins as a whole; areas of the same T are joined entry by entry.
//!    Only apply and revert move T.
//! 5. A state without a usable current version is ignored by a node that has one.
//!
//! | file | what it holds |
//! |---|---|
//! | [`local`] | a node's own copy: stage, preview, apply, revert, skip dead nodes |
//! | [`history`] | the replicated state, and what can be read from it |
//! | [`merge`] | the rules above |
//! | [`staging`], [`register`] | changes that wait, and who wins |
//! | [`version`] | one version, and computing the next |
//! | [`tracker`], [`retirement`] | when an older version stops being live |
//! | [`partition_size`], [`assignment`], [`reassignment`] | which node holds what |
//! | [`statistics`], [`message`] | what Apply and Preview tell |
//! | [`digest`] | comparing states without sending them |

pub mod assignment;
pub mod digest;
pub mod history;
pub mod local;
pub mod merge;
pub mod message;
pub mod node_id;
pub mod parameters;
pub mod partition_size;
pub mod reassignment;
pub mod register;
pub mod retirement;
pub mod role;
pub mod staging;
pub mod statistics;
pub mod tracker;
pub mod version;

pub use digest::Digest;
pub use history::{GossipDigest, LayoutHistory};
pub use local::{ApplyError, Computed, Held, LocalLayout, SkipError, Skipped, StageRequest, SyncRound};
pub use merge::{LayoutEvent, Merge};
pub use node_id::{NodeId, NodeIdError};
pub use parameters::{ConsistencyMode, LARGEST_FACTOR, Parameters, ZoneRedundancy, write_quorum};
pub use register::Register;
pub use role::{Change, Role};
pub use staging::{StageError, Staging};
pub use statistics::Statistics;
pub use tracker::Trackers;
pub use version::{ComputeError, PARTITIONS, Version};
