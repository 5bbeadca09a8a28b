//! The reference hub: one Active writes, one Standby mirrors and takes over.
//!
//! * [`api`] holds the Kubernetes types and their generated definitions.
//! * [`decision`] holds what is decided, as plain functions.
//! * [`fence`] lets only a leader write; [`reconcile`] writes under its permits.
//! * [`ha`] holds what makes a leader: the own Lease, the Active's Lease, the mirror, the promotion.
//! * [`webhook`] validates; [`decision_log`] and [`metrics`] tell; [`program`] is the process around it all.
//! * [`crash`] and [`mutant`] are for test builds: a death at a chosen point, and deliberate defects.

pub mod api;
pub mod crash;
pub mod decision;
pub mod decision_log;
pub mod error;
pub mod fence;
pub mod ha;
pub mod metrics;
pub mod mutant;
pub mod program;
pub mod reconcile;
pub mod webhook;
