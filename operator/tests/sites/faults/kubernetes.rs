//! Faults of the Kubernetes side. What would disturb other tests has a pair of its own.

use std::time::Duration;

use harness::site::Site::East;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::json;

use crate::stage::cases::{FIRST, SECOND, THIRD};
use crate::stage::operator::Operator;
use crate::stage::relay::{Refusal, Relay};
use crate::stage::trial::{private_trial, trial};
use crate::stage::{Pair, Role, Scene};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("faults/kubernetes/conflicts", conflicts),
        trial("faults/kubernetes/operator-killed-and-replaced", replaced),
        trial("faults/kubernetes/watches-expire", watches_expire),
        trial("faults/kubernetes/watches-end-by-time", watches_end),
        trial("faults/kubernetes/writes-meet-conflicts", |scene| refused(scene, Refusal::Conflict)),
        trial("faults/kubernetes/writes-are-throttled", |scene| refused(scene, Refusal::Throttled)),
        private_trial("faults/kubernetes/api-server-restarts", api_server_restarts),
        private_trial("faults/kubernetes/events-forbidden", events_forbidden),
    ]
}

/// Somebody edits all objects all the time.
async fn conflicts(scene: Scene) {
    scene.operator(East, &[]).await;
    scene.create_cluster(East, scene.cluster(East, Role::Writer)).await;
    let editing = async {
        for number in 0.. {
            scene.poke(East, number).await;
        }
    };
    tokio::select! {
        () = editing => unreachable!("it edits for ever"),
        () = scene.until_running(East, &[FIRST, SECOND]) => {}
    }
    scene.assert_first_layout(East).await;
}

/// A second operator takes over where a killed one stopped.
async fn replaced(scene: Scene) {
    let first = scene.with_layout(East, Role::Writer, &[]).await;
    scene.scale(East, 3).await;
    first.kill().await;

    scene.operator(East, &[]).await;

    scene.until_running(East, &[FIRST, SECOND, THIRD]).await;
    let applied = scene.written(East).into_iter().filter(|path| path == "ApplyClusterLayout").count();
    assert_eq!(applied, 2, "one for the first layout, one for the third node");
}

/// An operator at east that goes through a relay, with the usual layout. What no watch tells it, it does not notice for
/// minutes.
async fn relayed(scene: &Scene) -> (Relay, Operator) {
    let relay = Relay::start(scene, East).await;
    let operator = scene.with_layout(East, Role::Writer, &[&relay.option()]).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    (relay, operator)
}

/// Asserts that the third node got its role by one Update and one Apply after the first `before` writes.
async fn assert_third_node(scene: &Scene, operator: &Operator, before: usize) {
    scene.until_running(East, &[FIRST, SECOND, THIRD]).await;
    scene.after_two_more_looks(East, operator).await;
    scene.assert_applied_once(East, before, &[scene.node_id(East, THIRD).await]);
}

/// Every watch ends, and what it would go on from is gone: everything is listed again, and nothing is missed.
async fn watches_expire(scene: Scene) {
    let (relay, operator) = relayed(&scene).await;
    let written = scene.writes(East).len();

    relay.expire_watches(11);
    scene.scale(East, 3).await;

    assert_third_node(&scene, &operator, written).await;
    scene.eventually("an end of the refusals", async || (relay.left() == 0).then_some(())).await;
}

/// Watches end again and again, as they do when their time is over.
async fn watches_end(scene: Scene) {
    let (relay, operator) = relayed(&scene).await;
    let written = scene.writes(East).len();
    let ending = async {
        loop {
            relay.end_watches();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };

    scene.scale(East, 3).await;

    tokio::select! {
        () = ending => unreachable!("it ends watches for ever"),
        () = scene.until_running(East, &[FIRST, SECOND, THIRD]) => {}
    }
    assert_third_node(&scene, &operator, written).await;
}

/// Many writes in a row are refused: they are made later, and once.
async fn refused(scene: Scene, refusal: Refusal) {
    let relay = Relay::start(&scene, East).await;
    let operator = scene.operator(East, &[&relay.option()]).await;
    relay.refuse(refusal, 20);

    scene.create_cluster(East, scene.cluster(East, Role::Writer)).await;

    scene.until_running(East, &[FIRST, SECOND]).await;
    assert_eq!(relay.left(), 0);
    scene.after_two_more_looks(East, &operator).await;
    scene.assert_first_layout(East).await;
    let cluster = scene.the_cluster(East).await;
    assert_ne!(cluster.data["status"]["phase"], "Failed");
}

/// Every watch breaks, and what happened meanwhile is caught up with; nothing is written twice.
async fn api_server_restarts(scene: Scene, pair: Pair) {
    let operator = scene.with_layout(East, Role::Writer, &[]).await;
    let written = scene.writes(East).len();

    pair.request(json!({"restart": "east"})).await;

    scene.eventually("an API server", async || scene.clusters(East).get("garage").await.ok().map(drop)).await;
    scene.scale(East, 3).await;
    scene.until_running(East, &[FIRST, SECOND, THIRD]).await;
    scene.after_two_more_looks(East, &operator).await;
    let own = scene.writes(East).split_off(written);
    let paths: Vec<&str> = own.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["UpdateClusterLayout", "ApplyClusterLayout"]);
}

/// Without the permission to create events only the events are missing.
async fn events_forbidden(scene: Scene, _pair: Pair) {
    let roles: Api<ClusterRole> = Api::all(scene.client(East));
    let mut role = roles.get("garage-operator").await.unwrap();
    role.rules.as_mut().unwrap().retain(|rule| rule.resources != Some(vec!["events".to_owned()]));
    let rules = json!({ "rules": role.rules });
    roles.patch("garage-operator", &PatchParams::default(), &Patch::Merge(rules)).await.unwrap();
    scene.with_layout(East, Role::Follower, &[]).await;

    scene.annotate(East, "revert-layout", "true").await;

    scene.until_field(East, "/status/lastOperation/succeeded", &json!(false)).await;
    scene
        .until_cluster(East, "end of the annotation", |cluster| {
            let annotations = cluster.and_then(|cluster| cluster.metadata.annotations.as_ref());
            let left = annotations.is_some_and(|all| all.contains_key("garage.rajsingh.info/revert-layout"));
            if left { Err("it is still there".to_owned()) } else { Ok(()) }
        })
        .await;
    let told = scene.events(East).await;
    assert!(told.is_empty(), "{told:?}");
    scene.assert_never_wrote(East);
}
