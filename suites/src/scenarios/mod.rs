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
    use std::collections::BTreeSet;

    const GUIDE: &str = include_str!("../../../docs/writing-scenarios.md");

    /// Everything between backticks in the chapter on words that looks like a call of `world`: its name and its arguments.
    fn words() -> BTreeSet<(&'static str, Vec<&'static str>)> {
        let (_, chapter) = GUIDE.split_once("## The words").unwrap();
        let (_, chapter) = chapter.split_once("Everything else").unwrap();
        let (chapter, _) = chapter.split_once("A cell is made of").unwrap();
        let quoted = chapter.split('`').skip(1).step_by(2);
        let call = |text: &'static str| {
            let (name, arguments) = text.strip_suffix(')')?.split_once('(')?;
            let is_word =
                !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
            is_word.then(|| (name, arguments.split(", ").filter(|one| !one.is_empty()).collect()))
        };
        quoted.filter_map(call).collect()
    }

    /// Names of the parameters of the function `name`, without `self`.
    fn parameters(sources: &'static str, name: &str) -> Option<Vec<&'static str>> {
        let (_, rest) = sources
            .split_once(&format!("pub async fn {name}("))
            .or_else(|| sources.split_once(&format!("pub fn {name}(")))?;
        let (list, _) = rest.split_once(") ").or_else(|| rest.split_once(")\n"))?;
        let names = list.split(',').filter_map(|one| one.split_once(':')).map(|(name, _)| name.trim());
        Some(names.collect())
    }

    #[test]
    fn the_guide_tells_words_that_there_are_with_their_parameters() {
        let sources = concat!(
            include_str!("../world/mod.rs"),
            include_str!("../world/admission.rs"),
            include_str!("../world/calls.rs"),
            include_str!("../world/change.rs"),
            include_str!("../world/fault.rs"),
            include_str!("../world/garage.rs"),
            include_str!("../world/ready.rs"),
            include_str!("../world/seen.rs"),
        );
        let words = words();
        assert!(words.len() > 40, "{words:?}");
        for (name, arguments) in words {
            assert_eq!(parameters(sources, name), Some(arguments), "the word `{name}`");
        }
    }

    #[test]
    fn the_guide_shows_a_scenario_that_is_run() {
        assert!(GUIDE.contains(include_str!("retag.rs")), "docs/writing-scenarios.md and retag.rs differ");
    }
}
