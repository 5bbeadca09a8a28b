//! A layout that others touch, and nodes that are not who they were.

use harness::garage::objects::condition;
use harness::site::Site::East;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::stage::cases::{FIRST, SECOND, THIRD};
use crate::stage::garage::{removal, role};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("faults/layout/foreign-staged-entries", foreign_entries),
        trial("faults/layout/own-entries-staged-before-a-crash", own_entries),
        trial("faults/layout/identity-changes", identity_changes),
        trial("faults/layout/identity-freed/writer", |scene| identity_freed(scene, Role::Writer)),
        trial("faults/layout/identity-freed/follower", |scene| identity_freed(scene, Role::Follower)),
        trial("faults/layout/identity-claimed-twice", identity_twice),
        trial("faults/layout/partition-within-a-site", partition),
    ]
}

/// What this operator did not stage it neither applies nor takes away; it says so, and goes on once it is gone.
async fn foreign_entries(scene: Scene) {
    let operator = scene.with_layout(East, Role::Writer, &[]).await;
    let foreign = "ab".repeat(32);
    scene.stage(East, FIRST, json!([role(&foreign, "north")])).await;
    let written = scene.writes(East).len();

    scene.scale(East, 3).await;

    let node = scene.until_node_condition(East, THIRD, "Ready", "False", "NotInLayout").await;
    scene
        .eventually("a message about the foreign entry", async || {
            let node = scene.nodes(East).get(THIRD).await.unwrap();
            let words = harness::garage::objects::conditions_in_words(&node);
            (words.contains("did not stage") && words.contains(&foreign)).then_some(())
        })
        .await;
    assert_eq!(node.data["status"]["phase"], "Pending");
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.writes(East).len(), written, "nothing is written around somebody else's changes");
    let reverted = scene.ask(East, FIRST, Method::POST, "RevertClusterLayout", &Value::Null).await;
    assert_eq!(reverted.0, 200, "{}", reverted.1);
    scene.until_running(East, &[THIRD]).await;
    assert!(!scene.writes(East).iter().any(|call| call.body.to_string().contains(&foreign)));
}

/// Exactly what it wants is staged already, as after a crash between Update and Apply: it only applies.
async fn own_entries(scene: Scene) {
    let operator = scene.operator(East, &[]).await;
    scene.create_cluster(East, scene.cluster(East, Role::Follower)).await;
    for name in [FIRST, SECOND] {
        scene.until_identity(East, name).await;
    }
    operator.stop().await;
    let uid = scene.the_cluster(East).await.metadata.uid.unwrap();
    let namespace = scene.namespace();
    let mut roles = Vec::new();
    for name in [FIRST, SECOND] {
        let mut own = role(&scene.node_id(East, name).await, "east");
        own["tags"] = json!([
            format!("cluster:garage/{namespace}"),
            format!("cluster-uid:{uid}"),
            "tier:storage",
            format!("{name}-0"),
        ]);
        roles.push(own);
    }
    scene.stage(East, FIRST, Value::Array(roles)).await;

    scene.assign(East, "Writer").await;
    scene.operator(East, &[]).await;

    scene.until_running(East, &[FIRST, SECOND]).await;
    assert_eq!(scene.written(East), ["ApplyClusterLayout"]);
}

/// The second node loses its metadata and comes back as somebody else; answers its old identity.
async fn lose_metadata(scene: &Scene) -> String {
    let old = scene.node_id(East, SECOND).await;
    let node = format!("east/{}/{SECOND}-0", scene.namespace());
    scene.fault(json!({"action": "wipe", "node": node})).await;
    let pods: Api<Pod> = Api::namespaced(scene.client(East), scene.namespace());
    pods.delete(&format!("{SECOND}-0"), &DeleteParams::default()).await.unwrap();
    let node = scene.until_node_condition(East, SECOND, "Ready", "False", "IdentityChanged").await;
    assert_eq!(node.data["status"]["phase"], "Failed");
    assert_eq!(node.data["status"]["nodeId"], json!(old), "the identity that has the role stays recorded");
    old
}

async fn acknowledge(scene: &Scene, id: &str) {
    let annotations = json!({"garage.rajsingh.info/acknowledge-lost-source": id});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    scene.nodes(East).patch(SECOND, &PatchParams::default(), &patch).await.unwrap();
}

