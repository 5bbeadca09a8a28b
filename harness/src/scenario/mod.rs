//! Scenarios and their cells.
//!
//! A [`Scenario`] is one stimulus. Its [`Cell`]s are data: which site plays which role, and what must follow.
//! Control and subject share one body, so the same stimulus proves that writes come where they may come, and that
//! none come where they may not.
//!
//! A cell runs in a [`Scope`]: a namespace of the same name on both sites, and a stage of its own lent by the
//! [`System`] under test. The [`runner`] opens it, runs the body under a deadline, saves evidence, and only then
//! takes everything down again.

pub mod abort;
pub mod cell;
pub mod disturbance;
pub mod namespace;
pub mod outcome;
pub mod runner;
pub mod scope;
pub mod select;
pub mod system;

pub use abort::{Abort, AbortSwitch, Blame};
pub use cell::{Cell, Claim, Disturbs, Kind};
pub use disturbance::{Disturbance, Disturber};
pub use outcome::{CellReport, Outcome};
pub use scope::{Limits, Scope};
pub use select::{Selection, select};
pub use system::{Scenario, System};
