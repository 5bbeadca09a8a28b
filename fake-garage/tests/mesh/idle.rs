//! What is sure to change nothing is left out, and nobody can tell.

use std::time::Duration;

use fake_garage::mesh::connect::Nowhere;
use fake_garage::mesh::{Cut, Loss, Mesh, NodeState, Pacing, StateTable};

use crate::world::*;

/// How many things happen in a mesh that is left alone for so long.
fn happenings(pacing: Pacing, time: Duration) -> usize {
    let mut world = World::with_layout(pacing, 1);
    let until = world.mesh.now() + time;
    let mut count = 0;
    while world.mesh.step(until) {
        count += 1;
    }
    count
}

#[test]
fn an_idle_mesh_does_only_its_rounds() {
    let exact = happenings(Pacing { skips_idle: false, ..Pacing::fast() }, ms(60_000));
    let left_out = happenings(Pacing::fast(), ms(60_000));
    // Four nodes: one round of status a second, and one round of pings every 1.5 s.
    assert!(left_out <= 4 * (60 + 60), "{left_out}");
    assert!(exact > 4 * left_out, "{exact} against {left_out}");
}

/// What can be seen of each node: everything but how long ago peers answered.
fn seen(mesh: &Mesh) -> Vec<NodeState> {
    StateTable::of(mesh).0
}

/// Does everything that can be done to nodes and links, and looks at all nodes after each.
fn story(pacing: Pacing) -> Vec<Vec<NodeState>> {
    let mut world = World::with_layout(pacing, 3);
    let nodes = world.nodes.clone();
    let mut looks = vec![seen(&world.mesh)];
    let mut look = |world: &mut World, time| {
        world.pass(ms(time));
        looks.push(seen(&world.mesh));
    };
    world.mesh.kill(nodes[3]);
    look(&mut world, 5_000);
    world.mesh.start(nodes[3]);
    look(&mut world, 5_000);
    world.mesh.freeze(nodes[2]);
    look(&mut world, 20_000);
    world.mesh.resume(nodes[2]);
    look(&mut world, 5_000);
    for cut in [Cut::Silent, Cut::Reset] {
        world.mesh.partition(&nodes[..2], &nodes[2..], cut);
        look(&mut world, 20_000);
        world.mesh.heal();
        look(&mut world, 5_000);
    }
    world.mesh.kill(nodes[1]);
    world.mesh.lose_files(nodes[1], Loss::LayoutFile);
    world.mesh.start(nodes[1]);
    look(&mut world, 5_000);
    world.mesh.revert(nodes[2]);
    world.mesh.connect(nodes[0], &[target(1)], &Nowhere);
    look(&mut world, 5_000);
    looks
}

#[test]
fn whatever_is_done_to_nodes_and_links_comes_to_the_same() {
    let exact = story(Pacing { skips_idle: false, ..Pacing::fast() });
    let left_out = story(Pacing::fast());
    for (place, (exact, left_out)) in exact.into_iter().zip(left_out).enumerate() {
        let plain = |state: NodeState| NodeState { staging_moved: 0, layout_digest: String::new(), ..state };
        let [exact, left_out] =
            [exact, left_out].map(|nodes| nodes.into_iter().map(plain).collect::<Vec<_>>());
        assert_eq!(exact, left_out, "at look {place}");
    }
}

#[test]
fn an_idle_peer_is_pinged_as_often_as_any() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    for _ in 0..40 {
        world.pass(ms(250));
        let now = world.mesh.now();
        for (_, node) in world.mesh.nodes() {
            for peer in node.peers().values() {
                let age = now.saturating_sub(peer.last_seen.unwrap());
                assert!(age <= ms(1_600), "{age:?}");
            }
        }
    }
}
