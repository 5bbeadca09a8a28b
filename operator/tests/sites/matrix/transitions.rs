//! Promotion and demotion: spec edits that take effect on the next reconcile.

use harness::site::Site::{East, West};
use libtest_mimic::Trial;
use serde_json::json;

use crate::stage::cases::{FIRST, SECOND, THIRD};
use crate::stage::garage::removal;
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("matrix/promotion/assigns_what_was_awaited", promotion),
        trial("matrix/promotion/removes_what_was_awaited", promotion_during_a_removal),
        trial("matrix/demotion/stops_at_once", demotion),
    ]
}

async fn promotion(scene: Scene) {
    scene.operator(East, &[]).await;
    scene.create_cluster(East, scene.cluster(East, Role::Follower)).await;
    scene.until_condition(East, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;
    scene.assert_never_wrote(East);

    scene.assign(East, "Writer").await;

    scene.until_running(East, &[FIRST, SECOND]).await;
    scene.until_condition(East, "LayoutWriter", "True", "WriterSite").await;
    scene.until_condition(East, "AwaitingLayoutWriter", "False", "NothingPending").await;
    scene.assert_first_layout(East).await;
}

async fn promotion_during_a_removal(scene: Scene) {
    scene.with_layout_of(East, Role::Follower, &[], scene.three_nodes(East, Role::Follower)).await;
    scene.scale(East, 2).await;
    scene.until_condition(East, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await;

    scene.assign(East, "Writer").await;

    scene.until_node_gone(East, THIRD).await;
    scene.until_running(East, &[FIRST, SECOND]).await;
    let removed = scene.writes(East).iter().any(|call| {
        call.body["roles"].as_array().into_iter().flatten().any(|role| role["remove"] == json!(true))
    });
    assert!(removed, "{:?}", scene.writes(East));
}

/// The old writer is demoted; from then on only the new one writes, and what the old one's nodes need waits.
async fn demotion(scene: Scene) {
    let operator = scene.with_layout_of(East, Role::Writer, &[], scene.three_nodes(East, Role::Writer)).await;
    scene.assign(East, "Follower").await;
    scene.until_condition(East, "LayoutWriter", "False", "FollowerSite").await;
    let written = scene.writes(East).len();

    scene.scale(East, 2).await;

    scene.until_condition(East, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await;
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(scene.writes(East).len(), written, "a demoted site wrote the layout");
    let id = scene.node_id(East, THIRD).await;
    scene.apply(East, FIRST, json!([removal(&id)])).await;
    scene.until_node_gone(East, THIRD).await;
    assert_eq!(scene.writes(East).len(), written);
    scene.assert_never_wrote(West);
}
