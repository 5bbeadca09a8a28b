//! The reference operator: one layout writer in a Garage federation.
//!
//! * [`api`] holds the Kubernetes types and their generated definitions.
//! * [`garage`] is the client of the Garage admin API; its six layout writes demand a permit of [`guard`].

pub mod api;
pub mod decision;
pub mod garage;
pub mod guard;
pub mod metrics;
