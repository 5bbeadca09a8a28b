//! Slow links, trackers that stand still, clocks that are off, and what calls do that wait for others.

use fake_garage::layout::Held;
use fake_garage::mesh::connect::Nowhere;
use fake_garage::mesh::{Cut, Mesh, Output, Pacing, Slowness};
use rstest::rstest;

use crate::world::*;

fn slow(latency: u64) -> Slowness {
    Slowness { latency: ms(latency)..ms(latency), loss_per_mille: 0 }
}

/// Whether the node at `at` shows a staged change of node 0.
fn shows_staged(world: &World, at: usize) -> bool {
    let history = world.mesh.node(world.nodes[at]).layout().history();
    history.visible_changes(false).any(|(node, _)| node == id(0))
}

#[test]
fn a_slow_link_delays_one_direction_only() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    let (east, west) = (world.nodes[..2].to_vec(), world.nodes[2..].to_vec());
    world.mesh.slow_down(&east, &west, slow(400));
    world.stage(0, &[(0, 50)]);
    world.pass(ms(390));
    assert!(shows_staged(&world, 1) && !shows_staged(&world, 2), "it has reached the own site only");
    world.pass(ms(20));
    assert!(shows_staged(&world, 2));
    world.mesh.revert(world.nodes[2]);
    world.pass(ms(20));
    assert!(!shows_staged(&world, 0), "the way back is as fast as ever");
}

#[test]
fn a_mended_link_is_as_fast_as_before() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    let (east, west) = (world.nodes[..2].to_vec(), world.nodes[2..].to_vec());
    let slowed = world.mesh.slow_down(&east, &west, slow(400));
    let other = world.mesh.slow_down(&west, &east, slow(100));
    world.mesh.mend(slowed);
    world.stage(0, &[(0, 50)]);
    world.pass(ms(20));
    assert!(shows_staged(&world, 2));
    assert!(world.mesh.is_slow(world.nodes[2], world.nodes[0]), "the other fault stays");
    world.mesh.mend(other);
    assert!(!world.mesh.is_slow(world.nodes[2], world.nodes[0]));
}

#[test]
fn on_a_link_with_loss_nothing_is_lost_and_some_messages_are_late() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    let [zero, one, two, three] = world.nodes[..] else { panic!("four nodes") };
    // Nobody else passes on what is late.
    world.mesh.partition(&[zero, three], &[one, two], Cut::Silent);
    world.mesh.slow_down(&[zero], &[three], Slowness { loss_per_mille: 300, ..Slowness::default() });
    let mut took = Vec::new();
    for round in 0..20 {
        world.stage(0, &[(0, 50 + round)]);
        let staged = |mesh: &Mesh, at| mesh.node(at).layout().history().staging.digest();
        took.push(world.wait_until(ms(60_000), |mesh| staged(mesh, zero) == staged(mesh, three)));
    }
    assert!(took.iter().any(|took| *took < ms(10)), "{took:?}");
    assert!(took.iter().any(|took| *took >= ms(20)), "late, or brought by a later exchange: {took:?}");
}

#[test]
fn a_partition_is_mended_by_itself_and_leaves_the_other_one() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    let node = |place: usize| world.nodes[place];
    let (zero, one, two) = (node(0), node(1), node(2));
    let first = world.mesh.partition(&[zero], &[two], Cut::Reset);
    world.mesh.partition(&[one], &[two], Cut::Silent);
    world.mesh.mend(first);
    assert_eq!(world.mesh.cut_between(zero, two), None);
    assert_eq!(world.mesh.cut_between(two, one), Some(Cut::Silent));
    world.mesh.heal();
    assert_eq!(world.mesh.cut_between(two, one), None);
}

#[test]
fn connecting_over_a_slow_link_takes_two_round_trips_more() {
    let mut world = World::fresh(Pacing::fast(), 1);
    let (zero, one) = (world.nodes[0], world.nodes[1]);
    world.mesh.slow_down(&[zero], &[one], slow(100));
    world.mesh.slow_down(&[one], &[zero], slow(50));
    world.mesh.connect(zero, &[target(1)], &Nowhere);
    let took = world.wait_until(ms(400), |mesh| mesh.node(zero).sees_up(id(1)));
    assert!((ms(300)..ms(310)).contains(&took), "{took:?}");
}

#[test]
fn section_5_a_link_so_slow_that_tcp_does_not_connect_in_time_is_told_so() {
    let mut world = World::fresh(Pacing::observed(), 1);
    world.pass(ms(300));
    let (zero, one) = (world.nodes[0], world.nodes[1]);
    world.mesh.slow_down(&[zero], &[one], slow(10_001));
    world.mesh.connect(zero, &[target(1)], &Nowhere);
    world.pass(ms(10_100));
    let told = world.told.iter().find_map(|output| match output {
        Output::Connected { results, .. } => Some(results[0].clone()),
        _ => None,
    });
    assert!(told.unwrap().unwrap_err().ends_with("connect to 127.0.1.2:3901 timed out"));
}

