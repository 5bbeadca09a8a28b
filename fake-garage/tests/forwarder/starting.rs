//! How a pod's process finds its hub.

use rustix::process::Signal;
use serde_json::json;

use crate::world::{PodProcess, World};

#[tokio::test]
async fn a_pod_waits_for_a_hub_that_is_not_there_yet_and_says_so() {
    let world = World::new();
    let mut pod = world.pod();
    pod.until_it_says("waiting for the hub").await;
    let _hub = world.hub().await;
    pod.until_it_says("node started").await;
    assert_eq!(world.node().await["process"], "running");
    assert!(!pod.said.contains('\u{1b}'), "what is no terminal gets no colours: {:?}", pod.said);
}

#[tokio::test]
async fn a_pod_passes_the_purge_of_its_layout_on_and_each_is_done_once() {
    let world = World::new();
    let _hub = world.hub().await;
    let mut environment = world.environment();
    let mut incarnations = Vec::new();
    for purge in ["factor-3", "factor-3", "factor-5"] {
        environment.insert("GARAGE_LAYOUT_PURGE".to_owned(), purge.to_owned());
        let mut pod = PodProcess::spawn(&["server"], &environment);
        pod.until_it_says("node started").await;
        let id = world.node().await["nodeId"].as_str().unwrap().to_owned();
        let stage = json!({"roles": [{"id": id, "zone": "z", "capacity": 1 << 30, "tags": []}]});
        assert_eq!(world.post("/v2/UpdateClusterLayout", &stage).await, 200);
        incarnations.push(world.node().await["incarnation"].as_u64().unwrap());
        pod.signal(Signal::TERM);
        assert_eq!(pod.end().await.code(), Some(0));
    }
    assert_eq!(
        incarnations,
        [0, 0, 1],
        "the file of the second process was there, and its purge was done before"
    );
}

#[tokio::test]
async fn a_pod_waits_for_its_mesh_to_be_registered() {
    let world = World::new();
    let _hub = world.bare_hub().await;
    let mut pod = world.pod();
    pod.until_it_says("no mesh has the node's rpc secret").await;
    world.mesh().await;
    pod.until_it_says("node started").await;
}

#[tokio::test]
async fn a_hub_that_never_comes_ends_the_pod_with_96() {
    let world = World::new();
    let mut environment = world.environment();
    environment.insert("ONEWRITER_HUB_PATIENCE".to_owned(), "0".to_owned());
    let mut pod = PodProcess::spawn(&["server"], &environment);
    assert_eq!(pod.end().await.code(), Some(96));
    assert!(pod.said.contains("did not start the node east/ns/garage-0 within 0 s"), "{}", pod.said);
    assert!(pod.said.contains("because: Connection refused"), "{}", pod.said);
}

#[tokio::test]
async fn a_wrong_control_token_ends_the_pod_with_96() {
    let world = World::new();
    let _hub = world.hub().await;
    let mut environment = world.environment();
    environment.remove("ONEWRITER_HUB_TOKEN_FILE");
    environment.insert("ONEWRITER_HUB_TOKEN".to_owned(), "another".to_owned());
    let mut pod = PodProcess::spawn(&["server"], &environment);
    assert_eq!(pod.end().await.code(), Some(96));
    assert!(pod.said.contains("does not take the control token"), "{}", pod.said);
}
