//! The same seed and the same calls give the same history, byte for byte.

use fake_garage::mesh::Pacing;
use rstest::rstest;
use serde_json::{Value, json};

use crate::world::*;

/// A session in which every kind of fault and every kind of rule has its turn.
async fn session(addresses: Addresses, pacing: Pacing, seed: u64) -> String {
    let world = World::of(addresses, pacing, seed).await;
    links_and_clocks(&world).await;
    rules(&world).await;
    processes(&world).await;
    world.finish().await
}

async fn links_and_clocks(world: &World) {
    let slow = json!({"action": "slow", "mesh": "mesh", "from": ["east"], "to": ["west"], "latencyMs": 5, "jitterMs": 90, "lossPerMille": 100});
    let slow = world.fault(slow).await;
    let hold = json!({"action": "hold-trackers", "node": NODES[3], "trackers": ["sync"], "expiresMs": 4_000});
    let hold = world.fault(hold).await;
    let clock = world.fault(json!({"action": "clock", "node": NODES[2], "offsetMs": 60_000})).await;
    race(world, 2).await;
    let info = format!("/v2/GetNodeInfo?node={}", "*");
    world.get(0, &info).await;
    pass(6_000).await;
    drop((slow, hold, clock));
    let cut = json!({"action": "partition", "mesh": "mesh", "between": [["east"], [NODES[2]]], "kind": "silent", "expiresMs": 3_000});
    let cut = world.fault(cut).await;
    stage(world, 2, 7).await;
    pass(5_000).await;
    cut.heal().await.unwrap_err();
}

/// Both sites stage and apply at the same moment.
async fn race(world: &World, version: u64) {
    let apply = |node| world.call(node, "POST", "/v2/ApplyClusterLayout", json!({ "version": version }));
    tokio::join!(stage(world, 0, 3), stage(world, 2, 5));
    let ((first, _), (second, _)) = tokio::join!(apply(0), apply(2));
    assert!([200, 500].contains(&first) && [200, 500].contains(&second));
}

async fn stage(world: &World, node: usize, gigabytes: u64) {
    let id = &world.state(node)["nodeId"];
    let change =
        json!([{"id": id, "zone": &NODES[node][..4], "capacity": gigabytes * 1_000_000_000, "tags": []}]);
    world.ok(node, "POST", "/v2/UpdateClusterLayout", json!({ "roles": change })).await;
}

async fn rules(world: &World) {
    let rule = |effect: Value| {
        let path = json!({"path": "/v2/GetClusterStatus"});
        world.hub().rule(read(json!({"match": path, "effect": effect, "expiresMs": 20_000})))
    };
    let status = || world.call(0, "GET", "/v2/GetClusterStatus", Value::Null);
    let answer = rule(json!({"kind": "answer", "status": 503, "body": {"code": "Busy"}, "perform": true}));
    assert_eq!(status().await.0, 503);
    let delay = rule(json!({"kind": "delay", "ms": 150}));
    assert_eq!(status().await.0, 200);
    let drops = rule(json!({"kind": "drop"}));
    assert_eq!(status().await.0, 0);
    let hold = rule(json!({"kind": "hold"}));
    let ((held, _), ()) = tokio::join!(status(), async {
        pass(200).await;
        hold.release();
    });
    assert_eq!(held, 200);
    let lose = json!({"match": {"path": "/v2/ApplyClusterLayout"}, "effect": {"kind": "lose-race"}});
    let lose = world.hub().rule(read(lose));
    stage(world, 1, 9).await;
    let next = world.state(1)["layoutVersion"].as_u64().unwrap() + 1;
    world.ok(1, "POST", "/v2/ApplyClusterLayout", json!({ "version": next })).await;
    drop((answer, delay, drops, hold, lose));
}

async fn processes(world: &World) {
    let node = |action: &str, node: usize| json!({"action": action, "node": NODES[node]});
    let frozen = world.fault(node("freeze", 1)).await;
    let (answer, ()) = tokio::join!(world.call(1, "GET", "/v2/GetClusterHealth", Value::Null), async {
        pass(700).await;
        drop(frozen);
    });
    assert_eq!(answer.0, 200);
    let mut kill = node("kill", 3);
    kill["lose"] = "layout-file".into();
    let killed = world.fault(kill).await;
    pass(2_000).await;
    killed.heal().await.unwrap();
    pass(12_000).await;
    world.fault(node("restart", 2)).await.keep();
    world.fault(node("wipe", 0)).await.keep();
    pass(3_000).await;
    world.fault(json!({"action": "purge", "mesh": "mesh"})).await.keep();
    pass(3_000).await;
}

#[rstest]
#[case::fast(Pacing::fast())]
#[case::observed(Pacing::observed())]
#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_history_byte_for_byte(#[case] pacing: Pacing) {
    let addresses = Addresses::new();
    let first = session(addresses, pacing.clone(), 7).await;
    let again = session(addresses, pacing.clone(), 7).await;
    let difference = first.lines().zip(again.lines()).find(|(one, other)| one != other);
    assert_eq!(difference, None);
    assert!(first == again, "one is longer");
    let other = session(addresses, pacing, 8).await;
    assert!(first != other, "chance has a part in it");
    for action in
        ["slow", "hold-trackers", "clock", "partition", "freeze", "kill", "restart", "wipe", "purge", "rule"]
    {
        assert!(faults(&first).iter().any(|fault| fault.action == action), "{action} is not in the history");
    }
}
