//! The state of every node as a table.

use fake_garage::layout::Held;
use fake_garage::mesh::{Cut, Pacing, Slowness, StateTable};

use crate::world::*;

#[test]
fn the_table_shows_what_every_node_knows_and_what_is_wrong_with_it() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    let [zero, one, two, three] = world.nodes[..] else { panic!("four nodes") };
    world.mesh.set_clock(one, Some(-60_000));
    world.mesh.hold_trackers(one, Held { ack: true, sync: true, sync_ack: false });
    world.mesh.partition(&[zero], &[two], Cut::Silent);
    world.mesh.slow_down(&[two], &[one], Slowness { latency: ms(1)..ms(2), loss_per_mille: 0 });
    world.stage(0, &[(0, 50)]);
    world.apply(0, 2).unwrap();
    world.pass(ms(500));
    world.stage(1, &[(3, 20)]);
    world.mesh.freeze(two);
    world.mesh.kill(three);
    world.pass(ms(10_000));
    insta::assert_snapshot!(StateTable::of(&world.mesh));
}

#[test]
fn a_fresh_mesh_has_a_table_too() {
    let world = World::fresh(Pacing::fast(), 1);
    insta::assert_snapshot!(StateTable::of(&world.mesh));
}
