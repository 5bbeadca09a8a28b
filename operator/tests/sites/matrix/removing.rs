//! Rows about roles that go: scale-down, drain, deletion.

use harness::garage::objects;
use harness::site::Site::{East, West};
use kube::api::{Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::json;

use super::assigning::message_of;
use super::row;
use crate::stage::cases::{FIRST, SECOND, THIRD};
use crate::stage::garage::{removal, role as given};
use crate::stage::manifest::external;
use crate::stage::objects::finalizers;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    [
        row("scale-down", &Role::ALL, scale_down),
        row("node-drain", &Role::ALL, node_drain),
        row("node-deletion", &Role::ALL, node_deletion),
        row("external-node-deletion", &Role::ALL, external_node_deletion),
        row("cluster-deletion-destroy", &Role::ALL, cluster_destroyed),
        row("cluster-deletion-drain", &Role::ALL, cluster_drained),
        row("orphaned-node", &Role::ALL, orphaned_node),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Asserts that a Follower's node waits for its role to go: everything is held, nothing is recorded as a drain.
async fn assert_held(scene: &Scene, name: &str) {
    let cluster = scene.until_condition(East, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await;
    assert!(message_of(&cluster, "AwaitingLayoutWriter").contains(name));
    let node = scene.until_node_condition(East, name, "DrainPrepared", "False", "PreparationBlocked").await;
    assert!(finalizers(&node).iter().any(|finalizer| finalizer.starts_with("garagenode.")), "{node:?}");
    assert!(scene.pod(East, name).await.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none()));
    assert_eq!(scene.the_cluster(East).await.data["status"].get("storageDrain"), None);
    assert_eq!(objects::condition(&scene.the_cluster(East).await, "Ready"), Some(("True", "ClusterReady")));
}

/// Asserts that the operator removed exactly the role of `id`, with one Update and one Apply after the first `before`.
fn assert_removed(scene: &Scene, before: usize, id: &str) {
    let own = scene.writes(East).split_off(before);
    let paths: Vec<&str> = own.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["UpdateClusterLayout", "ApplyClusterLayout"]);
    let staged = own[0].body["roles"].as_array().unwrap();
    assert_eq!(staged.len(), 1, "{staged:?}");
    assert_eq!((&staged[0]["id"], &staged[0]["remove"]), (&json!(id), &json!(true)));
}

async fn scale_down(scene: Scene, role: Role) {
    let operator = scene.with_layout_of(East, role, &[], scene.three_nodes(East, role)).await;
    let (before, id) = (scene.writes(East).len(), scene.node_id(East, THIRD).await);

    scene.scale(East, 2).await;

    if role == Role::Follower {
        assert_held(&scene, THIRD).await;
        scene.after_two_more_looks(East, &operator).await;
        assert_held(&scene, THIRD).await;
        scene.apply(East, FIRST, json!([removal(&id)])).await;
        scene.until_node_gone(East, THIRD).await;
        scene.until_pod_gone(East, THIRD).await;
        scene.until_condition(East, "AwaitingLayoutWriter", "False", "NothingPending").await;
        return scene.assert_never_wrote(East);
    }
    let drained = scene
        .until_cluster(East, "a recorded drain", |cluster| {
            let drain = cluster.map(|cluster| &cluster.data["status"]["storageDrain"]);
            drain.filter(|drain| drain["node"] == THIRD).map(drop).ok_or_else(|| format!("{drain:?}"))
        })
        .await;
    assert_eq!(drained.data["status"]["storageDrain"]["nodeId"], json!(id));
    scene.until_node_gone(East, THIRD).await;
    scene.until_pod_gone(East, THIRD).await;
    scene.until_field(East, "/status/storageDrain", &json!(null)).await;
    assert_removed(&scene, before, &id);
    let launched = scene.calls().into_iter().filter(|call| call.path == "LaunchRepairOperation").count();
    assert_eq!(launched, 3, "a block repair on every storage node and on the leaving one");
    scene.until_running(East, &[FIRST, SECOND]).await;
}

async fn node_drain(scene: Scene, role: Role) {
    let operator = scene.with_layout_of(East, role, &[], scene.three_nodes(East, role)).await;
    let (before, id) = (scene.writes(East).len(), scene.node_id(East, THIRD).await);

    let drain = json!({"metadata": {"annotations": {"garage.rajsingh.info/drain": "true"}}});
    scene.nodes(East).patch(THIRD, &PatchParams::default(), &Patch::Merge(drain)).await.unwrap();

    if role == Role::Follower {
        assert_held(&scene, THIRD).await;
        scene.after_two_more_looks(East, &operator).await;
        scene.apply(East, FIRST, json!([removal(&id)])).await;
        scene.until_node_condition(East, THIRD, "DrainPrepared", "True", "PreparedForDeletion").await;
        return scene.assert_never_wrote(East);
    }
    scene.until_node_condition(East, THIRD, "DrainPrepared", "True", "PreparedForDeletion").await;
    assert_removed(&scene, before, &id);
    assert!(scene.pod(East, THIRD).await.is_some(), "a prepared node runs until it is deleted");
    scene.scale(East, 2).await;
    scene.until_node_gone(East, THIRD).await;
    assert_removed(&scene, before, &id);
}

/// A user deletes a node of an Auto cluster: its role goes, it goes, and the operator makes a new one.
async fn node_deletion(scene: Scene, role: Role) {
    let operator = scene.with_layout_of(East, role, &[], scene.three_nodes(East, role)).await;
    let (before, id) = (scene.writes(East).len(), scene.node_id(East, THIRD).await);
    let uid = scene.nodes(East).get(THIRD).await.unwrap().metadata.uid;

    scene.delete_node(East, THIRD).await;

    if role == Role::Follower {
        assert_held(&scene, THIRD).await;
        scene.after_two_more_looks(East, &operator).await;
        scene.apply(East, FIRST, json!([removal(&id)])).await;
    }
    scene
        .eventually("a new node of that name", async || {
            let node = scene.nodes(East).get_opt(THIRD).await.unwrap()?;
            (node.metadata.uid != uid).then_some(())
        })
        .await;
    if role == Role::Follower {
        scene.until_condition(East, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;
        return scene.assert_never_wrote(East);
    }
    scene.until_running(East, &[THIRD]).await;
    let own = scene.writes(East).split_off(before);
    assert_eq!(
        (&own[0].body["roles"][0]["id"], &own[0].body["roles"][0]["remove"]),
        (&json!(id), &json!(true))
    );
}

/// The declaration of a node that another site runs.
async fn external_node_deletion(scene: Scene, role: Role) {
    let operator = scene.with_layout(East, role, &[]).await;
    scene.operator(West, &[]).await;
    scene.create_cluster(West, scene.cluster(West, Role::Follower)).await;
    let id = scene.until_identity(West, FIRST).await;
    scene.create_node(East, external("west-0", "west", &id)).await;
    if role == Role::Follower {
        scene.apply(East, FIRST, json!([given(&id, "west")])).await;
    }
    scene.until_running(East, &["west-0"]).await;
    let before = scene.writes(East).len();

    scene.delete_node(East, "west-0").await;

    if role == Role::Follower {
        let reason = "PreparationBlocked";
        scene.until_node_condition(East, "west-0", "DrainPrepared", "False", reason).await;
        scene.after_two_more_looks(East, &operator).await;
        scene.assert_never_wrote(East);
        scene.apply(East, FIRST, json!([removal(&id)])).await;
        scene.until_node_gone(East, "west-0").await;
        return scene.assert_never_wrote(East);
    }
    scene.until_node_gone(East, "west-0").await;
    assert_removed(&scene, before, &id);
    scene.assert_never_wrote(West);
}

/// Under Destroy neither role writes, and neither waits.
async fn cluster_destroyed(scene: Scene, role: Role) {
    scene.with_layout(East, role, &[]).await;
    let before = scene.calls_of_all().len();

    scene.delete_cluster(East).await;

    scene.until_cluster_gone(East).await;
    scene.until_node_gone(East, FIRST).await;
    scene.until_pod_gone(East, FIRST).await;
    assert_eq!(scene.calls_of_all().len(), before, "no layout write: {:?}", scene.calls_of_all());
}

/// Under Drain every node waits until its role is gone. West's nodes stay, so that the layout survives.
async fn cluster_drained(scene: Scene, role: Role) {
    let mut east = scene.cluster(East, role);
    east["spec"]["deletionPolicy"] = json!("Drain");
    scene.operator(West, &[]).await;
    scene.create_cluster(West, scene.cluster(West, Role::Follower)).await;
    let operator = scene.with_layout_of(East, role, &[], east).await;
    let west = [scene.until_identity(West, FIRST).await, scene.until_identity(West, SECOND).await];
    scene.apply(East, FIRST, json!([given(&west[0], "west"), given(&west[1], "west")])).await;
    scene.until_running(West, &[FIRST, SECOND]).await;
    let own = [scene.node_id(East, FIRST).await, scene.node_id(East, SECOND).await];

    scene.delete_cluster(East).await;

    if role == Role::Follower {
        for name in [FIRST, SECOND] {
            let reason = "PreparationBlocked";
            scene.until_node_condition(East, name, "DrainPrepared", "False", reason).await;
        }
        scene.after_two_more_looks(East, &operator).await;
        assert!(!finalizers(&scene.the_cluster(East).await).is_empty());
        scene.assert_never_wrote(East);
        scene.apply(West, FIRST, json!([removal(&own[0]), removal(&own[1])])).await;
        scene.until_cluster_gone(East).await;
        return scene.assert_never_wrote(East);
    }
    scene.until_cluster_gone(East).await;
    let layout = scene.layout(West, FIRST).await;
    let left: Vec<_> = layout["roles"].as_array().unwrap().iter().map(|role| role["id"].clone()).collect();
    assert_eq!(left.len(), 2, "{layout}");
    assert!(west.iter().all(|id| left.contains(&json!(id))), "{layout}");
    scene.assert_never_wrote(West);
}

/// A node whose cluster is gone acts on the role that its own status recorded last; unknown means refused.
async fn orphaned_node(scene: Scene, role: Role) {
    let cluster = scene.three_nodes(East, role);
    let operator = scene.with_layout_of(East, role, &[], cluster).await;
    operator.stop().await;
    let (before, id) = (scene.writes(East).len(), scene.node_id(East, THIRD).await);
    let release = json!({"metadata": {"finalizers": null}});
    scene.patch_cluster(East, release).await.unwrap();
    let orphaning = kube::api::DeleteParams {
        propagation_policy: Some(kube::api::PropagationPolicy::Orphan),
        ..kube::api::DeleteParams::default()
    };
    scene.clusters(East).delete("garage", &orphaning).await.unwrap();
    scene.until_cluster_gone(East).await;

    scene.delete_node(East, THIRD).await;
    let operator = scene.operator(East, &[]).await;

    if role == Role::Writer {
        scene.until_node_gone(East, THIRD).await;
        return assert_removed(&scene, before, &id);
    }
    let node = scene.until_node_condition(East, THIRD, "DrainPrepared", "False", "PreparationBlocked").await;
    assert!(!finalizers(&node).is_empty());
    operator.stop().await;
    assert_eq!(scene.writes(East).len(), before, "an orphan of unknown role does not write");
}
