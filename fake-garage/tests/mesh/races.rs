//! Two sites that apply at about the same time, under the observed pacing (captures 09, 20 and 23).

use std::collections::BTreeMap;

use fake_garage::layout::LayoutEvent;
use fake_garage::mesh::Pacing;

use crate::world::*;

/// What became of two applies of the same version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The second one was answered 500.
    Refused,
    /// Both were answered 200, and the second one's version is nowhere.
    Dropped,
    /// Both were answered 200, and each node keeps its own.
    Diverged,
    /// Both were answered 200 with the same version.
    Same,
}

/// Node 2 stages and applies; node 0 stages, `before` both or `d` later, and applies `d` later.
fn race(seed: u64, d: u64, stage_together: bool) -> Outcome {
    let mut world = World::with_layout(Pacing::observed(), seed);
    world.stage(2, &[(2, 70)]);
    if stage_together {
        world.stage(0, &[(0, 50)]);
    }
    world.apply(2, 2).unwrap();
    world.pass(ms(d));
    if !stage_together {
        world.stage(0, &[(0, 50)]);
    }
    let second = world.apply(0, 2);
    world.pass(ms(2_500));
    if second.is_err() {
        return Outcome::Refused;
    }
    if world.events(0).contains(&LayoutEvent::Dropped { version: 2 }) {
        return Outcome::Dropped;
    }
    let versions: Vec<_> = world.mesh.nodes().map(|(_, node)| node.layout().current().digest()).collect();
    if versions.iter().all(|version| *version == versions[0]) { Outcome::Same } else { Outcome::Diverged }
}

fn outcomes(d: impl Iterator<Item = u64>, tries: u64, stage_together: bool) -> BTreeMap<Outcome, u64> {
    let mut counts = BTreeMap::new();
    for d in d {
        for seed in 0..tries {
            *counts.entry(race(seed * 1_000 + d, d, stage_together)).or_default() += 1;
        }
    }
    counts
}

#[test]
fn capture_09_applies_at_the_same_moment_diverge_as_a_rule() {
    let counts = outcomes(0..1, 12, true);
    assert!(counts[&Outcome::Diverged] >= 10, "{counts:?}");
}

#[test]
fn capture_20_divergence_ends_between_75_and_300_milliseconds() {
    let early = outcomes([0, 20, 40, 60].into_iter(), 8, true);
    assert!(early[&Outcome::Diverged] > 28, "{early:?}");
    let late = outcomes([310, 350].into_iter(), 8, true);
    assert_eq!(late, [(Outcome::Refused, 16)].into(), "{late:?}");
}

#[test]
fn capture_23_staggered_applies_diverge_are_dropped_after_200_or_are_refused() {
    let counts = outcomes((80..=240).step_by(20), 6, false);
    for outcome in [Outcome::Diverged, Outcome::Dropped, Outcome::Refused] {
        assert!(counts.get(&outcome).is_some_and(|count| *count >= 5), "{outcome:?} in {counts:?}");
    }
}

#[test]
fn capture_20_part_1_the_same_staging_everywhere_gives_the_same_version() {
    for seed in 0..4 {
        let mut world = World::with_layout(Pacing::observed(), seed);
        world.stage(0, &[(0, 50)]);
        world.pass(ms(1_000));
        world.apply(0, 2).unwrap();
        world.apply(2, 2).unwrap();
        world.pass(ms(2_500));
        let versions: Vec<_> = world.mesh.nodes().map(|(_, node)| node.layout().current().digest()).collect();
        assert!(versions.iter().all(|version| *version == versions[0]));
        assert!(!world.events(0).iter().any(|event| matches!(event, LayoutEvent::Conflict { .. })));
    }
}