#[test]
fn section_10_pings_that_come_back_too_late_count_as_failed() {
    let mut world = World::with_layout(Pacing::observed(), 1);
    let (east, west) = (world.nodes[..2].to_vec(), world.nodes[2..].to_vec());
    world.mesh.slow_down(&east, &west, slow(10_500));
    world.pass(ms(60_000));
    assert!(world.sees_up(0, 2), "five have to fail");
    world.wait_until(ms(30_000), |mesh| mesh.nodes().take(2).all(|(_, node)| !node.sees_up(id(2))));
}

#[rstest]
#[case::ack(Held { ack: true, ..Held::default() })]
#[case::sync(Held { sync: true, ..Held::default() })]
#[case::sync_ack(Held { sync_ack: true, ..Held::default() })]
fn section_9_a_version_drains_until_a_held_tracker_is_let_go(#[case] held: Held) {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.mesh.hold_trackers(world.nodes[3], held);
    world.stage(0, &[(0, 50)]);
    world.apply(0, 2).unwrap();
    world.pass(ms(5_000));
    let live = |world: &World, at: usize| world.mesh.node(world.nodes[at]).layout().history().live().len();
    assert!((0..4).all(|at| live(&world, at) == 2), "version 1 drains everywhere");
    world.mesh.hold_trackers(world.nodes[3], Held::default());
    world.wait_until(ms(300), |mesh| mesh.nodes().all(|(_, node)| node.layout().history().live().len() == 1));
}

#[test]
fn section_9_where_ack_is_held_nobody_synchronises_to_the_new_version() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.mesh.hold_trackers(world.nodes[3], Held { ack: true, ..Held::default() });
    world.apply(0, 2).unwrap();
    world.pass(ms(1_000));
    let history = world.mesh.node(world.nodes[0]).layout().history();
    let of = |place: u8| (history.trackers.ack.get(id(place), 1), history.trackers.sync.get(id(place), 1));
    assert_eq!([of(0), of(3)], [(2, 1), (1, 1)]);
    assert_eq!(history.min_ack(), 1);
}

#[test]
fn a_held_tracker_stays_held_over_a_restart_and_others_can_skip_it() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.mesh.hold_trackers(world.nodes[3], Held { ack: true, sync: true, sync_ack: true });
    world.apply(0, 2).unwrap();
    world.pass(ms(1_000));
    world.mesh.kill(world.nodes[3]);
    world.mesh.start(world.nodes[3]);
    world.pass(ms(3_000));
    let live = |world: &World| world.mesh.node(world.nodes[3]).layout().history().live().len();
    assert_eq!(live(&world), 2);
    world.mesh.skip_dead_nodes(world.nodes[0], 2, true).unwrap();
    world.pass(ms(1_000));
    assert_eq!(live(&world), 2, "its syncAck is not forced, and it is in the current version");
}

#[test]
fn capture_22_s2_the_clock_ahead_wins_against_a_later_write() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.mesh.set_clock(world.nodes[2], Some(60_000));
    let (east, west) = (world.nodes[..2].to_vec(), world.nodes[2..].to_vec());
    let cut = world.mesh.partition(&east, &west, Cut::Reset);
    world.stage(2, &[(0, 70)]);
    world.pass(ms(2_000));
    world.stage(0, &[(0, 50)]);
    world.mesh.mend(cut);
    world.pass(ms(4_000));
    let staged = |at: usize| {
        let history = world.mesh.node(world.nodes[at]).layout().history();
        history.visible_changes(false).next().and_then(|(_, change)| change.as_ref()?.capacity)
    };
    assert_eq!([staged(0), staged(2)], [Some(70 * GB), Some(70 * GB)]);
}

#[test]
fn a_clock_that_is_set_keeps_its_offset_over_a_restart_until_it_is_undone() {
    let mut world = World::fresh(Pacing::fast(), 1);
    let node = world.nodes[0];
    let before = world.mesh.wall_clock(node);
    world.mesh.set_clock(node, Some(-5_000));
    world.mesh.stop(node);
    world.mesh.start(node);
    assert_eq!(world.mesh.wall_clock(node), before - 5_000);
    world.mesh.set_clock(node, None);
    assert_eq!(world.mesh.wall_clock(node), before);
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let history = |seed| {
        let mut world = World::with_layout(Pacing::observed(), seed);
        let all = world.nodes.clone();
        world.mesh.slow_down(&all, &all, Slowness { latency: ms(5)..ms(90), loss_per_mille: 50 });
        world.mesh.hold_trackers(all[1], Held { sync: true, ..Held::default() });
        world.stage(0, &[(0, 50)]);
        world.apply(2, 2).unwrap();
        world.pass(ms(20_000));
        world.mesh.heal();
        world.mesh.hold_trackers(all[1], Held::default());
        world.pass(ms(20_000));
        let digests: Vec<_> = world.mesh.nodes().map(|(_, node)| node.layout_digest().clone()).collect();
        (format!("{:?}", world.told), digests)
    };
    assert_eq!(history(7), history(7));
    assert_ne!(history(7).0, history(8).0);
}
