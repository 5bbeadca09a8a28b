//! The objects that the operator makes, built from the specs without asking anybody.

pub mod auto_nodes;
pub mod config;
pub mod disruption_budget;
pub mod labels;
pub mod services;
pub mod stateful_set;
