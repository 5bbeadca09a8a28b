//! The reference operator: one layout writer in a Garage federation.
//!
//! * [`api`] holds the Kubernetes types and their generated definitions.
//! * [`garage`] is the client of the Garage admin API; its six layout writes demand a permit of [`guard`].
//! * [`decision`] holds what is decided, as plain functions; [`resources`] what is made, as plain values.
//! * [`webhook`] serves admission and conversion; [`controller`] reconciles; [`program`] is the process around it.
//! * [`crash`] and [`mutant`] are for test builds: a death after a chosen write, and deliberate defects.

pub mod api;
pub mod controller;
pub mod crash;
pub mod decision;
pub mod garage;
pub mod guard;
pub mod metrics;
pub mod mutant;
pub mod program;
pub mod resources;
pub mod webhook;
