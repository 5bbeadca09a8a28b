//! The scenario matrix: one file for each stimulus.

pub mod annotations;
pub mod bootstrap;
pub mod cluster_deletion;
pub mod drain;
pub mod federation_import;
pub mod new_node;
pub mod node_deletion;
pub mod replication_change;
pub mod rollout;
pub mod scale_down;
pub mod tombstones;

use harness::garage::system::Garage;
use harness::scenario::Scenario;

/// Every scenario, in the order in which it is listed and reported.
#[must_use]
pub fn matrix() -> Vec<Scenario<Garage>> {
    vec![
        bootstrap::scenario(),
        new_node::scenario(),
        federation_import::scenario(),
        scale_down::scenario(),
        drain::scenario(),
        node_deletion::scenario(),
        cluster_deletion::scenario(),
        rollout::scenario(),
        tombstones::scenario(),
        annotations::scenario(),
        replication_change::scenario(),
    ]
}
