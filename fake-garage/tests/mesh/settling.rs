//! How a mesh comes together.

use fake_garage::mesh::{Mesh, NodeIndex, Pacing};
use rstest::rstest;

use crate::world::*;

fn everybody_knows_everybody(mesh: &Mesh) -> bool {
    let all: Vec<NodeIndex> = mesh.nodes().map(|(index, _)| index).collect();
    all.iter().all(|at| (0..4).all(|of| sees_up(mesh, *at, of)))
        && mesh.nodes().all(|(_, node)| node.peers().values().all(|peer| peer.status.is_some()))
}

#[test]
fn a_fast_mesh_settles_in_well_under_a_second_after_one_call() {
    let mut world = World::fresh(Pacing::fast(), 1);
    world.connect_all();
    let took = world.wait_until(ms(400), everybody_knows_everybody);
    assert!(took > ms(0), "the others dial back by themselves");
}

#[test]
fn section_5_in_the_observed_pacing_host_names_take_up_to_ten_seconds() {
    let mut world = World::fresh(Pacing::observed(), 1);
    world.pass(ms(300));
    world.connect_all();
    world.wait_until(ms(3_500), |mesh| (0..4).all(|of| mesh.nodes().all(|(_, node)| node.sees_up(id(of)))));
    let took = world.wait_until(ms(21_000), everybody_knows_everybody);
    assert!(took > ms(5_000));
}

#[test]
fn capture_02_the_accepting_side_first_sees_the_caller_down() {
    let mut world = World::fresh(Pacing::observed(), 1);
    world.pass(ms(300));
    world.mesh.connect(world.nodes[0], &[target(1)], &fake_garage::mesh::connect::Nowhere);
    world.pass(ms(20));
    assert!(world.sees_up(0, 1) && !world.sees_up(1, 0));
    assert!(world.mesh.node(world.nodes[1]).peers().contains_key(&id(0)), "but it has heard of it");
    world.wait_until(ms(1_100), |mesh| {
        sees_up(mesh, NodeIndex::clone(&mesh.find("east/ns/garage-1").unwrap()), 0)
    });
}

#[test]
fn a_staged_change_reaches_the_others_within_milliseconds() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.stage(0, &[(0, 50)]);
    world.pass(ms(20));
    let digests: Vec<_> =
        world.mesh.nodes().map(|(_, node)| node.layout().history().staging.digest()).collect();
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
}

#[rstest]
#[case::fast(Pacing::fast(), 300)]
#[case::observed(Pacing::observed(), 3_000)]
fn an_applied_version_drains_and_retires_everywhere(#[case] pacing: Pacing, #[case] within: u64) {
    let mut world = World::with_layout(pacing, 1);
    world.apply(2, 2).unwrap();
    world.wait_until(ms(within), |mesh| {
        mesh.nodes().all(|(_, node)| {
            let history = node.layout().history();
            history.live().len() == 1 && history.current().number == 2
        })
    });
}

#[rstest]
#[case::fast(Pacing::fast())]
#[case::observed(Pacing::observed())]
fn the_same_seed_and_calls_give_the_same_history(#[case] pacing: Pacing) {
    let history = |seed| {
        let mut world = World::with_layout(pacing.clone(), seed);
        world.stage(0, &[(0, 50)]);
        world.stage(2, &[(2, 70)]);
        world.apply(0, 2).unwrap();
        world.pass(ms(37));
        world.mesh.kill(world.nodes[3]);
        world.pass(ms(30_000));
        world.mesh.start(world.nodes[3]);
        world.pass(ms(30_000));
        let digests: Vec<_> = world.mesh.nodes().map(|(_, node)| node.layout_digest().clone()).collect();
        (format!("{:?}", world.told), digests)
    };
    assert_eq!(history(7), history(7));
}

#[test]
fn an_idle_mesh_does_little() {
    let mut world = World::with_layout(Pacing::fast(), 1);
    world.pass(ms(5_000));
    let mut events = 0;
    let until = world.mesh.now() + ms(1_000);
    while world.mesh.step(until) {
        events += 1;
    }
    assert!(events < 200, "{events} events in a second of an idle mesh of four nodes");
}
