//! How states travel (Garage admin reference §8, rule 6, and §9).

use fake_garage::layout::LayoutEvent;
use fake_garage::mesh::{Cut, Loss, Pacing};

use crate::world::*;

#[test]
fn rule_6_a_changed_state_is_passed_on_to_nodes_that_its_sender_cannot_reach() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.mesh.partition(&[world.nodes[0]], &[world.nodes[3]], Cut::Silent);
    world.stage(0, &[(0, 50)]);
    world.pass(ms(20));
    let staged =
        |at: usize| world.mesh.node(world.nodes[at]).layout().history().visible_changes(false).count();
    assert_eq!([staged(1), staged(3)], [1, 1]);
}

#[test]
fn rule_6_a_changed_state_is_saved() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.stage(0, &[(0, 50)]);
    world.pass(ms(20));
    world.mesh.kill(world.nodes[3]);
    world.mesh.start(world.nodes[3]);
    let history = world.mesh.node(world.nodes[3]).layout().history();
    assert_eq!(history.visible_changes(false).count(), 1);
}

#[test]
fn capture_05_a_node_that_returns_after_the_others_moved_on_is_swallowed() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.mesh.kill(world.nodes[3]);
    world.pass(ms(15_000));
    for version in [2, 3] {
        world.stage(0, &[(0, 50 + version)]);
        world.apply(0, version).unwrap();
        world.pass(ms(500));
        world.mesh.skip_dead_nodes(world.nodes[0], version, true).unwrap();
        world.pass(ms(500));
        // The dead node is in the current version: only its removal lets the older ones retire.
    }
    world.mesh.stage(world.nodes[0], &removal(3)).unwrap();
    world.apply(0, 4).unwrap();
    world.pass(ms(500));
    world.mesh.skip_dead_nodes(world.nodes[0], 4, true).ok();
    world.pass(ms(1_000));
    assert_eq!(world.mesh.node(world.nodes[0]).layout().history().oldest(), 4);
    world.mesh.start(world.nodes[3]);
    assert_eq!(world.version(3), 1, "it starts with what it had");
    world.wait_until(ms(5_000), |mesh| mesh.nodes().all(|(_, node)| node.layout().current().number == 4));
    assert!(world.events(3).contains(&LayoutEvent::Replaced { from: 1, to: 4 }));
}

#[test]
fn rule_1_a_purge_of_every_node_at_once_begins_a_new_incarnation_at_version_0() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    for node in world.nodes.clone() {
        world.mesh.kill(node);
        world.mesh.lose_files(node, Loss::LayoutFile);
    }
    for node in world.nodes.clone() {
        let factor_3 =
            config(u8::try_from(world.nodes.iter().position(|at| *at == node).unwrap()).unwrap(), 3);
        world.mesh.configure(node, factor_3);
        world.mesh.start(node);
    }
    world.pass(ms(30_000));
    for (_, node) in world.mesh.nodes() {
        assert_eq!((node.layout().current().number, node.incarnation()), (0, 1), "nobody can give it back");
        assert!(node.is_running(), "and nobody minds the new factor");
    }
    let roles: Vec<_> = (0..4).map(|place| (place, 100)).collect();
    world.stage(0, &roles);
    world.apply(0, 1).unwrap();
    world.pass(ms(1_000));
    assert!((0..4).all(|at| world.version(at) == 1));
}

#[test]
fn rule_1_one_node_that_loses_its_layout_gets_it_back() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.mesh.kill(world.nodes[2]);
    world.mesh.lose_files(world.nodes[2], Loss::LayoutFile);
    world.mesh.start(world.nodes[2]);
    assert_eq!(world.version(2), 0);
    world.wait_until(ms(5_000), |mesh| mesh.nodes().all(|(_, node)| node.layout().current().number == 1));
}
