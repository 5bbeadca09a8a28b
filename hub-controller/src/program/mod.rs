//! The program around the hub: options, clients, logs, probes, signals.

pub mod clients;
pub mod logs;
#[allow(clippy::doc_markdown, reason = "these comments are the help text")]
pub mod options;
pub mod server;
pub mod start;
