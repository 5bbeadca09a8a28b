//! The admin API of a node: what Garage answers, to the byte.
//!
//! A call is a function of the mesh, the node, the request and the moment; nothing here knows of sockets. Start at
//! [`cluster`]. The order of checks is Garage's (Garage admin reference §1): repeated parameters, route, body, query,
//! authentication, and only then what the call is about.

pub mod auth;
pub mod blocks;
pub mod call;
pub mod cluster;
pub mod error;
pub mod health;
pub mod layout;
pub mod metrics;
pub mod node_info;
pub mod nodes;
mod perform;
pub mod profile;
pub mod query;
pub mod quorum;
pub mod request;
pub mod route;
pub mod statistics;
pub mod status;
pub mod store;
pub mod tables;
pub mod workers;

pub use auth::Credentials;
pub use cluster::{Cluster, Happening, LayoutMark};
pub use error::ApiError;
pub use profile::Profile;
pub use request::{Request, Response};
