//! Declarations that are wrong: of nodes that do not exist, or twice, of a site that is another mesh, of objects that
//! the API server does not take.

use harness::garage::objects::{self, condition};
use harness::site::Site::{East, West};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stage::cases::{FIRST, SECOND};
use crate::stage::manifest::{REMOTE, external};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("faults/declarations/mistyped-node-id", mistyped_node_id),
        trial("faults/declarations/duplicate", duplicate),
        trial("faults/declarations/another-mesh", another_mesh),
        trial("faults/declarations/refused-child", refused_child),
    ]
}

fn role_ids(layout: &Value) -> Vec<&str> {
    layout["roles"].as_array().unwrap().iter().filter_map(|role| role["id"].as_str()).collect()
}

/// Nobody answers to the identity: it gets no role, says why, and goes again without a trace.
async fn mistyped_node_id(scene: Scene) {
    let operator = scene.with_layout(East, Role::Writer, &[]).await;
    let before = scene.writes(East).len();

    scene.create_node(East, external("west-9", "west", &"d".repeat(64))).await;

    let node = scene.until_node_condition(East, "west-9", "Ready", "False", "NotInLayout").await;
    let words = objects::conditions_in_words(&node);
    assert!(words.contains("is its nodeId right?"), "{words}");
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.writes(East).len(), before, "{:?}", scene.written(East));
    scene.delete_node(East, "west-9").await;
    scene.until_node_gone(East, "west-9").await;
    assert_eq!(scene.writes(East).len(), before, "{:?}", scene.written(East));
}

/// A declaration of a node that the site runs itself is the one that is wrong. It goes, and the node stays as it was.
async fn duplicate(scene: Scene) {
    let operator = scene.with_layout(East, Role::Writer, &[]).await;
    let (before, id) = (scene.writes(East).len(), scene.node_id(East, FIRST).await);

    scene.create_node(East, external("twin", "east", &id)).await;

    scene.until_node_condition(East, "twin", "Ready", "False", "IdentityCollision").await;
    scene.after_two_more_looks(East, &operator).await;
    let node = scene.nodes(East).get(FIRST).await.unwrap();
    assert_eq!(condition(&node, "Ready"), Some(("True", "NodeReady")));
    scene.delete_node(East, "twin").await;
    scene.until_node_gone(East, "twin").await;
    scene.after_two_more_looks(East, &operator).await;
    assert!(role_ids(&scene.layout(East, FIRST).await).contains(&id.as_str()));
    assert_eq!(scene.writes(East).len(), before, "{:?}", scene.written(East));
}

/// The endpoint of a remote leads to a store that shares nothing with this one: none of its roles is imported.
async fn another_mesh(scene: Scene) {
    let stranger = scene.another().await;
    stranger.with_layout(West, Role::Absent, &[]).await;
    scene.put_secret(East, REMOTE, "token", stranger.mesh().token(East, West)).await;
    let mut cluster = scene.cluster(East, Role::Writer);
    cluster["spec"]["remoteClusters"] =
        stranger.cluster(East, Role::Writer)["spec"]["remoteClusters"].clone();

    let operator = scene.with_layout_of(East, Role::Writer, &[], cluster).await;

    scene
        .until_cluster(East, "a site that cannot be connected to", |cluster| {
            let words = objects::conditions_in_words(cluster.ok_or("it does not exist")?);
            if words.contains("not fully connected to west") { Ok(()) } else { Err(words) }
        })
        .await;
    scene.after_two_more_looks(East, &operator).await;
    let own = [scene.node_id(East, FIRST).await, scene.node_id(East, SECOND).await];
    let layout = scene.layout(East, FIRST).await;
    let mut roles = role_ids(&layout);
    roles.sort_unstable();
    let mut own: Vec<&str> = own.iter().map(String::as_str).collect();
    own.sort_unstable();
    assert_eq!(roles, own);
    stranger.strike().await;
}

/// What the operator makes of the spec is refused: the cluster says so instead of nothing.
async fn refused_child(scene: Scene) {
    scene.operator(East, &[]).await;
    let mut cluster = scene.cluster(East, Role::Writer);
    cluster["spec"]["zone"] = json!("");

    scene.create_cluster(East, cluster).await;

    let cluster = scene.until_condition(East, "Ready", "False", "ReconcileFailed").await;
    let words = objects::conditions_in_words(&cluster);
    assert!(words.contains("the API server did not let the operator") && words.contains("zone"), "{words}");
    scene.patch_cluster(East, json!({"spec": {"zone": "east"}})).await.unwrap();
    scene.until_running(East, &[FIRST, SECOND]).await;
}
