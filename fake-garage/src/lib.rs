//! A recording fake of the Garage admin API and cluster layout.
//!
//! | module | what it holds |
//! |---|---|
//! | [`layout`] | the layout protocol: pure values and rules; start here to learn it |
//! | [`mesh`] | nodes and what goes on between them: a simulation without I/O |
//! | [`admin`] | the admin API as Garage answers it |
//! | [`replay`] | holding it to recorded answers of real Garage |
//! | [`hub`] | the process around it: sockets, control API, history |
//!
//! Facts about Garage come from the Garage admin reference, whose sections are named where they are used.

pub mod admin;
pub mod hub;
pub mod layout;
pub mod mesh;
pub mod node;
pub mod replay;

pub use hub::{
    Clock, ControlToken, FaultGuard, FaultRequest, Hub, NodeNetwork, Options, RuleGuard, RuleRequest,
    ServeError, serve,
};
