//! The nine kinds of the hub (hub contract, section 1), their names and their definitions.

pub mod access;
pub mod active_controller;
pub mod controller;
pub mod crd;
pub mod kind;
pub mod naming;
pub mod open;
pub mod worker;
