//! Replays of recorded sessions with real Garage, under virtual time.
//!
//! A session is a script of requests, operations on nodes and the answers of the real program. [`run`] plays it to a
//! fake cluster and compares. Nothing here depends on recorded identities or moments.

pub mod binding;
pub mod compare;
pub mod forced;
mod operate;
pub mod operation;
pub mod rename;
pub mod report;
pub mod script;
pub mod session;

pub use rename::rename_nodes;
pub use report::{FileReport, Totals};
pub use script::{Script, ScriptError};
pub use session::run;
