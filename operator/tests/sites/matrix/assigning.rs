//! Rows about roles that come: the first layout, new nodes, roles of other sites.

use harness::garage::objects::condition;
use harness::site::Site::{East, West};
use kube::api::DynamicObject;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::row;
use crate::stage::cases::{FIRST, SECOND, THIRD};
use crate::stage::manifest::external;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    [
        row("bootstrap", &Role::ALL, first_layout),
        row("new-node", &Role::ALL, new_node),
        row("federation-import", &Role::ALL, federation_import),
        row("own-node-under-auto", &Role::ALL, own_node_under_auto),
        row("declared-nodes", &[Role::Writer, Role::Absent], declared_nodes),
        row("long-without-role", &[Role::Follower], one_event_for_a_long_wait),
    ]
    .into_iter()
    .flatten()
    .collect()
}

async fn first_layout(scene: Scene, role: Role) {
    let operator = scene.operator(East, &[]).await;
    scene.create_cluster(East, scene.cluster(East, role)).await;
    if role == Role::Follower {
        return roles_are_awaited(&scene, &operator).await;
    }
    scene.until_running(East, &[FIRST, SECOND]).await;
    let cluster = scene.until_field(East, "/status/layoutVersion", &json!(1)).await;
    scene.assert_first_layout(East).await;
    assert_eq!(scene.writes(East).last().unwrap().body["version"], 1);
    let layout = scene.layout(East, FIRST).await;
    for role in layout["roles"].as_array().unwrap() {
        assert_eq!((&role["zone"], &role["capacity"]), (&json!("east"), &json!(10_u64 << 30)));
        assert!(role["tags"].as_array().unwrap().contains(&json!("tier:storage")), "{role}");
    }
    match role {
        Role::Writer => {
            assert_eq!(cluster.data["status"]["layoutWriter"]["role"], "Writer");
            assert_eq!(condition(&cluster, "LayoutWriter"), Some(("True", "WriterSite")));
            assert_eq!(condition(&cluster, "AwaitingLayoutWriter"), Some(("False", "NothingPending")));
        }
        _ => assert_no_trace(&cluster),
    }
}

/// `siteRole` absent: not a word of the feature in the status.
fn assert_no_trace(cluster: &DynamicObject) {
    assert_eq!(cluster.data["status"].get("layoutWriter"), None);
    for kind in ["LayoutWriter", "AwaitingLayoutWriter", "ForeignLayoutWriter"] {
        assert_eq!(condition(cluster, kind), None, "{kind}");
    }
    assert_eq!(cluster.data["spec"].get("layoutManagement"), None);
}

async fn roles_are_awaited(scene: &Scene, operator: &crate::stage::operator::Operator) {
    let cluster = scene.until_condition(East, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;
    assert_eq!(cluster.data["status"]["layoutWriter"]["role"], "Follower");
    assert_eq!(condition(&cluster, "LayoutWriter"), Some(("False", "FollowerSite")));
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    for name in [FIRST, SECOND] {
        let node = scene.until_node_condition(East, name, "Ready", "False", "NotInLayout").await;
        assert_eq!(node.data["status"]["phase"], "Pending");
    }
    scene.after_two_more_looks(East, operator).await;
    scene.assert_never_wrote(East);
    let blocked = format!(
        "garage_operator_layout_write_blocked_total{{cluster=\"{}/garage\",operation=\"UpdateClusterLayout\"}}",
        scene.namespace()
    );
    assert!(operator.metric(&blocked).await > 0.0);
    let gauge = |role: &str| {
        let cluster = scene.namespace();
        format!("garage_operator_layout_site_role{{cluster=\"{cluster}/garage\",role=\"{role}\"}}")
    };
    assert!(operator.metric(&gauge("Follower")).await > 0.5);
    assert!(operator.metric(&gauge("Writer")).await < 0.5);
}

async fn new_node(scene: Scene, role: Role) {
    let operator = scene.with_layout(East, role, &[]).await;
    let before = scene.writes(East).len();

    scene.scale(East, 3).await;

    if role == Role::Follower {
        scene
            .eventually("a condition that names the new node alone", async || {
                let message = message_of(&scene.the_cluster(East).await, "AwaitingLayoutWriter");
                (message.contains(THIRD) && !message.contains(FIRST)).then_some(())
            })
            .await;
        scene.give_roles(East, FIRST, &[THIRD]).await;
        scene.until_running(East, &[THIRD]).await;
        scene.until_condition(East, "AwaitingLayoutWriter", "False", "NothingPending").await;
        scene.after_two_more_looks(East, &operator).await;
        scene.assert_never_wrote(East);
        return;
    }
    scene.until_running(East, &[FIRST, SECOND, THIRD]).await;
    let own = scene.writes(East).split_off(before);
    let paths: Vec<&str> = own.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["UpdateClusterLayout", "ApplyClusterLayout"]);
    let staged = own[0].body["roles"].as_array().unwrap();
    assert_eq!(staged.len(), 1, "only the new node is staged: {staged:?}");
    assert_eq!(staged[0]["id"], json!(scene.node_id(East, THIRD).await));
}

