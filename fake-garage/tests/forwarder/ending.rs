//! A pod's process and its node end together.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::world::{PodProcess, World};

#[tokio::test]
async fn sigterm_ends_both_within_a_second_and_leaves_the_files() {
    let world = World::new();
    let _hub = world.hub().await;
    let mut pod = world.running_pod().await;
    let id = world.node().await["nodeId"].clone();
    let asked = Instant::now();
    pod.signal(Signal::TERM);
    assert_eq!(pod.end().await.code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(1), "it took {:?}", asked.elapsed());
    world.process_event("stopped").await;
    let _next = world.running_pod().await;
    assert_eq!(world.node().await["nodeId"], id, "the next process of the pod is the same node");
}

#[tokio::test]
async fn sigterm_while_waiting_for_the_hub_ends_the_pod_within_a_second() {
    let world = World::new();
    let mut pod = world.pod();
    pod.until_it_says("waiting for the hub").await;
    let asked = Instant::now();
    pod.signal(Signal::TERM);
    assert_eq!(pod.end().await.code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(1), "it took {:?}", asked.elapsed());
}

#[tokio::test]
async fn a_pod_killed_without_a_word_takes_its_node_with_it() {
    let world = World::new();
    let _hub = world.hub().await;
    let mut pod = world.running_pod().await;
    pod.signal(Signal::KILL);
    assert_eq!(pod.end().await.signal(), Some(9));
    world.process_event("killed").await;
}

#[tokio::test]
async fn a_node_that_a_fault_kills_takes_its_pod_with_it() {
    let world = World::new();
    let _hub = world.hub().await;
    let mut pod = world.running_pod().await;
    let kill = json!({"action": "kill", "node": "east/ns/garage-0"});
    assert_eq!(world.control("POST", "/faults", kill).await.0, 200);
    assert_eq!(pod.end().await.code(), Some(137));
    let _next = world.running_pod().await;
    assert_eq!(world.node().await["process"], "running");
}

#[tokio::test]
async fn a_node_that_a_fault_restarts_restarts_its_pod() {
    let world = World::new();
    let _hub = world.hub().await;
    let mut pod = world.running_pod().await;
    let restart = json!({"action": "restart", "node": "east/ns/garage-0"});
    assert_eq!(world.control("POST", "/faults", restart).await.0, 200);
    assert_eq!(pod.end().await.code(), Some(137));
    assert_eq!(world.node().await["process"], "running", "the hub did not wait for the pod");
    let _next = world.running_pod().await;
    assert_eq!(world.admin("/v2/GetClusterHealth").await.unwrap().0, 200);
}

#[tokio::test]
async fn another_factor_than_the_stored_layouts_exits_with_1_as_garage_does() {
    let world = World::new();
    let _hub = world.hub().await;
    let mut pod = world.running_pod().await;
    let id = world.node().await["nodeId"].clone();
    let url = |path: &str| format!("http://{}/v2/{path}", world.pod_address());
    let roles = json!({"roles": [{"id": id, "zone": "east", "capacity": 10_000_000, "tags": []}]});
    for (path, body) in [("UpdateClusterLayout", roles), ("ApplyClusterLayout", json!({"version": 1}))] {
        let answer = world.http.post(url(path)).bearer_auth("t").json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    pod.signal(Signal::TERM);
    pod.end().await;
    let environment = world.environment();
    world.configuration(2);
    let mut pod = PodProcess::spawn(&["server"], &environment);
    assert_eq!(pod.end().await.code(), Some(1), "{}", pod.said);
}

#[tokio::test]
async fn a_hub_that_dies_ends_the_pod_with_1() {
    let world = World::new();
    let hub = world.hub().await;
    let mut pod = world.running_pod().await;
    hub.kill().await;
    assert_eq!(pod.end().await.code(), Some(1));
    assert!(pod.said.contains("is gone, and the node east/ns/garage-0 with it"), "{}", pod.said);
}
