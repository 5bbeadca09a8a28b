//! The writer changes, and changes back: with one writer at a time nobody tells of a foreign one (design record, D8).

use harness::garage::objects::condition;
use harness::site::Site::{East, West};
use libtest_mimic::Trial;

use crate::stage::cases::{FIRST, SECOND};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    vec![trial("matrix/handover/nobody-tells-of-a-foreign-writer", nobody)]
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
