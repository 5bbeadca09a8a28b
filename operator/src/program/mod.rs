//! The program around the controllers: options, logs, leader election, probes, signals.

pub mod leader;
pub mod logs;
#[allow(clippy::doc_markdown, reason = "these comments are the help text")]
pub mod options;
pub mod purge;
pub mod server;
pub mod start;
pub mod webhooks;
