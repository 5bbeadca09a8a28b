//! API version v1beta1: `GarageNode`.

#[allow(unreachable_pub, reason = "the derived schema type is local to a function")]
#[allow(clippy::duplicated_attributes, reason = "print columns share their types")]
pub mod node;

pub use node::{External, GarageNode, GarageNodeSpec, GarageNodeStatus, Maintenance};
