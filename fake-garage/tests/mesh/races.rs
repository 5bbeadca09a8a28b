//! Two sites that change the layout at about the same time, under the observed pacing, with many seeds each: the
//! figures of race data files 09, 19, 20 and 23, and of capture 10 N.
//!
//! What those files call the moment of a call is when its request was sent. A call here happens at once, so what
//! lies between is put in: the time until a stage was answered and the next request sent (`ANSWERED`).

use std::collections::BTreeMap;
use std::ops::Range;

use fake_garage::layout::LayoutEvent;
use fake_garage::mesh::{Output, Pacing, Random};

use crate::world::*;

/// Milliseconds until a stage was answered (files 19 and 23: 39 to 78).
const ANSWERED: Range<u64> = 39..78;

/// Milliseconds from the moment at which a stage leaves its node until an apply begins there that is sent once the
/// stage is answered (file 09: sent after 58, of which most is the stage's own checks).
const STAGED_TO_APPLY: Range<u64> = 15..30;

/// What became of two applies of the same version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The second one was answered 500.
    Refused,
    /// Both were answered 200, and the second one's version is nowhere.
    Dropped,
    /// Both were answered 200, and each node keeps what it had first.
    Diverged,
    /// Both were answered 200 with the same version.
    Same,
}

/// A cluster with version 1, and chance of its own for when calls are made.
fn cluster(seed: u64) -> (World, Random) {
    (World::with_layout(Pacing::observed(), seed), Random::new(seed ^ 0xD1CE))
}

fn draw(random: &mut Random, range: Range<u64>) -> u64 {
    range.start + random.number() % (range.end - range.start)
}

/// The second apply, on node 0, and what became of both.
fn second_apply(world: &mut World) -> Outcome {
    let second = world.apply(0, 2);
    world.pass(ms(2_500));
    if second.is_err() {
        return Outcome::Refused;
    }
    if world.events(0).iter().any(|event| matches!(event, LayoutEvent::Dropped { version: 2, .. })) {
        return Outcome::Dropped;
    }
    if all_equal(world) { Outcome::Same } else { Outcome::Diverged }
}

fn all_equal(world: &World) -> bool {
    let contents: Vec<_> = world.mesh.nodes().map(|(_, node)| node.layout().current().digest()).collect();
    contents.iter().all(|content| *content == contents[0])
}

/// How many lines about inconsistent layouts each node has logged.
fn complaints(world: &World) -> Vec<usize> {
    let about = |output: &&Output, at| matches!(output, Output::Log { node, line } if *node == at && line.contains("Inconsistent"));
    world.nodes.iter().map(|at| world.told.iter().filter(|output| about(output, *at)).count()).collect()
}

fn count(outcomes: impl IntoIterator<Item = Outcome>) -> BTreeMap<Outcome, u64> {
    let mut counts = BTreeMap::new();
    for outcome in outcomes {
        *counts.entry(outcome).or_default() += 1;
    }
    counts
}

#[test]
fn race_data_09_a_stage_and_an_apply_on_two_nodes_at_the_same_moment_diverge_as_a_rule() {
    let round = |seed| {
        let (mut world, mut random) = cluster(seed);
        world.stage(0, &[(0, 70)]);
        world.stage(2, &[(2, 40)]);
        world.pass(ms(draw(&mut random, STAGED_TO_APPLY)));
        world.apply(2, 2).unwrap();
        second_apply(&mut world)
    };
    let counts = count((0..36).map(round));
    let diverged = counts.get(&Outcome::Diverged).copied().unwrap_or(0);
    assert!((24..36).contains(&diverged), "11 of 12 there: {counts:?}");
    assert_eq!(counts.get(&Outcome::Refused), None);
}

