//! The Garage admin API, version 2 only (operator contract §1, Garage admin reference §1–§9).

mod answers;
mod client;
mod error;
mod layout;
mod token;
mod tokens;
mod transport;
mod workers;
mod writes;

pub use answers::{ClusterHealth, ClusterStatus, ConnectResult, NodeRole, StatusNode};
pub use client::{AdminClient, Deadlines};
pub use error::{AdminError, Call};
pub use layout::{
    ClusterLayout, LayoutHistory, LayoutParameters, LayoutRole, LayoutVersion, RoleChange, SkippedNodes,
    StagedRole, Trackers, VersionStatus, ZoneRedundancy,
};
pub use token::Token;
pub use tokens::NewToken;
pub use transport::{Http, TransportError};
pub use workers::Worker;
