//! Somebody else writes the layout (design record, D8): told, never prevented.

use harness::garage::objects::condition;
use harness::site::Site::{East, West};
use libtest_mimic::Trial;
use serde_json::json;

use crate::stage::cases::{FIRST, SECOND};
use crate::stage::garage::role;
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("matrix/foreign-writer/a-version-of-somebody-else", somebody_else),
        trial("matrix/foreign-writer/nobody-through-promotion-crash-and-back", nobody),
        trial("matrix/foreign-writer/absent-says-nothing", absent),
    ]
}

async fn somebody_else(scene: Scene) {
    scene.with_layout(East, Role::Writer, &["--requeue-long=500ms"]).await;
    scene.until_field(East, "/status/layoutWriter/lastAppliedVersion", &json!(1)).await;

    scene.apply(East, FIRST, json!([role(&"ab".repeat(32), "north")])).await;

    scene
        .until_cluster(East, "ForeignLayoutWriter", |cluster| {
            let cluster = cluster.ok_or("it does not exist")?;
            match condition(cluster, "ForeignLayoutWriter") {
                Some(("True", _)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    let cluster = scene.the_cluster(East).await;
    assert_eq!(condition(&cluster, "Ready"), Some(("True", "ClusterReady")), "a detective control");
}

/// With one writer nobody is ever told of another one: not through a handover, a crash, and back.
async fn nobody(scene: Scene) {
    let east = scene.with_layout(East, Role::Writer, &["--requeue-long=500ms"]).await;
    scene.operator(West, &["--requeue-long=500ms"]).await;
    scene.create_cluster(West, scene.cluster(West, Role::Follower)).await;
    scene.until_condition(West, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;
    scene
        .eventually("the layout of east at west", async || {
            (scene.layout(West, FIRST).await["version"] == 1).then_some(())
        })
        .await;

    scene.assign(East, "Follower").await;
    scene.until_condition(East, "LayoutWriter", "False", "FollowerSite").await;
    east.kill().await;
    scene.assign(West, "Writer").await;
    scene.until_running(West, &[FIRST, SECOND]).await;
    let east = scene.operator(East, &["--requeue-long=500ms"]).await;
    scene.after_two_more_looks(East, &east).await;
    scene.assign(West, "Follower").await;
    scene.until_condition(West, "LayoutWriter", "False", "FollowerSite").await;
    scene.assign(East, "Writer").await;
    scene.until_condition(East, "LayoutWriter", "True", "WriterSite").await;
    scene.scale(East, 3).await;
    scene.until_running(East, &["garage-storage-2"]).await;
    scene.after_two_more_looks(East, &east).await;

    for site in [East, West] {
        let cluster = scene.the_cluster(site).await;
        let told = condition(&cluster, "ForeignLayoutWriter").map(|(status, _)| status);
        assert_ne!(told, Some("True"), "{site}: {cluster:?}");
    }
}

async fn absent(scene: Scene) {
    let operator = scene.with_layout(East, Role::Absent, &["--requeue-long=500ms"]).await;
    scene.apply(East, FIRST, json!([role(&"ab".repeat(32), "north")])).await;
    scene.after_two_more_looks(East, &operator).await;
    let cluster = scene.the_cluster(East).await;
    assert_eq!(cluster.data["status"].get("layoutWriter"), None);
    assert_eq!(condition(&cluster, "ForeignLayoutWriter"), None);
}
