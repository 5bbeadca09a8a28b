//! Tokens that are missing or unusable while everything runs.

use harness::garage::objects;
use harness::site::Site::East;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use libtest_mimic::Trial;

use crate::stage::cases::{FIRST, SECOND};
use crate::stage::manifest::ADMIN;
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    let case = |name: &str, secret: Option<(&'static str, &'static str)>, says: &'static str| {
        trial(format!("faults/secrets/{name}"), move |scene| unusable(scene, secret, says))
    };
    vec![
        case("missing", None, "Secret garage-admin does not exist"),
        case("without-the-key", Some(("other", "abc")), "Secret garage-admin has no key admin-token"),
        case("empty", Some(("admin-token", "")), "key admin-token of Secret garage-admin is empty"),
        case("dotted", Some(("admin-token", "abc.def")), "contains a dot"),
        case("wrong", Some(("admin-token", "wrong")), "403"),
        trial("faults/secrets/missing-from-the-start", missing_from_the_start),
    ]
}

/// The cluster says what it lacks, without the token itself, and goes on once it has it; the layout stays as it was.
async fn unusable(scene: Scene, secret: Option<(&'static str, &'static str)>, says: &'static str) {
    // With a token of its own the operator needs the configured one only for new pods.
    let flags = ["--requeue-long=500ms", "--operator-admin-token=false"];
    scene.with_layout(East, Role::Writer, &flags).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    let written = scene.writes(East).len();

    match secret {
        None => {
            let secrets: Api<Secret> = Api::namespaced(scene.client(East), scene.namespace());
            secrets.delete(ADMIN, &DeleteParams::default()).await.unwrap();
        }
        Some((key, value)) => scene.put_secret(East, ADMIN, key, value).await,
    }

    let tells = |cluster: Option<&DynamicObject>| {
        let words = objects::conditions_in_words(cluster.ok_or("it does not exist")?);
        assert!(!words.contains("abc.def"), "a token is told: {words}");
        if words.contains("Ready=False/GarageUnreachable") && words.contains(says) {
            Ok(())
        } else {
            Err(words)
        }
    };
    scene.until_cluster(East, says, tells).await;
    let token = scene.mesh().token(East, East).to_owned();
    scene.put_secret(East, ADMIN, "admin-token", &token).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    scene.until_running(East, &[FIRST, SECOND]).await;
    assert_eq!(scene.writes(East).len(), written);
}

/// Pods cannot even start without it.
async fn missing_from_the_start(scene: Scene) {
    let secrets: Api<Secret> = Api::namespaced(scene.client(East), scene.namespace());
    secrets.delete(ADMIN, &DeleteParams::default()).await.unwrap();
    scene.operator(East, &[]).await;
    scene.create_cluster(East, scene.cluster(East, Role::Writer)).await;
    scene.until_condition(East, "Ready", "False", "NotAllReplicasReady").await;
    scene.until_node_condition(East, FIRST, "Ready", "False", "PodNotReady").await;

    let token = scene.mesh().token(East, East).to_owned();
    scene.put_secret(East, ADMIN, "admin-token", &token).await;

    scene.until_running(East, &[FIRST, SECOND]).await;
    scene.assert_first_layout(East).await;
}
