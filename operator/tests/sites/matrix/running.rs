//! Rows that are the same for every role: connections, workloads, rollouts.

use harness::site::Site::East;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::ListParams;
use libtest_mimic::Trial;
use serde_json::json;

use super::row;
use crate::stage::cases::{FIRST, SECOND};
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    [
        row("connect", &Role::ALL, nodes_are_connected),
        row("workloads", &Role::ALL, workloads_are_there),
        row("disruption-budgets", &[Role::Writer], budgets_come_and_go),
        row("storage-rollout", &Role::ALL, changed_pods_are_replaced_one_by_one),
    ]
    .into_iter()
    .flatten()
    .collect()
}

async fn nodes_are_connected(scene: Scene, role: Role) {
    scene.operator(East, &[]).await;
    scene.create_cluster(East, scene.cluster(East, role)).await;

    scene
        .eventually("nodes that see each other", async || {
            let nodes = scene.mesh_nodes().await;
            (nodes.len() == 2 && nodes.iter().all(|node| node["peersUp"] == 1)).then_some(())
        })
        .await;
    assert!(scene.calls().iter().any(|call| call.caller == "east" && call.path == "ConnectClusterNodes"));
    if role == Role::Follower {
        scene.assert_never_wrote(East);
    }
}

async fn workloads_are_there(scene: Scene, role: Role) {
    let operator = scene.operator(East, &[]).await;
    scene.create_cluster(East, scene.cluster(East, role)).await;

    let cluster = scene.until_condition(East, "Ready", "True", "ClusterReady").await;

    assert_eq!(cluster.data["status"]["storageReadyReplicas"], 2);
    if role.writes() {
        scene.until_running(East, &[FIRST, SECOND]).await;
    }
    scene.until_field(East, "/status/phase", &json!("Running")).await;
    let (client, namespace) = (scene.client(East), scene.namespace());
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), namespace);
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let all = ListParams::default().labels("app.kubernetes.io/managed-by=garage-operator");
    let sets = sets.list(&all).await.unwrap();
    assert_eq!(sets.items.len(), 2);
    for set in &sets {
        let owner = &set.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!((owner.kind.as_str(), owner.controller), ("GarageNode", Some(true)));
        assert_eq!(set.spec.as_ref().unwrap().replicas, Some(1));
    }
    assert_eq!(services.list(&all).await.unwrap().items.len(), 2, "the API's and the headless one");
    assert_eq!(maps.list(&all).await.unwrap().items.len(), 1);
    if role == Role::Follower {
        scene.after_two_more_looks(East, &operator).await;
        scene.assert_never_wrote(East);
    }
}

/// Each tier has a budget, until its spec turns it off.
async fn budgets_come_and_go(scene: Scene, role: Role) {
    scene.operator(East, &[]).await;
    let mut cluster = scene.cluster(East, role);
    cluster["spec"]["storage"].as_object_mut().unwrap().remove("podDisruptionBudget");
    cluster["spec"]["gateway"] = json!({"replicas": 1});
    scene.create_cluster(East, cluster).await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(scene.client(East), scene.namespace());
    let there = async |wanted: &[&str]| {
        let list = budgets.list(&ListParams::default()).await.unwrap();
        let mut names: Vec<String> = list.items.into_iter().filter_map(|item| item.metadata.name).collect();
        names.sort();
        (names == wanted).then_some(())
    };
    scene.eventually("both budgets", async || there(&["garage", "garage-gateway"]).await).await;

    let off = json!({"podDisruptionBudget": {"enabled": false}});
    scene.patch_cluster(East, json!({"spec": {"gateway": off.clone()}})).await.unwrap();
    scene.eventually("the storage budget alone", async || there(&["garage"]).await).await;
    scene.patch_cluster(East, json!({"spec": {"storage": off}})).await.unwrap();
    scene.eventually("no budget", async || there(&[]).await).await;
}

/// Every pod is replaced by one with the new environment, the second only when the first is back; the layout is left
/// alone, and the rollout is recorded while it goes on.
async fn changed_pods_are_replaced_one_by_one(scene: Scene, role: Role) {
    let operator = scene.with_layout(East, role, &[]).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    let before = scene.calls_of_all().len();
    let watch = tokio::task::spawn_local({
        let scene = scene.clone();
        async move { recorded_rollouts(&scene).await }
    });

    let env = json!([{"name": "GARAGE_LOG", "value": "debug"}]);
    scene.patch_cluster(East, json!({"spec": {"storage": {"env": env}}})).await.unwrap();

    scene
        .eventually("pods with the new environment", async || {
            let mut renewed = 0;
            for node in [FIRST, SECOND] {
                renewed += usize::from(scene.pod(East, node).await.is_some_and(|pod| has_variable(&pod)));
            }
            (renewed == 2).then_some(())
        })
        .await;
    scene.until_running(East, &[FIRST, SECOND]).await;
    scene.until_field(East, "/status/storageRollout", &json!(null)).await;
    let mut recorded = watch.await.unwrap();
    recorded.sort();
    assert_eq!(recorded, [FIRST, SECOND], "each node was recorded once");
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.calls_of_all().len(), before, "a rollout writes no layout");
}

/// The nodes of `status.storageRollout` in the order in which they appear, until both have.
async fn recorded_rollouts(scene: &Scene) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    while seen.len() < 2 {
        let last = seen.last().cloned();
        let cluster = scene
            .until_cluster(East, "the rollout of another node", |cluster| {
                let recorded =
                    cluster.and_then(|cluster| cluster.data["status"]["storageRollout"]["node"].as_str());
                match recorded {
                    Some(node) if Some(node) != last.as_deref() => Ok(()),
                    _ => Err(format!("recorded: {recorded:?}")),
                }
            })
            .await;
        seen.push(cluster.data["status"]["storageRollout"]["node"].as_str().unwrap().to_owned());
    }
    seen
}

fn has_variable(pod: &Pod) -> bool {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    container
        .is_some_and(|container| container.env.iter().flatten().any(|variable| variable.name == "GARAGE_LOG"))
}
