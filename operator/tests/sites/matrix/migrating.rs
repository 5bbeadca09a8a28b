//! The row about factor migrations: only on a standalone writer.

use harness::site::Site::East;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::row;
use crate::stage::cases::{FIRST, SECOND};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    let mut trials = row("factor-migration", &[Role::Writer, Role::Absent], migration);
    trials.push(trial("matrix/factor-migration/on-a-follower", on_a_follower));
    trials.push(trial("matrix/factor-migration/without-the-edit-of-the-spec", without_the_edit));
    trials
}

fn standalone(scene: &Scene, role: Role) -> Value {
    let mut cluster = scene.cluster(East, role);
    cluster["spec"].as_object_mut().unwrap().remove("remoteClusters");
    cluster
}

fn to_factor_one() -> Value {
    json!({
        "metadata": {"annotations": {"garage.rajsingh.info/purge-cluster-layout": "factor=1"}},
        "spec": {"replication": {"factor": 1}},
    })
}

/// All nodes go, lose their layout, come back with the new factor, and get their roles in one new first version.
async fn migration(scene: Scene, role: Role) {
    scene.with_layout_of(East, role, &[], standalone(&scene, role)).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    let (before, ids) =
        (scene.writes(East).len(), [scene.node_id(East, FIRST).await, scene.node_id(East, SECOND).await]);

    scene.patch_cluster(East, to_factor_one()).await.unwrap();

    let cluster = scene.until_field(East, "/status/factorMigration/phase", &json!("Completed")).await;
    let migration = &cluster.data["status"]["factorMigration"];
    assert_eq!((&migration["fromFactor"], &migration["toFactor"]), (&json!(2), &json!(1)), "{migration}");
    scene.until_running(East, &[FIRST, SECOND]).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    let own = scene.writes(East).split_off(before);
    let paths: Vec<&str> = own.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["UpdateClusterLayout", "ApplyClusterLayout"], "{own:?}");
    assert_eq!((own[0].versions.0, &own[1].body["version"]), (0, &json!(1)), "the layout began anew");
    let layout = scene.layout(East, FIRST).await;
    let roles = layout["roles"].as_array().unwrap();
    assert!(
        ids.iter().all(|id| roles.iter().any(|role| role["id"] == json!(id))),
        "identities stay: {layout}"
    );
    let repaired = scene.calls().iter().any(|call| call.path == "LaunchRepairOperation");
    assert!(repaired, "the tables are repaired");
}

async fn on_a_follower(scene: Scene) {
    let operator = scene.with_layout(East, Role::Follower, &[]).await;
    let before = scene.calls_of_all().len();

    scene.patch_cluster(East, to_factor_one()).await.unwrap();

    let cluster = scene
        .until_cluster(East, "the refusal", |cluster| {
            let last = cluster.map(|cluster| &cluster.data["status"]["lastOperation"]["succeeded"]);
            (last == Some(&json!(false))).then_some(()).ok_or_else(|| format!("{last:?}"))
        })
        .await;
    assert_eq!(cluster.data["status"].get("factorMigration"), None);
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.calls_of_all().len(), before);
    scene.assert_never_wrote(East);
}

async fn without_the_edit(scene: Scene) {
    scene.with_layout_of(East, Role::Writer, &[], standalone(&scene, Role::Writer)).await;

    scene.annotate(East, "purge-cluster-layout", "factor=1").await;

    let cluster = scene.until_field(East, "/status/lastOperation/succeeded", &json!(false)).await;
    let error = cluster.data["status"]["lastOperation"]["error"].as_str().unwrap();
    assert!(error.contains("in the same update"), "{error}");
    assert_eq!(cluster.data["status"].get("factorMigration"), None);
}
