//! Failure detection, restarts and partitions (Garage admin reference §10).

use std::time::Duration;

use fake_garage::layout::LayoutEvent;
use fake_garage::mesh::connect::Nowhere;
use fake_garage::mesh::{Cut, Loss, Output, Pacing, Process};
use rstest::rstest;

use crate::world::*;

#[test]
fn section_10_a_killed_node_is_noticed_at_a_later_write() {
    let mut world = World::with_layout(Pacing::observed(), 1);
    world.mesh.kill(world.nodes[3]);
    world.pass(ms(500));
    assert!(world.sees_up(0, 3), "nobody has written to it");
    let took =
        world.wait_until(ms(26_000), |mesh| mesh.nodes().take(3).all(|(_, node)| !node.sees_up(id(3))));
    assert!(took > ms(500));
}

#[test]
fn capture_08_a_silent_partition_is_noticed_after_five_pings() {
    let mut world = World::with_layout(Pacing::observed(), 1);
    let (east, west) = (world.nodes[..2].to_vec(), world.nodes[2..].to_vec());
    world.mesh.partition(&east, &west, Cut::Silent);
    let took = world.wait_until(ms(90_000), |mesh| {
        let node = |place: usize| mesh.node(mesh.nodes().nth(place).unwrap().0);
        !node(0).sees_up(id(2)) && !node(2).sees_up(id(0))
    });
    assert!((ms(69_000)..ms(86_000)).contains(&took), "{took:?}");
    assert!(world.sees_up(0, 1) && world.sees_up(2, 3));
}

#[test]
fn section_10_a_partition_with_resets_is_noticed_at_the_next_write() {
    let mut world = World::with_layout(Pacing::observed(), 1);
    let (east, west) = (world.nodes[..2].to_vec(), world.nodes[2..].to_vec());
    world.mesh.partition(&east, &west, Cut::Reset);
    world.wait_until(ms(11_000), |mesh| mesh.nodes().take(2).all(|(_, node)| !node.sees_up(id(2))));
}

#[test]
fn capture_08_sites_that_apply_apart_conflict_when_they_meet_and_the_next_version_heals() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    let (east, west) = (world.nodes[..2].to_vec(), world.nodes[2..].to_vec());
    world.mesh.partition(&east, &west, Cut::Reset);
    world.stage(0, &[(0, 50)]);
    world.apply(0, 2).unwrap();
    world.stage(2, &[(2, 70)]);
    world.apply(2, 2).unwrap();
    world.pass(ms(2_000));
    world.mesh.heal();
    world.pass(ms(5_000));
    assert_eq!((world.capacity(0, 0), world.capacity(0, 2)), (Some(50), Some(100)));
    assert_eq!((world.capacity(2, 0), world.capacity(2, 2)), (Some(100), Some(70)));
    // The digest does not tell; only a full state does.
    world.stage(0, &[(1, 90)]);
    world.pass(ms(50));
    assert!(world.events(2).iter().any(|event| matches!(event, LayoutEvent::Conflict { version: 2, .. })));
    assert!(world.told.iter().any(
        |output| matches!(output, Output::Log { line, .. } if line.contains("Inconsistent layout histories"))
    ));
    world.apply(0, 3).unwrap();
    world.pass(ms(500));
    assert_eq!((world.version(2), world.capacity(2, 0), world.capacity(2, 2)), (3, Some(50), Some(100)));
}

#[test]
fn capture_11_a_restarted_node_keeps_identity_layout_and_staging() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.stage(0, &[(0, 50)]);
    world.pass(ms(1_500));
    let before = world.mesh.node(world.nodes[0]).layout().history().staging.clone();
    world.mesh.stop(world.nodes[0]);
    world.mesh.start(world.nodes[0]);
    let node = world.mesh.node(world.nodes[0]);
    assert_eq!((node.id(), node.incarnation()), (id(0), 0));
    assert_eq!(node.layout().history().staging, before);
    assert!(world.sees_up(0, 3), "its list of peers was saved");
}

#[test]
fn capture_11_a_lost_layout_file_comes_back_from_the_peers_as_a_new_incarnation() {
    let mut world = World::with_layout(Pacing::observed(), 1);
    world.pass(ms(61_000));
    let node = world.nodes[0];
    world.mesh.stop(node);
    world.mesh.lose_files(node, Loss::LayoutFile);
    world.mesh.start(node);
    assert_eq!((world.version(0), world.mesh.node(node).incarnation()), (0, 1));
    world.wait_until(ms(26_000), |mesh| mesh.node(node).layout().current().number == 1);
}