/// West has a layout of its own. A Writer at east makes it one with its own, whether gossip or an import comes first; a Follower at east takes over the whole layout as
/// it comes, without a write.
async fn federation_import(scene: Scene, role: Role) {
    let mut west = scene.cluster(West, Role::Absent);
    west["spec"].as_object_mut().unwrap().remove("remoteClusters");
    scene.with_layout_of(West, Role::Absent, &[], west).await;
    let operator = scene.operator(East, &[]).await;

    scene.create_cluster(East, scene.cluster(East, role)).await;

    let west_ids = [scene.node_id(West, FIRST).await, scene.node_id(West, SECOND).await];
    let has_west = |layout: &Value| {
        let roles = layout["roles"].as_array().unwrap();
        west_ids.iter().all(|id| roles.iter().any(|role| role["id"] == json!(id) && role["zone"] == "west"))
    };
    scene.until_identity(East, FIRST).await;
    scene
        .eventually("the roles of west in the layout of east", async || {
            has_west(&scene.layout(East, FIRST).await).then_some(())
        })
        .await;
    if role == Role::Follower {
        scene.until_condition(East, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;
        scene.after_two_more_looks(East, &operator).await;
        scene.assert_never_wrote(East);
        return;
    }
    scene.until_running(East, &[FIRST, SECOND]).await;
    scene
        .eventually("one layout of four roles at both sites", async || {
            let (east, west) = (scene.layout(East, FIRST).await, scene.layout(West, FIRST).await);
            let four = |layout: &Value| layout["roles"].as_array().is_some_and(|roles| roles.len() == 4);
            (four(&east) && east["roles"] == west["roles"] && east["version"] == west["version"])
                .then_some(())
        })
        .await;
    let written = scene.writes(East).len();
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.writes(East).len(), written, "what is imported is not imported again");
}

/// Under Auto the operator makes the nodes of the site: one that a user makes is refused, and gets neither pod nor role.
async fn own_node_under_auto(scene: Scene, role: Role) {
    let operator = scene.with_layout(East, role, &[]).await;
    let before = scene.calls_of_all().len();
    let storage = json!({"metadata": {"type": "EmptyDir"}, "data": {"type": "EmptyDir"}});
    let spec = json!({"zone": "east", "capacity": "10Gi", "storage": storage});

    scene.create_node(East, crate::stage::manifest::node("own", spec)).await;

    let node = scene.until_node_condition(East, "own", "Ready", "False", "LayoutPolicyAuto").await;
    assert_eq!(node.data["status"]["phase"], "Failed");
    scene.after_two_more_looks(East, &operator).await;
    assert!(scene.pod(East, "own").await.is_none());
    assert_eq!(scene.calls_of_all().len(), before);
    scene.delete_node(East, "own").await;
    scene.until_node_gone(East, "own").await;
}

/// External GarageNodes at the writer carry the roles of a follower's nodes.
async fn declared_nodes(scene: Scene, role: Role) {
    scene.with_layout(East, role, &[]).await;
    let west = scene.operator(West, &[]).await;
    scene.create_cluster(West, scene.cluster(West, Role::Follower)).await;
    let id = scene.until_identity(West, FIRST).await;
    scene.until_condition(West, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;

    scene.create_node(East, external("west-0", "west", &id)).await;

    scene.until_node_field(East, "west-0", "/status/inLayout", &json!(true)).await;
    scene.until_running(West, &[FIRST]).await;
    let own = scene.until_node_field(West, FIRST, "/status/zone", &json!("west")).await;
    assert_eq!(own.data["status"]["inLayout"], true);
    let tags = scene.layout(East, FIRST).await["roles"].clone();
    let tags = tags.as_array().unwrap().iter().find(|role| role["id"] == json!(id)).unwrap()["tags"].clone();
    assert!(tags.as_array().unwrap().contains(&json!("rpc-address:127.0.0.9:3901")), "{tags}");
    scene.after_two_more_looks(West, &west).await;
    scene.assert_never_wrote(West);
}

/// One event for each node, not one per reconcile.
async fn one_event_for_a_long_wait(scene: Scene, _follower: Role) {
    let operator = scene.operator(East, &["--roleless-warning=1s"]).await;
    scene.create_cluster(East, scene.cluster(East, Role::Follower)).await;

    let told = async || {
        let events = scene.events(East).await;
        events.into_iter().filter(|(reason, _)| reason == "AwaitingLayoutWriter").count()
    };
    scene.eventually("an event of each node", async || (told().await >= 2).then_some(())).await;
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(told().await, 2);
}

pub(super) fn message_of(object: &DynamicObject, kind: &str) -> String {
    let conditions = object.data["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
    found["message"].as_str().unwrap().to_owned()
}
