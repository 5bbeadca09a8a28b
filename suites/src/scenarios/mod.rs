//! The scenario matrix: one file for each stimulus.

pub mod bootstrap;
pub mod federation_import;
pub mod new_node;

use harness::garage::system::Garage;
use harness::scenario::Scenario;

/// Every scenario, in the order in which it is listed and reported.
#[must_use]
pub fn matrix() -> Vec<Scenario<Garage>> {
    vec![bootstrap::scenario(), new_node::scenario(), federation_import::scenario()]
}