#[test]
fn race_data_20_part_1_the_same_staging_everywhere_gives_the_same_version() {
    for seed in 0..10 {
        let (mut world, _) = cluster(seed);
        world.stage(0, &[(0, 60), (2, 90)]);
        world.pass(ms(1_000));
        world.apply(2, 2).unwrap();
        assert_eq!(second_apply(&mut world), Outcome::Same, "seed {seed}");
        assert_eq!(complaints(&world), [0; 4], "seed {seed}");
    }
}

/// Both stage; node 2 applies, and node 0 `d` milliseconds later.
fn staggered(seed: u64, d: u64) -> (Outcome, World) {
    let (mut world, _) = cluster(seed);
    world.stage(2, &[(2, 72)]);
    world.stage(0, &[(0, 50)]);
    world.apply(2, 2).unwrap();
    world.pass(ms(d));
    (second_apply(&mut world), world)
}

#[test]
fn race_data_20_part_2_divergence_of_staggered_applies_ends_between_75_and_300_milliseconds() {
    let delays: Vec<u64> = (0..=320).step_by(40).collect();
    for seed in 0..10 {
        let outcomes: Vec<_> = delays.iter().map(|d| (*d, staggered(seed, *d).0)).collect();
        let last = outcomes.iter().rev().find(|(_, outcome)| *outcome == Outcome::Diverged);
        let (last, _) = last.unwrap_or_else(|| panic!("seed {seed} never diverges: {outcomes:?}"));
        // It ends somewhere between the last delay that diverged and the next one that was tried.
        assert!(last + 40 > 75 && *last < 300, "seed {seed}: {outcomes:?}");
        assert_eq!(outcomes.last().unwrap().1, Outcome::Refused, "seed {seed}: {outcomes:?}");
    }
}

#[test]
fn race_data_20_part_2_after_a_divergence_every_node_has_logged_it_several_times() {
    for seed in 0..5 {
        let (outcome, world) = staggered(seed, 0);
        assert_eq!(outcome, Outcome::Diverged);
        let complaints = complaints(&world);
        assert!(complaints.iter().all(|lines| (2..=10).contains(lines)), "4 to 10 there: {complaints:?}");
        let staged =
            |at: usize| world.mesh.node(world.nodes[at]).layout().history().visible_changes(false).count();
        assert!((0..4).all(|at| world.version(at) == 2 && staged(at) == 0), "and nothing else tells of it");
    }
}

/// Node 2 stages and then applies; node 0 begins to do the same `d` milliseconds after node 2 began.
fn apart(seed: u64, d: u64) -> (Outcome, World) {
    let (mut world, mut random) = cluster(seed);
    world.stage(2, &[(2, 49)]);
    let first_apply = draw(&mut random, ANSWERED);
    // Node 0 answers more slowly while it checks what comes in from node 2.
    let second_apply_at = d + draw(&mut random, ANSWERED.start..ANSWERED.end + 40);
    world.pass(ms(first_apply));
    world.apply(2, 2).unwrap();
    world.pass(ms(d - first_apply));
    world.stage(0, &[(0, 69)]);
    world.pass(ms(second_apply_at - d));
    (second_apply(&mut world), world)
}

#[test]
fn race_data_23_staggered_applies_diverge_are_dropped_after_a_200_or_are_refused() {
    let delays = [80, 100, 110, 120, 130, 140, 150, 160, 170, 180, 200, 220, 240];
    let tries = delays.iter().flat_map(|d| (0..8).map(move |seed| apart(seed * 1_000 + d, *d)));
    let tries: Vec<_> = tries.collect();
    let counts = count(tries.iter().map(|(outcome, _)| *outcome));
    let share = |outcome| counts.get(&outcome).copied().unwrap_or(0) * 100 / 104;
    // There, of 52: 17 dropped (33 %), 13 diverged (25 %), 22 refused (42 %).
    assert!((20..=60).contains(&share(Outcome::Dropped)), "{counts:?}");
    assert!((10..=45).contains(&share(Outcome::Diverged)), "{counts:?}");
    assert!((15..=60).contains(&share(Outcome::Refused)), "{counts:?}");
    for (_, world) in tries.iter().filter(|(outcome, _)| *outcome == Outcome::Dropped) {
        assert!(all_equal(world) && world.capacity(0, 0) == Some(100), "the second change is nowhere");
        assert_eq!(complaints(world), [1, 0, 0, 0], "the only trace is one line where it was answered");
    }
    let wiped = |world: &World| {
        let history = world.mesh.node(world.nodes[0]).layout().history();
        history.visible_changes(false).next().is_none()
    };
    let refused: Vec<_> = tries.iter().filter(|(outcome, _)| *outcome == Outcome::Refused).collect();
    let wiped = refused.iter().filter(|(_, world)| wiped(world)).count();
    assert!(wiped * 10 >= refused.len() * 6, "20 of 22 there: {wiped} of {}", refused.len());
}

