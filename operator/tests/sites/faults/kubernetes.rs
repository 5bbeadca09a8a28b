//! Faults of the Kubernetes side. What would disturb other tests has a pair of its own.

use harness::site::Site::East;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::json;

use crate::stage::cases::{FIRST, SECOND, THIRD};
use crate::stage::trial::{private_trial, trial};
use crate::stage::{Pair, Role, Scene};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("faults/kubernetes/conflicts", conflicts),
        trial("faults/kubernetes/operator-killed-and-replaced", replaced),
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
