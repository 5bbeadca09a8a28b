//! The scenario matrix: one file for each stimulus.

pub mod bootstrap;
pub mod federation;
pub mod observe;

use harness::garage::system::Garage;
use harness::scenario::Scenario;

/// Every scenario, in the order in which it is listed and reported.
#[must_use]
pub fn matrix() -> Vec<Scenario<Garage>> {
    vec![bootstrap::scenario(), federation::scenario()]
}
