//! The scenario matrix: one file for each stimulus.

pub mod admission;
pub mod annotations;
pub mod api_outage;
pub mod bootstrap;
pub mod cluster_deletion;
pub mod connect_to;
pub mod conversion;
pub mod demotion_guard;
pub mod drain;
pub mod factor_migration;
pub mod failover_promotion;
pub mod federation_import;
pub mod field_bugs;
pub mod garage_faults;
pub mod idle;
pub mod metrics;
pub mod new_node;
pub mod node_deletion;
pub mod old_writer_returns;
pub mod operator_restart;
pub mod orphan;
pub mod planned_switch;
pub mod replication_change;
pub mod retag;
pub mod rollout;
pub mod scale_down;
pub mod staged_roles;
pub mod tombstones;
pub mod upgrade;

use harness::garage::system::Garage;
use harness::scenario::Scenario;

/// Every scenario, in the order in which it is listed and reported.
#[must_use]
pub fn matrix() -> Vec<Scenario<Garage>> {
    vec![
        bootstrap::scenario(),
        new_node::scenario(),
        federation_import::scenario(),
        staged_roles::scenario(),
        retag::scenario(),
        idle::scenario(),
        scale_down::scenario(),
        drain::scenario(),
        node_deletion::scenario(),
        cluster_deletion::scenario(),
        rollout::scenario(),
        tombstones::scenario(),
        annotations::scenario(),
        factor_migration::scenario(),
        replication_change::scenario(),
        connect_to::scenario(),
        failover_promotion::scenario(),
        planned_switch::scenario(),
        old_writer_returns::scenario(),
        demotion_guard::scenario(),
        orphan::scenario(),
        admission::scenario(),
        conversion::scenario(),
        upgrade::scenario(),
        metrics::scenario(),
        operator_restart::scenario(),
        api_outage::scenario(),
        garage_faults::scenario(),
        field_bugs::scenario(),
    ]
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_guide_shows_a_scenario_that_is_run() {
        let guide = include_str!("../../../docs/writing-scenarios.md");
        assert!(guide.contains(include_str!("retag.rs")), "docs/writing-scenarios.md and retag.rs differ");
    }
}