/// Its data may be lost: nothing is given to the new identity or taken from the old one, until a person says that the old
/// one is lost. Then one version has the new one in the place of the old one.
async fn identity_changes(scene: Scene) {
    let operator = scene.with_layout(East, Role::Writer, &[]).await;
    let before = scene.writes(East).len();
    let old = lose_metadata(&scene).await;
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.writes(East).len(), before);
    acknowledge(&scene, &"cd".repeat(32)).await;
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.writes(East).len(), before, "another identity was acknowledged");

    acknowledge(&scene, &old).await;

    scene.until_running(East, &[FIRST, SECOND]).await;
    let new = scene.node_id(East, SECOND).await;
    assert_ne!(new, old);
    scene.after_two_more_looks(East, &operator).await;
    scene.assert_applied_once(East, before, &[old.clone(), new]);
    let layout = scene.layout(East, FIRST).await;
    assert!(layout["roles"].as_array().unwrap().iter().all(|role| role["id"] != json!(old)), "{layout}");
    let annotations = scene.nodes(East).get(SECOND).await.unwrap().metadata.annotations.unwrap_or_default();
    assert!(!annotations.keys().any(|key| key.ends_with("acknowledge-lost-source")), "{annotations:?}");
}

/// Where somebody else has removed the old role, nothing is left to be acknowledged.
async fn identity_freed(scene: Scene, role: Role) {
    let operator = scene.with_layout_of(East, role, &[], scene.three_nodes(East, role)).await;
    let old = lose_metadata(&scene).await;
    if role == Role::Follower {
        scene.until_condition(East, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await;
        acknowledge(&scene, &old).await;
        scene.after_two_more_looks(East, &operator).await;
        scene.assert_never_wrote(East);
    }

    scene.apply(East, FIRST, json!([removal(&old)])).await;

    if role == Role::Follower {
        scene
            .eventually("the new identity", async || (scene.node_id(East, SECOND).await != old).then_some(()))
            .await;
        scene.until_condition(East, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;
        return scene.assert_never_wrote(East);
    }
    scene
        .eventually("the new identity", async || (scene.node_id(East, SECOND).await != old).then_some(()))
        .await;
    // The dead node never syncs the version without it.
    let annotations = json!({
        "garage.rajsingh.info/skip-dead-nodes": "",
        "garage.rajsingh.info/allow-missing-data": "true",
    });
    scene.patch_cluster(East, json!({"metadata": {"annotations": annotations}})).await.unwrap();
    scene.until_running(East, &[FIRST, SECOND, THIRD]).await;
}

/// Two declarations of one identity: nobody can say which is right, and neither is written.
async fn identity_twice(scene: Scene) {
    let operator = scene.with_layout(East, Role::Writer, &[]).await;
    let before = scene.writes(East).len();
    for name in ["one", "two"] {
        scene.create_node(East, crate::stage::manifest::external(name, "west", &"cd".repeat(32))).await;
    }
    for name in ["one", "two"] {
        let node = scene.until_node_condition(East, name, "Ready", "False", "IdentityCollision").await;
        assert_eq!(condition(&node, "Ready"), Some(("False", "IdentityCollision")));
    }
    scene.after_two_more_looks(East, &operator).await;
    // The first may have had its role before the second was there.
    let collided = scene.writes(East).split_off(before);
    assert!(collided.len() <= 2, "{collided:?}");
}

/// Two nodes of a site that do not see each other: no layout is made of them until they do.
async fn partition(scene: Scene) {
    let operator = scene.operator(East, &[]).await;
    scene.create_cluster(East, scene.cluster(East, Role::Follower)).await;
    for name in [FIRST, SECOND] {
        scene.until_identity(East, name).await;
    }
    let names = [FIRST, SECOND].map(|name| format!("east/{}/{name}-0", scene.namespace()));
    let between = json!([[names[0]], [names[1]]]);
    let mesh = scene.mesh().name.clone();
    scene.fault(json!({"action": "partition", "mesh": mesh, "between": between, "kind": "reset"})).await;

    scene.assign(East, "Writer").await;

    scene
        .eventually("a message about the connection", async || {
            let node = scene.nodes(East).get(FIRST).await.unwrap();
            harness::garage::objects::conditions_in_words(&node)
                .contains("is not connected yet")
                .then_some(())
        })
        .await;
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.written(East), [] as [&str; 0]);
    scene.fault(json!({"action": "heal", "mesh": mesh})).await;
    scene.until_running(East, &[FIRST, SECOND]).await;
    scene.assert_first_layout(East).await;
}
