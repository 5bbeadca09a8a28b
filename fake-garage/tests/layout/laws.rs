//! Laws of merging, on arbitrary histories of two sites.

use fake_garage::layout::{LayoutEvent, LocalLayout, NodeId};
use proptest::prelude::*;

use crate::fixture::*;

/// Something that happens at one of two sites.
#[derive(Debug, Clone)]
enum Happening {
    Stage { at: bool, node: u8, capacity: u64, later: u64 },
    Remove { at: bool, node: u8, later: u64 },
    Redundancy { at: bool, zones: usize, later: u64 },
    Apply { at: bool, later: u64 },
    Revert { at: bool, later: u64 },
    Synchronise { at: bool },
    Deliver { to: bool },
}

fn happening() -> impl Strategy<Value = Happening> {
    let at = any::<bool>;
    // Clocks stand still, run, and jump.
    let later = || prop_oneof![Just(0), 1..50_u64, Just(60_000_u64)];
    prop_oneof![
        4 => (at(), 0..6_u8, 1..50_u64, later())
            .prop_map(|(at, node, capacity, later)| Happening::Stage { at, node, capacity, later }),
        1 => (at(), 0..6_u8, later()).prop_map(|(at, node, later)| Happening::Remove { at, node, later }),
        1 => (at(), 1..3_usize, later()).prop_map(|(at, zones, later)| Happening::Redundancy { at, zones, later }),
        2 => (at(), later()).prop_map(|(at, later)| Happening::Apply { at, later }),
        1 => (at(), later()).prop_map(|(at, later)| Happening::Revert { at, later }),
        1 => at().prop_map(|at| Happening::Synchronise { at }),
        3 => at().prop_map(|to| Happening::Deliver { to }),
    ]
}

struct Sites {
    nodes: [LocalLayout; 2],
    clocks: [u64; 2],
}

impl Sites {
    fn new() -> Self {
        let (here, there) = two_sites(0);
        Self { nodes: [here, there], clocks: [10, 10] }
    }

    fn tick(&mut self, at: bool, later: u64) -> u64 {
        let clock = &mut self.clocks[usize::from(at)];
        *clock += later;
        *clock
    }

    fn happen(&mut self, happening: &Happening) {
        let id = |node: u8| NodeId::new([node; 32]);
        let zone = |node: u8| if node.is_multiple_of(2) { "a" } else { "b" };
        match *happening {
            Happening::Stage { at, node, capacity, later } => {
                let now = self.tick(at, later);
                stage(&mut self.nodes[usize::from(at)], &[(id(node), storage(zone(node), capacity))], now);
            }
            Happening::Remove { at, node, later } => {
                let now = self.tick(at, later);
                stage(&mut self.nodes[usize::from(at)], &[(id(node), None)], now);
            }
            Happening::Redundancy { at, zones, later } => {
                let now = self.tick(at, later);
                stage_redundancy(&mut self.nodes[usize::from(at)], zones, now);
            }
            Happening::Apply { at, later } => {
                let now = self.tick(at, later);
                let node = &mut self.nodes[usize::from(at)];
                if let Ok(computed) = node.apply(node.current().number + 1, now) {
                    node.adopt(&computed.history);
                }
            }
            Happening::Revert { at, later } => {
                let now = self.tick(at, later);
                revert(&mut self.nodes[usize::from(at)], now);
            }
            Happening::Synchronise { at } => {
                let node = &mut self.nodes[usize::from(at)];
                let round = node.sync_round();
                node.finish_sync(round);
            }
            Happening::Deliver { to } => {
                let state = self.nodes[usize::from(!to)].history().clone();
                self.nodes[usize::from(to)].merge(&state);
            }
        }
    }
}

fn after(happenings: &[Happening]) -> Sites {
    let mut sites = Sites::new();
    for happening in happenings {
        sites.happen(happening);
    }
    sites
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn section_8_merging_a_state_twice_changes_nothing_the_second_time(happenings in prop::collection::vec(happening(), 0..30)) {
        let Sites { nodes: [mut here, there], .. } = after(&happenings);
        send(&there, &mut here);
        let before = here.history().clone();
        let again = send(&there, &mut here);
        prop_assert!(!again.changed);
        prop_assert_eq!(here.history(), &before);
    }

    #[test]
    fn section_8_versions_only_move_forward(happenings in prop::collection::vec(happening(), 0..30)) {
        let mut sites = Sites::new();
        for happening in &happenings {
            let before = sites.nodes.each_ref().map(|node| node.current().number);
            sites.happen(happening);
            let after = sites.nodes.each_ref().map(|node| node.current().number);
            prop_assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
        }
    }

    #[test]
    fn rule_2_a_live_version_never_changes_its_content(happenings in prop::collection::vec(happening(), 0..30)) {
        let mut sites = Sites::new();
        for happening in &happenings {
            let before = sites.nodes.clone();
            sites.happen(happening);
            for (before, after) in before.iter().zip(&sites.nodes) {
                // Unless the whole state was replaced.
                let replaced = after.history().oldest() > before.current().number;
                for version in before.history().live() {
                    let now = after.history().live().iter().find(|now| now.number == version.number);
                    prop_assert!(replaced || now.is_none_or(|now| now == version));
                }
            }
        }
    }

    #[test]
    fn live_versions_have_no_gap_and_every_version_is_usable(happenings in prop::collection::vec(happening(), 0..30)) {
        for node in after(&happenings).nodes {
            let numbers = live(&node);
            prop_assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{:?}", numbers);
            prop_assert!(node.history().live().iter().all(|version| version.is_consistent()));
            prop_assert!(old(&node).iter().all(|number| *number < numbers[0]));
        }
    }

    #[test]
    fn two_nodes_that_exchange_until_nothing_changes_stage_the_same(
        happenings in prop::collection::vec(happening(), 0..30),
    ) {
        let Sites { nodes: [mut here, mut there], .. } = after(&happenings);
        settle(&mut [&mut here, &mut there]);
        prop_assert_eq!(&here.history().staging, &there.history().staging);
        prop_assert_eq!(here.current().number, there.current().number);
    }

    #[test]
    fn rule_4_in_which_order_states_arrive_does_not_matter_for_staging(
        happenings in prop::collection::vec(happening(), 0..20), more in prop::collection::vec(happening(), 0..10),
    ) {
        let early = after(&happenings);
        let mut all = happenings.clone();
        all.extend(more.into_iter().filter(|happening| !matches!(happening, Happening::Apply { .. })));
        let late = after(&all);
        let [mut one, mut other] = [early.nodes[0].clone(), early.nodes[0].clone()];
        for state in [&early.nodes[1], &late.nodes[1]] {
            one.merge(state.history());
        }
        for state in [&late.nodes[1], &early.nodes[1]] {
            other.merge(state.history());
        }
        prop_assert_eq!(&one.history().staging, &other.history().staging);
    }

    #[test]
    fn a_conflict_is_told_exactly_where_contents_differ(happenings in prop::collection::vec(happening(), 0..30)) {
        let Sites { nodes: [mut here, there], .. } = after(&happenings);
        let differs = there.history().live().iter().any(|version| {
            here.history().live().iter().any(|own| own.number == version.number && own != version)
        });
        let told = send(&there, &mut here).events.iter().any(|event| matches!(event, LayoutEvent::Conflict { .. }));
        prop_assert_eq!(told, differs);
    }
}
