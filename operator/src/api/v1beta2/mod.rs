//! API version v1beta2: the stored version of `GarageCluster`.

#[allow(unreachable_pub, reason = "the derived schema type is local to a function")]
#[allow(clippy::duplicated_attributes, reason = "print columns share their types")]
pub mod cluster;

pub use cluster::{GarageCluster, GarageClusterSpec, GarageClusterStatus};
