//! An admin API that is down, slow, or answers nonsense, from the first call on.

use harness::site::Site::East;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stage::cases::{FIRST, SECOND};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

fn effects() -> Vec<(&'static str, Value)> {
    let answer = |status: u16, body: Value| json!({"kind": "answer", "status": status, "body": body});
    vec![
        ("500", answer(500, json!({"code": "InternalError", "message": "broken"}))),
        ("503", answer(503, json!({"code": "ServiceUnavailable", "message": "later"}))),
        ("403", answer(403, json!({"code": "AccessDenied", "message": "Forbidden"}))),
        ("html", answer(200, json!("<html><body>It works!</body></html>"))),
        ("html-502", answer(502, json!("<html><body>Bad Gateway</body></html>"))),
        ("garbage", answer(200, json!({"version": "seven", "nodes": 3, "roles": {}, "success": []}))),
        ("closed", json!({"kind": "drop"})),
        ("silent", json!({"kind": "hold"})),
    ]
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for role in [Role::Writer, Role::Follower] {
        for (name, effect) in effects() {
            let name = format!("faults/admin-api/{name}/{}", role.name());
            trials.push(trial(name, move |scene| broken(scene, role, effect)));
        }
    }
    trials.push(trial("faults/admin-api/slow/writer", slow));
    trials
}

/// While it lasts, the cluster says that Garage cannot be reached; afterwards everything comes as if nothing had been.
async fn broken(scene: Scene, role: Role, effect: Value) {
    let operator = scene.operator(East, &[]).await;
    let rule = scene.rule("", 0, effect).await;
    scene.create_cluster(East, scene.cluster(East, role)).await;

    let cluster = scene.until_condition(East, "Ready", "False", "GarageUnreachable").await;
    assert_ne!(cluster.data["status"]["phase"], "Failed", "a fault of Garage is no failure of the spec");
    scene.until_node_condition(East, FIRST, "Ready", "False", "IdentityUnknown").await;
    rule.remove().await;

    if role == Role::Follower {
        scene.until_condition(East, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;
        scene.until_condition(East, "Ready", "True", "ClusterReady").await;
        scene.after_two_more_looks(East, &operator).await;
        return scene.assert_never_wrote(East);
    }
    scene.until_running(East, &[FIRST, SECOND]).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    scene.assert_first_layout(East).await;
}

/// Slow is not broken: nothing is given up that is answered within its deadline.
async fn slow(scene: Scene) {
    scene.operator(East, &[]).await;
    let rule = scene.rule("", 0, json!({"kind": "delay", "ms": 700})).await;
    scene.create_cluster(East, scene.cluster(East, Role::Writer)).await;

    scene.until_running(East, &[FIRST, SECOND]).await;

    scene.assert_first_layout(East).await;
    rule.remove().await;
}
