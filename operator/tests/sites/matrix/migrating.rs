//! Rows about the replication factor, and about a second writer.

use harness::garage::objects::condition;
use harness::site::Site::East;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::row;
use crate::stage::cases::{FIRST, SECOND, THIRD};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

/// A migration goes through its phases as fast as pods come and go.
const PATIENT: [&str; 1] = ["--factor-migration-grace=30s"];

pub fn trials() -> Vec<Trial> {
    let mut trials = row("factor-migration", &[Role::Writer, Role::Absent], standalone);
    trials.push(trial("matrix/factor-without-migration", unasked));
    trials.push(trial("matrix/foreign-writer/writer", |scene| foreign_version(scene, Role::Writer)));
    trials.push(trial("matrix/foreign-writer/absent", |scene| foreign_version(scene, Role::Absent)));
    trials
}

fn alone(scene: &Scene, role: Role) -> Value {
    let mut cluster = scene.three_nodes(East, role);
    cluster["spec"].as_object_mut().unwrap().remove("remoteClusters");
    cluster
}

async fn standalone(scene: Scene, role: Role) {
    let cluster = alone(&scene, role);
    scene.with_layout_of(East, role, &PATIENT, cluster).await;
    let before = scene.writes(East).len();
    let old = scene.layout(East, FIRST).await;

    let migration = json!({
        "metadata": {"annotations": {"garage.rajsingh.info/purge-cluster-layout": "factor=3"}},
        "spec": {"replication": {"factor": 3}},
    });
    scene.patch_cluster(East, migration).await.unwrap();

    scene.until_field(East, "/status/factorMigration/phase", &json!("Completed")).await;
    scene.until_running(East, &[FIRST, SECOND, THIRD]).await;
    let (own, new) = (scene.writes(East).split_off(before), scene.layout(East, FIRST).await);
    let paths: Vec<&str> = own.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["UpdateClusterLayout", "ApplyClusterLayout"], "all roles in one version");
    assert_eq!(new["version"], json!(1), "the old layout is gone: {new}");
    assert_eq!(new["roles"].as_array().unwrap().len(), old["roles"].as_array().unwrap().len());
    let cluster = scene.the_cluster(East).await;
    assert_eq!(cluster.data["status"]["replicationFactor"], json!(3));
    assert_eq!(cluster.data["status"]["lastOperation"]["type"], json!("PurgeClusterLayout"));
    assert_eq!(cluster.data["status"]["lastOperation"]["succeeded"], json!(true));
    assert_eq!(condition(&cluster, "ForeignLayoutWriter"), None);
}

/// A factor that nobody asked to migrate is not rolled out.
async fn unasked(scene: Scene) {
    let cluster = alone(&scene, Role::Absent);
    let operator = scene.with_layout_of(East, Role::Absent, &[], cluster).await;
    let before = scene.pod(East, FIRST).await.unwrap().metadata.uid;

    scene.patch_cluster(East, json!({"spec": {"replication": {"factor": 3}}})).await.unwrap();

    scene.until_condition(East, "ReplicationFactor", "False", "MigrationRequired").await;
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.pod(East, FIRST).await.unwrap().metadata.uid, before);
}

/// Another actor makes a version: the Writer tells it, and a site without a role keeps silent.
async fn foreign_version(scene: Scene, role: Role) {
    let operator = scene.with_layout(East, role, &["--requeue-long=1s"]).await;
    scene.after_two_more_looks(East, &operator).await;
    let cluster = scene.the_cluster(East).await;
    assert_eq!(condition(&cluster, "ForeignLayoutWriter"), None);
    if role == Role::Writer {
        let applied = scene.layout(East, FIRST).await["version"].clone();
        assert_eq!(cluster.data["status"]["layoutWriter"]["lastAppliedVersion"], applied);
    }

    let given = json!([{"id": "ab".repeat(32), "zone": "east", "capacity": null, "tags": ["by-hand"]}]);
    scene.apply(East, FIRST, given).await;

    if role == Role::Writer {
        scene.until_condition(East, "ForeignLayoutWriter", "True", "UnknownLayoutVersion").await;
        scene.annotate(East, "acknowledge-foreign-layout-writer", "").await;
        scene
            .eventually("the evidence to be gone", async || {
                let cluster = scene.the_cluster(East).await;
                condition(&cluster, "ForeignLayoutWriter").is_none().then_some(())
            })
            .await;
        return;
    }
    scene.until_field(East, "/status/layoutVersion", &json!(2)).await;
    scene.after_two_more_looks(East, &operator).await;
    let cluster = scene.the_cluster(East).await;
    assert_eq!(condition(&cluster, "ForeignLayoutWriter"), None);
    assert_eq!(cluster.data["status"].get("layoutWriter"), None);
}
