//! Rows about gateways: stale roles, and gateways of another owner's layout.

use harness::site::Site::East;
use kube::api::{Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stage::cases::FIRST;
use crate::stage::manifest::gateway;
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

const GATEWAY: &str = "gateway-0";

/// A gateway is stale soon, and is looked for often.
const SOON: [&str; 2] = ["--tombstone-age=1s", "--requeue-long=1s"];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for role in Role::ALL {
        for auto_apply in [None, Some(false), Some(true)] {
            let automatic = auto_apply.map_or("unset", |automatic| if automatic { "on" } else { "off" });
            let name = format!("matrix/gateway-tombstones/{}/auto-apply-{automatic}", role.name());
            trials.push(trial(name, move |scene| stale_gateway(scene, role, auto_apply)));
        }
    }
    trials.push(trial("matrix/edge-gateway/owner-is-writer", |scene| edge(scene, Role::Writer)));
    trials.push(trial("matrix/edge-gateway/owner-is-follower", |scene| edge(scene, Role::Follower)));
    trials
}

async fn stale_gateway(scene: Scene, role: Role, auto_apply: Option<bool>) {
    let operator = scene.with_layout(East, role, &SOON).await;
    if let Some(automatic) = auto_apply {
        let patch = json!({"spec": {"layoutManagement": {"autoApply": automatic}}});
        scene.patch_cluster(East, patch).await.unwrap();
    }
    let id = gateway_with_role(&scene, role).await;
    let before = scene.writes(East).len();

    vanish(&scene, GATEWAY).await;

    if role.writes() && auto_apply == Some(true) {
        scene
            .eventually("a layout without the stale role", async || {
                (!has_role(&scene.layout(East, FIRST).await, &id)).then_some(())
            })
            .await;
        scene.until_field(East, "/status/pendingGatewayTombstones", &Value::Null).await;
        let own = scene.writes(East).split_off(before);
        let paths: Vec<&str> = own.iter().map(|call| call.path.as_str()).collect();
        assert_eq!(paths.len(), 2, "{own:?}");
        assert_eq!(paths[1], "ApplyClusterLayout");
        return assert_eq!(own[0].body["roles"][0]["id"], json!(id));
    }
    let pending = json!([{"nodeId": id, "zone": "east"}]);
    scene.until_field(East, "/status/pendingGatewayTombstones", &pending).await;
    scene.until_condition(East, "GatewayTombstones", "True", "PendingRemoval").await;
    if role == Role::Follower {
        scene.until_condition(East, "AwaitingLayoutWriter", "True", "PendingTombstones").await;
    }
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.writes(East).len(), before, "nothing is written");
    assert!(has_role(&scene.layout(East, FIRST).await, &id));
}

/// A gateway that runs and has a role: given by its own site, or in the past, when this site was the writer.
async fn gateway_with_role(scene: &Scene, role: Role) -> String {
    scene.create_node(East, gateway(East, GATEWAY)).await;
    let id = scene.until_identity(East, GATEWAY).await;
    if role == Role::Follower {
        let uid = scene.the_cluster(East).await.metadata.uid.unwrap();
        let tags = json!(["tier:gateway", format!("cluster-uid:{uid}")]);
        let given = json!({"id": id, "zone": "east", "capacity": null, "tags": tags});
        scene.apply(East, FIRST, json!([given])).await;
    }
    scene.until_running(East, &[GATEWAY]).await;
    id
}

/// The node and its pod go without a chance to give the role back.
async fn vanish(scene: &Scene, name: &str) {
    scene.delete_node(East, name).await;
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    // The operator may have been faster than this, where it may write.
    drop(scene.nodes(East).patch(name, &PatchParams::default(), &release).await);
    scene.until_node_gone(East, name).await;
}

fn has_role(layout: &Value, id: &str) -> bool {
    layout["roles"].as_array().unwrap().iter().any(|role| role["id"] == json!(id))
}

/// A gateway of a cluster that has no layout of its own: it acts on its owner's, and only if the owner is a Writer.
async fn edge(scene: Scene, owner: Role) {
    let operator = scene.with_layout(East, owner, &[]).await;
    let before = scene.writes(East).len();
    let mut handle = scene.cluster(East, Role::Absent);
    handle["metadata"]["name"] = json!("handle");
    let spec = handle["spec"].as_object_mut().unwrap();
    spec.remove("storage");
    spec.remove("remoteClusters");
    spec.insert("connectTo".into(), json!({"clusterRef": {"name": "garage"}}));
    scene.create_cluster(East, handle).await;
    let mut node = gateway(East, GATEWAY);
    node["spec"]["clusterRef"] = json!({"name": "handle"});

    scene.create_node(East, node).await;

    let id = scene.until_identity(East, GATEWAY).await;
    if owner == Role::Follower {
        scene.until_node_condition(East, GATEWAY, "Ready", "False", "NotInLayout").await;
        scene.after_two_more_looks(East, &operator).await;
        return scene.assert_never_wrote(East);
    }
    scene.until_node_field(East, GATEWAY, "/status/inLayout", &json!(true)).await;
    let own = scene.writes(East).split_off(before);
    let node = scene.layout(East, FIRST).await;
    assert!(has_role(&node, &id), "{node}");
    assert!(
        own.iter().all(|call| !call.node.ends_with("gateway-0-0")),
        "the owner's nodes are called: {own:?}"
    );
}
