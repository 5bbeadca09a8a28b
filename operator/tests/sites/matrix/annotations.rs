//! Rows about operations that annotations ask for.

use harness::site::Site::East;
use kube::api::DynamicObject;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::row;
use crate::stage::cases::{FIRST, SECOND};
use crate::stage::garage::role as given;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    [
        row("revert-layout", &Role::ALL, revert_layout),
        row("skip-dead-nodes", &Role::ALL, skip_dead_nodes),
        row("purge-cluster-layout", &Role::ALL, purge_of_a_federated_cluster),
        row("revert-layout-with-another-value", &[Role::Writer], another_value),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Waits until the annotation is gone, and returns the cluster as it is then.
async fn consumed(scene: &Scene, key: &str) -> DynamicObject {
    let key = format!("garage.rajsingh.info/{key}");
    let awaited = format!("end of annotation {key}");
    scene
        .until_cluster(East, &awaited, |cluster| {
            let annotations = cluster.and_then(|cluster| cluster.metadata.annotations.as_ref());
            let still = annotations.and_then(|annotations| annotations.get(&key));
            still.map_or(Ok(()), |value| Err(format!("{key} is {value}")))
        })
        .await
}

/// What a Follower does with every operation, and that a later promotion does not bring it back.
async fn assert_refused(scene: &Scene, key: &str, kind: &str, path: &str) {
    let cluster = consumed(scene, key).await;
    let last = &cluster.data["status"]["lastOperation"];
    assert_eq!((&last["type"], &last["succeeded"]), (&json!(kind), &json!(false)), "{last}");
    let told =
        scene.events(East).await.into_iter().filter(|(reason, _)| reason == "LayoutWriteBlocked").count();
    assert_eq!(told, 1, "one event");
    scene.assert_never_wrote(East);
    scene.assign(East, "Writer").await;
    scene.until_condition(East, "LayoutWriter", "True", "WriterSite").await;
    scene.until_running(East, &[FIRST, SECOND]).await;
    let late = scene.written(East).into_iter().filter(|written| written == path).count();
    assert_eq!(late, 0, "a refused {kind} fires after a promotion");
}

async fn revert_layout(scene: Scene, role: Role) {
    scene.with_layout(East, role, &[]).await;
    scene.stage(East, FIRST, json!([given(&"ab".repeat(32), "north")])).await;
    let before = scene.writes(East).len();

    scene.annotate(East, "revert-layout", "true").await;

    if role == Role::Follower {
        return assert_refused(&scene, "revert-layout", "RevertLayout", "RevertClusterLayout").await;
    }
    let cluster = consumed(&scene, "revert-layout").await;
    let last = &cluster.data["status"]["lastOperation"];
    assert_eq!((&last["type"], &last["succeeded"]), (&json!("RevertLayout"), &json!(true)), "{last}");
    assert_eq!(scene.written(East)[before..], ["RevertClusterLayout"]);
    assert_eq!(scene.layout(East, FIRST).await["stagedRoleChanges"], json!([]));
}

async fn another_value(scene: Scene, role: Role) {
    scene.with_layout(East, role, &[]).await;
    let before = scene.writes(East).len();

    scene.annotate(East, "revert-layout", "yes").await;

    let cluster = consumed(&scene, "revert-layout").await;
    let last = &cluster.data["status"]["lastOperation"];
    assert_eq!(last["succeeded"], false);
    assert!(last["error"].as_str().unwrap().contains("\"yes\""), "{last}");
    assert_eq!(scene.writes(East).len(), before);
}

/// There is nothing to skip, which Garage answers with 400: that counts as done.
async fn skip_dead_nodes(scene: Scene, role: Role) {
    scene.with_layout(East, role, &[]).await;
    let before = scene.writes(East).len();

    let annotations = json!({
        "garage.rajsingh.info/skip-dead-nodes": "",
        "garage.rajsingh.info/allow-missing-data": "true",
    });
    scene.patch_cluster(East, json!({"metadata": {"annotations": annotations}})).await.unwrap();

    if role == Role::Follower {
        let path = "ClusterLayoutSkipDeadNodes";
        return assert_refused(&scene, "skip-dead-nodes", "SkipDeadNodes", path).await;
    }
    let cluster = consumed(&scene, "skip-dead-nodes").await;
    let left = cluster.metadata.annotations.unwrap_or_default();
    assert!(!left.contains_key("garage.rajsingh.info/allow-missing-data"), "{left:?}");
    let own = scene.writes(East).split_off(before);
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(own[0].path, "ClusterLayoutSkipDeadNodes");
    assert_eq!(own[0].body, json!({"version": 1, "allowMissingData": true}));
    assert_eq!(cluster.data["status"].get("lastOperation"), None::<&Value>);
}

/// Any remote site refuses a factor migration; the annotation goes all the same.
async fn purge_of_a_federated_cluster(scene: Scene, role: Role) {
    scene.with_layout(East, role, &[]).await;
    let before = scene.calls_of_all().len();

    scene.annotate(East, "purge-cluster-layout", "factor=1").await;

    let cluster = consumed(&scene, "purge-cluster-layout").await;
    let last = cluster.data["status"]["lastOperation"].clone();
    assert_eq!(last["succeeded"], false, "{last}");
    if role == Role::Follower {
        let told = scene.events(East).await;
        assert!(told.iter().any(|(reason, _)| reason == "LayoutWriteBlocked"), "{told:?}");
    }
    scene.until_running(East, &[FIRST, SECOND]).await;
    assert_eq!(scene.calls_of_all().len(), before, "no layout write");
}
