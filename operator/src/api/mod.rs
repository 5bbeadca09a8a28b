//! The Kubernetes API of the operator: group, versions, names and the types themselves.
//!
//! `GarageCluster` is stored as [`v1beta2`]; `GarageNode` is [`v1beta1`]. What both versions of a kind share sits in
//! the modules beside them, one topic per file.

pub mod condition;
pub mod crd;
pub mod federation;
pub mod layout;
pub mod naming;
pub mod network;
pub mod observed;
pub mod quantity;
pub mod replication;
pub mod secret;
pub mod storage;
pub mod v1beta1;
pub mod v1beta2;

/// The API group of every kind (operator contract §4.1).
pub const GROUP: &str = "garage.rajsingh.info";
