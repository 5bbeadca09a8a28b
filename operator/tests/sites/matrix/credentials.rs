//! The dynamic admin token of a cluster: the same for every role, once its nodes have theirs (operator contract §2.2).

use harness::site::Site::East;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use super::row;
use crate::stage::cases::{FIRST, SECOND};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

/// What is annotated once every pod has proved the token.
const READY: &str = "garage.rajsingh.info/operator-admin-token-ready";

pub fn trials() -> Vec<Trial> {
    let mut trials = row("admin-token", &Role::ALL, one_token);
    trials.push(trial("matrix/admin-token/none-without-roles", none_without_roles));
    trials.push(trial("matrix/admin-token/proved-again-by-new-pods", proved_again));
    trials.push(trial("matrix/admin-token/made-anew-when-revoked", made_anew));
    trials.push(trial("matrix/admin-token/configured-token-is-not-sent-to-the-service", not_sent));
    trials
}

fn secrets(scene: &Scene) -> Api<Secret> {
    Api::namespaced(scene.client(East), scene.namespace())
}

async fn token(scene: &Scene) -> Option<Secret> {
    let all = secrets(scene).list(&ListParams::default()).await.unwrap();
    all.items
        .into_iter()
        .find(|secret| secret.metadata.name.as_ref().is_some_and(|name| name.starts_with("garage-operator-")))
}

/// Waits until every pod has proved a token, other than `before` says.
async fn proved(scene: &Scene, before: Option<&str>) -> (Secret, String) {
    scene
        .eventually("a proved token", async || {
            let secret = token(scene).await?;
            let ready = secret.metadata.annotations.as_ref()?.get(READY)?.clone();
            (Some(ready.as_str()) != before).then_some((secret, ready))
        })
        .await
}

fn text(secret: &Secret, key: &str) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap()
}

/// What Garage lists under the operator's name.
async fn listed(scene: &Scene) -> Vec<Value> {
    let (status, all) = scene.ask(East, FIRST, Method::GET, "ListAdminTokens", &Value::Null).await;
    assert_eq!(status, 200, "{all}");
    let named = |token: &&Value| token["name"].as_str().unwrap().starts_with("garage-operator:");
    all.as_array().unwrap().iter().filter(named).cloned().collect()
}

/// One token that never expires, in an immutable Secret; revoked when the cluster goes.
async fn one_token(scene: Scene, role: Role) {
    let operator = scene.with_layout(East, role, &[]).await;

    let (secret, _) = proved(&scene, None).await;

    assert_eq!(secret.immutable, Some(true));
    let owner = &secret.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("GarageCluster", "garage"));
    let (value, id) = (text(&secret, "admin-token"), text(&secret, "token-id"));
    assert!(value.starts_with(&format!("{id}.")));
    let uid = scene.the_cluster(East).await.metadata.uid.unwrap();
    let name = format!("garage-operator:{}/garage:{uid}", scene.namespace());
    let all = listed(&scene).await;
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((&all[0]["id"], &all[0]["name"]), (&json!(id), &json!(name)));
    assert_eq!((&all[0]["expiration"], &all[0]["scope"]), (&Value::Null, &json!(["*"])));
    scene.after_two_more_looks(East, &operator).await;
    let made = scene.calls().into_iter().filter(|call| call.path == "CreateAdminToken").count();
    assert_eq!(made, 1);
    assert!(!operator.child.log_tail(10_000).contains(&value), "the token is in the log");
    scene.delete_cluster(East).await;
    scene.until_cluster_gone(East).await;
    let revoked = scene.calls().into_iter().filter(|call| call.path == "DeleteAdminToken").count();
    assert_eq!(revoked, 1);
    if role == Role::Follower {
        scene.assert_never_wrote(East);
    }
}

/// A Follower whose nodes have no roles goes on with the configured token.
async fn none_without_roles(scene: Scene) {
    let operator = scene.operator(East, &[]).await;
    scene.create_cluster(East, scene.cluster(East, Role::Follower)).await;
    scene.until_condition(East, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(token(&scene).await.map(|secret| secret.metadata.name), None);
    assert!(!scene.calls().iter().any(|call| call.path == "CreateAdminToken"));
}

async fn proved_again(scene: Scene) {
    scene.with_layout(East, Role::Writer, &[]).await;
    let (before, set) = proved(&scene, None).await;

    let pods: Api<Pod> = Api::namespaced(scene.client(East), scene.namespace());
    pods.delete(&format!("{SECOND}-0"), &DeleteParams::default()).await.unwrap();

    let (after, _) = proved(&scene, Some(&set)).await;
    assert_eq!(text(&before, "token-id"), text(&after, "token-id"), "the token stays");
    scene.until_running(East, &[FIRST, SECOND]).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
}

/// Somebody deletes the token in Garage: the operator notices at its next look, and makes another one.
async fn made_anew(scene: Scene) {
    scene.with_layout(East, Role::Writer, &["--requeue-long=500ms"]).await;
    let (before, _) = proved(&scene, None).await;
    let written = scene.writes(East).len();

    let call = format!("DeleteAdminToken?id={}", text(&before, "token-id"));
    assert_eq!(scene.ask(East, FIRST, Method::POST, &call, &Value::Null).await.0, 200);

    scene
        .eventually("another proved token", async || {
            let (after, _) = proved(&scene, None).await;
            (text(&after, "token-id") != text(&before, "token-id")).then_some(())
        })
        .await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    assert_eq!(listed(&scene).await.len(), 1);
    assert_eq!(scene.writes(East).len(), written);
}

/// Once the token is proved, the Service is called with it and not with the configured one any more.
async fn not_sent(scene: Scene) {
    let operator = scene.with_layout(East, Role::Writer, &[]).await;
    proved(&scene, None).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    let before = scene.calls().len();

    scene.after_two_more_looks(East, &operator).await;

    let calls = scene.calls().split_off(before);
    let reads: Vec<_> = calls.iter().filter(|call| call.path == "GetClusterHealth").collect();
    assert!(!reads.is_empty());
    assert!(
        reads.iter().all(|call| call.caller == "east"),
        "the token is attributed to its maker: {reads:?}"
    );
    let labels: std::collections::BTreeSet<&str> = reads.iter().map(|call| call.token.as_str()).collect();
    assert_eq!(labels.len(), 1, "{labels:?}");
    let configured = scene.calls().into_iter().find(|call| call.path == "GetNodeInfo").unwrap().token;
    assert!(!labels.contains(configured.as_str()), "{labels:?}");
}