#[test]
fn a_named_purge_takes_the_layout_file_away_once() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    let node = world.nodes[0];
    let mut restart = |purge: &str| {
        world.mesh.stop(node);
        world.mesh.purge_layout_once(node, purge);
        world.mesh.start(node);
        // The peers give the layout back, so that there is one to be purged.
        world.pass(ms(3_000));
        world.mesh.node(node).incarnation()
    };
    assert_eq!((restart("one"), restart("one"), restart("two")), (1, 1, 2));
}

#[test]
fn capture_11_all_metadata_lost_gives_a_new_identity_without_role_or_peers() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    let node = world.nodes[0];
    world.mesh.kill(node);
    world.mesh.lose_files(node, Loss::AllMetadata);
    world.mesh.start(node);
    let new = world.mesh.node(node);
    assert!(new.id() != id(0) && new.peers().is_empty());
    world.mesh.connect(node, &[target(1)], &Nowhere);
    world.pass(ms(500));
    assert_eq!(world.version(0), 1, "it adopts the layout");
    let new = world.mesh.node(node).id();
    assert!(world.mesh.node(node).layout().current().role(new).is_none());
}

#[test]
fn capture_15_of_two_replication_factors_the_node_with_the_smaller_exits() {
    let mut world = World::fresh(Pacing::observed(), 1);
    let other = world.mesh.add(id(9), config(9, 3));
    world.pass(ms(300));
    world.mesh.connect(world.nodes[0], &[target(9)], &Nowhere);
    world.pass(ms(12_000));
    assert_eq!(world.mesh.node(world.nodes[0]).process(), Process::Ended { code: Some(1) });
    assert!(world.mesh.node(other).is_running());
}

#[test]
fn capture_15_a_node_does_not_start_on_a_layout_of_another_factor() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.mesh.stop(world.nodes[0]);
    world.mesh.configure(world.nodes[0], config(0, 3));
    world.mesh.start(world.nodes[0]);
    assert_eq!(world.mesh.node(world.nodes[0]).process(), Process::Ended { code: Some(1) });
}

#[test]
fn capture_18_a_frozen_node_counts_as_up_for_more_than_a_minute() {
    let mut world = World::with_layout(Pacing::observed(), 1);
    world.mesh.freeze(world.nodes[3]);
    world.pass(ms(60_000));
    assert!(world.sees_up(0, 3));
    world.wait_until(ms(26_000), |mesh| !mesh.nodes().next().unwrap().1.sees_up(id(3)));
    world.mesh.resume(world.nodes[3]);
    world.wait_until(ms(31_000), |mesh| mesh.nodes().next().unwrap().1.sees_up(id(3)));
}

#[test]
fn capture_18_connecting_to_a_frozen_node_hangs_until_it_goes_on() {
    let mut world = World::fresh(Pacing::fast(), 1);
    world.mesh.freeze(world.nodes[1]);
    world.mesh.connect(world.nodes[0], &[target(1)], &Nowhere);
    world.pass(ms(60_000));
    let connected =
        |world: &World| world.told.iter().any(|output| matches!(output, Output::Connected { .. }));
    assert!(!connected(&world));
    world.mesh.resume(world.nodes[1]);
    world.pass(ms(10));
    assert!(connected(&world));
}

#[rstest]
#[case::observed(Pacing::observed(), ms(40_000), ms(32_000))]
#[case::fast_and_just_as_long(Pacing::fast(), ms(40_000), ms(5_000))]
fn section_10_peers_are_dialled_again_after_a_partition(
    #[case] pacing: Pacing,
    #[case] cut: Duration,
    #[case] again: Duration,
) {
    let mut world = World::with_layout(pacing, 1);
    let (east, west) = (world.nodes[..2].to_vec(), world.nodes[2..].to_vec());
    world.mesh.partition(&east, &west, Cut::Reset);
    world.pass(cut);
    assert!(!world.sees_up(0, 2));
    world.mesh.heal();
    world.wait_until(again, |mesh| mesh.nodes().take(2).all(|(_, node)| node.sees_up(id(2))));
}