#[test]
fn capture_10_n_a_stage_within_the_gossip_delay_of_a_revert_is_lost() {
    let kept = |d: u64| {
        let tries = (0..20).filter(|seed| {
            let (mut world, _) = cluster(*seed);
            world.mesh.revert(world.nodes[2]);
            world.pass(ms(d));
            world.stage(0, &[(0, 50)]);
            world.pass(ms(1_000));
            let history = world.mesh.node(world.nodes[2]).layout().history();
            history.visible_changes(false).next().is_some()
        });
        tries.count()
    };
    // There, of 10: none at 0 ms, 1 at 10, 2 at 20, 7 at 30, 9 at 40, all from 70 on.
    assert_eq!([kept(0), kept(10)], [0, 0]);
    assert!((8..=20).contains(&kept(35)));
    assert_eq!(kept(75), 20);
}

/// When each node has acknowledged, synchronised and retired after an apply on node 0, in milliseconds; and how many
/// different trackers and lists of versions could be read on node 0 meanwhile.
fn timeline(seed: u64) -> ([[u64; 3]; 4], usize) {
    let (mut world, _) = cluster(seed);
    world.stage(0, &[(0, 60)]);
    world.pass(ms(500));
    world.apply(0, 2).unwrap();
    let mut moments = [[0; 3]; 4];
    let mut answers = std::collections::BTreeSet::new();
    for now in 1..2_500 {
        world.pass(ms(1));
        for (place, moments) in moments.iter_mut().enumerate() {
            let history = world.mesh.node(world.nodes[place]).layout().history();
            let own = id(u8::try_from(place).unwrap());
            let reached = [
                history.trackers.ack.get(own, 1) == 2,
                history.trackers.sync.get(own, 1) == 2,
                history.oldest() == 2,
            ];
            for (moment, reached) in moments.iter_mut().zip(reached) {
                if reached && *moment == 0 {
                    *moment = now;
                }
            }
        }
        let history = world.mesh.node(world.nodes[0]).layout().history();
        answers.insert((history.live().len(), format!("{}", history.trackers.digest())));
    }
    (moments, answers.len())
}

#[test]
fn race_data_19_trackers_advance_in_order_and_as_fast_as_on_the_real_program_or_faster() {
    for seed in 0..6 {
        let (moments, answers) = timeline(seed);
        let [[own_ack, ..], others @ ..] = &moments;
        assert!((1..=251).contains(own_ack), "own ack, 176 to 251 there: {moments:?}");
        assert!(others.iter().all(|[ack, ..]| (own_ack + 1..=507).contains(ack)), "355 to 507: {moments:?}");
        let all_acked = moments.iter().map(|[ack, ..]| *ack).max().unwrap();
        for [_, sync, retired] in &moments {
            assert!(
                (all_acked + 1..=1_329).contains(sync),
                "after everybody's ack, 780 to 1329: {moments:?}"
            );
            assert!((sync + 1..=1_737).contains(retired), "1498 to 1709: {moments:?}");
        }
        assert!((5..=16).contains(&answers), "6 to 9 different answers there, here every change: {answers}");
    }
}
