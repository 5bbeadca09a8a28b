//! The engine: sites, scenarios, waits, history, checks, report.

pub mod entry;
pub mod process;
pub mod supervisor;
