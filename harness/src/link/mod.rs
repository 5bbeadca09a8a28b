//! Links with faults: a TCP proxy between two programs, that refuses, resets, swallows, delays or throttles on demand.
//!
//! A link knows nothing of what it carries; TLS passes through it. What it does to each direction is set apart, so that
//! a partition can be one-sided.
//!
//! | module | what it holds |
//! |---|---|
//! | [`fault`] | what a link does, as a value |
//! | [`proxy`] | the proxy |
//! | `pump` | one direction of one connection |

pub mod fault;
pub mod proxy;
mod pump;

pub use fault::{Arrival, Flow, LinkFault};
pub use proxy::{Link, LinkError, Traffic};
