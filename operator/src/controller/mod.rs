//! The reconcilers and what they share.

pub mod apply;
pub mod cluster;
pub mod context;
pub mod endpoints;
pub mod error;
pub mod events;
pub mod layout;
pub mod ledger;
pub mod locks;
pub mod node;
pub mod operator_token;
pub mod pace;
pub mod roles;
pub mod run;
pub mod scope;
pub mod secrets;
pub mod watch_backoff;
pub mod watched_nodes;
