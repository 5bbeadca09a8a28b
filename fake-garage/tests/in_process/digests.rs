//! Digests in the history: the same content, the same digest.

use std::collections::BTreeSet;

use onewriter_history::{Event, LayoutEventName};
use serde_json::{Value, json};

use crate::world::*;

fn change(world: &World, node: usize, gigabytes: u64) -> Value {
    let id = &world.state(node)["nodeId"];
    json!({"roles": [{"id": id, "zone": &NODES[node][..4], "capacity": gigabytes * 1_000_000_000, "tags": []}]})
}

#[tokio::test(start_paused = true)]
async fn every_node_tells_the_same_digest_of_the_same_version() {
    let world = World::with_layout().await;
    let held: BTreeSet<_> = (0..4).map(|node| world.state(node)["versionDigest"].to_string()).collect();
    let history = world.finish().await;
    let events = layout_events(&history);
    let of_version_1 = events.iter().filter(|event| event.to == 1 && event.from == 0);
    let told: BTreeSet<_> = of_version_1.clone().map(|event| format!("{:?}", event.content)).collect();
    assert_eq!(of_version_1.count(), 4, "one node applied it and three took it");
    assert_eq!(told, held);
}

#[tokio::test(start_paused = true)]
async fn capture_08_two_contents_of_one_version_have_two_digests_and_a_conflict_names_both() {
    let world = World::with_layout().await;
    let cut =
        json!({"action": "partition", "mesh": "mesh", "between": [["east"], ["west"]], "kind": "reset"});
    let cut = world.fault(cut).await;
    for node in [0, 2] {
        world.ok(node, "POST", "/v2/UpdateClusterLayout", change(&world, node, 5)).await;
        world.ok(node, "POST", "/v2/ApplyClusterLayout", json!({"version": 2})).await;
    }
    pass(1_000).await;
    cut.heal().await.unwrap();
    pass(3_000).await;
    world.ok(0, "POST", "/v2/UpdateClusterLayout", change(&world, 1, 7)).await;
    pass(1_000).await;
    let history = world.finish().await;
    let events = layout_events(&history);
    let contents = |event: LayoutEventName, site: &str| {
        let meant = events.iter().filter(move |e| e.event == event && e.to == 2 && e.node.starts_with(site));
        meant.map(|e| (e.content.clone(), e.other_content.clone())).collect::<BTreeSet<_>>()
    };
    let (east, _) = contents(LayoutEventName::Applied, "east").pop_first().unwrap();
    let (west, _) = contents(LayoutEventName::Applied, "west").pop_first().unwrap();
    assert_ne!(east, west);
    assert_eq!(contents(LayoutEventName::Merged, "east"), [(east.clone(), None)].into());
    assert_eq!(contents(LayoutEventName::Conflict, "west"), [(west, Some(east))].into());
}

#[tokio::test(start_paused = true)]
async fn capture_23_a_version_that_is_dropped_after_a_200_is_told_with_what_stays() {
    let world = World::with_layout().await;
    let lose = json!({"match": {"path": "/v2/ApplyClusterLayout"}, "effect": {"kind": "lose-race"}});
    let rule = world.hub().rule(read(lose));
    world.ok(0, "POST", "/v2/UpdateClusterLayout", change(&world, 0, 5)).await;
    world.ok(0, "POST", "/v2/ApplyClusterLayout", json!({"version": 2})).await;
    drop(rule);
    let held = world.state(0)["versionDigest"].as_str().unwrap().to_owned();
    let history = world.finish().await;
    let events = layout_events(&history);
    let dropped = events.iter().find(|event| event.event == LayoutEventName::Dropped).unwrap();
    assert_eq!((dropped.to, &dropped.content), (2, &held));
    assert!(dropped.other_content.as_ref().is_some_and(|other| *other != held));
}

#[tokio::test(start_paused = true)]
async fn a_call_carries_the_digest_of_the_answering_node_before_and_after() {
    let world = World::with_layout().await;
    let digest = |node: usize| world.state(node)["layoutDigest"].as_str().unwrap().to_owned();
    let before = digest(2);
    world.ok(2, "POST", "/v2/UpdateClusterLayout", change(&world, 2, 5)).await;
    let after = digest(2);
    world.get(2, "/v2/GetClusterLayout").await;
    let history = world.finish().await;
    let calls = records(&history).into_iter().rev().filter_map(|record| match record.event {
        Event::CallBegin(begin) => Some(begin.layout_digest),
        Event::CallEnd(end) => Some(end.layout_digest),
        _ => None,
    });
    let last: Vec<_> = calls.take(4).collect();
    assert_ne!(before, after);
    assert_eq!(last, [after.clone(), after.clone(), after, before], "from the end backwards");
}

#[tokio::test(start_paused = true)]
async fn a_purge_begins_a_new_incarnation_at_version_0_on_every_node() {
    let world = World::with_layout().await;
    let guard = world.fault(json!({"action": "purge", "mesh": "mesh"})).await;
    assert_eq!(guard.id(), None, "it is over at once");
    let states: Vec<_> = (0..4).map(|node| world.state(node)).collect();
    assert!(
        states.iter().all(|node| node["layoutVersion"] == 0 && node["incarnation"] == 1),
        "{}",
        world.table()
    );
    assert_eq!(world.get(0, "/v2/GetClusterLayout").await["version"], 0);
    pass(30_000).await;
    assert_eq!(world.state(3)["layoutVersion"], 0, "nobody has the layout to give it back");
    let history = world.finish().await;
    let events = layout_events(&history);
    let reset = events.iter().filter(|event| event.event == LayoutEventName::Reset);
    let reset: Vec<_> = reset.map(|event| (event.from, event.to, event.incarnation)).collect();
    assert_eq!(reset, [(1, 0, 1); 4]);
}
