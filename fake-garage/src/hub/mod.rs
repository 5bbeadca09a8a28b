//! The process around meshes: real sockets, the real clock, the control API and the history.
//!
//! One hub holds every node of every mesh, so that everything is in one total order. Each node listens on an address
//! of its own; callers are told apart by their tokens.

pub mod actor;
pub mod attribution;
pub mod body;
mod calls;
pub mod clock;
pub mod control;
pub mod directory;
pub mod error;
pub mod fault;
mod flight;
pub mod in_process;
pub mod journal;
pub mod life;
pub mod listener;
pub mod options;
pub mod proxy;
pub mod refusal;
pub mod registry;
pub mod request;
pub mod rule;
pub mod rule_guard;
pub mod serve;
pub mod shared;
pub mod state;
pub mod tunnel;

pub use clock::Clock;
pub use error::ServeError;
pub use fault::{FaultGuard, FaultRequest};
pub use options::{ControlToken, NodeNetwork, Options};
pub use rule::RuleRequest;
pub use rule_guard::RuleGuard;
pub use serve::{Hub, serve};
