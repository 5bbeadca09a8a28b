//! The row about replication: parameters of the layout.

use harness::garage::objects::condition;
use harness::site::Site::East;
use libtest_mimic::Trial;
use serde_json::json;

use super::row;
use crate::stage::cases::{FIRST, SECOND};
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    row("zone-redundancy", &Role::ALL, zone_redundancy)
}

async fn zone_redundancy(scene: Scene, role: Role) {
    let operator = scene.with_layout(East, role, &[]).await;
    let before = scene.writes(East).len();

    let redundancy =
        json!({"spec": {"replication": {"zoneRedundancyMode": "AtLeast", "zoneRedundancyMinZones": 1}}});
    scene.patch_cluster(East, redundancy).await.unwrap();

    if role == Role::Follower {
        scene.until_condition(East, "AwaitingLayoutWriter", "True", "ReplicationChange").await;
        scene.after_two_more_looks(East, &operator).await;
        let cluster = scene.the_cluster(East).await;
        assert_eq!(condition(&cluster, "Ready"), Some(("True", "ClusterReady")));
        scene.assert_never_wrote(East);
        let body = json!({"parameters": {"zoneRedundancy": {"atLeast": 1}}});
        let update = reqwest::Method::POST;
        assert_eq!(scene.ask(East, FIRST, update.clone(), "UpdateClusterLayout", &body).await.0, 200);
        assert_eq!(scene.ask(East, FIRST, update, "ApplyClusterLayout", &json!({"version": 2})).await.0, 200);
        scene.until_condition(East, "AwaitingLayoutWriter", "False", "NothingPending").await;
        return scene.assert_never_wrote(East);
    }
    scene
        .eventually("the parameter in force", async || {
            let layout = scene.layout(East, FIRST).await;
            (layout["parameters"]["zoneRedundancy"] == json!({"atLeast": 1})).then_some(())
        })
        .await;
    scene.until_running(East, &[FIRST, SECOND]).await;
    let own = scene.writes(East).split_off(before);
    assert_eq!(own[0].body["parameters"], json!({"zoneRedundancy": {"atLeast": 1}}));
    assert_eq!(own.len(), 2, "one Update, one Apply: {own:?}");
}
