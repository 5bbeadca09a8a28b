//! What is under way when the operator dies.

use std::pin::Pin;

use harness::site::Site::East;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::stage::cases::{FIRST, SECOND, THIRD};
use crate::stage::garage::removal;
use crate::stage::{Role, Scene};

type Step = for<'a> fn(&'a Scene) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A procedure: what there is before, what is asked for, and when it has ended.
#[derive(Clone, Copy)]
pub struct Procedure {
    /// Its name.
    pub name: &'static str,
    /// It takes at least so many writes.
    pub fewest: usize,
    role: Role,
    before: Step,
    stimulus: Step,
    completion: Step,
}

impl Procedure {
    /// Brings the scene to where the procedure begins, and asks for it while no operator runs. Answers the layout
    /// version with which it begins.
    pub async fn prepare(&self, scene: &Scene) -> u64 {
        (self.before)(scene).await;
        let begin = match scene.pod(East, FIRST).await {
            Some(_) => scene.layout(East, FIRST).await["version"].as_u64().unwrap(),
            None => 0,
        };
        (self.stimulus)(scene).await;
        begin
    }

    /// Waits for its end.
    pub async fn complete(&self, scene: &Scene) {
        (self.completion)(scene).await;
    }

    /// What holds in the end, whatever happened: a follower never wrote; a writer applied each version once.
    pub fn check(&self, scene: &Scene) {
        if !self.role.writes() {
            return scene.assert_never_wrote(East);
        }
        let applied = scene.writes(East).into_iter().filter(|call| call.path == "ApplyClusterLayout");
        let mut versions: Vec<Value> = applied
            .filter(|call| call.status == Some(200))
            .map(|call| call.body["version"].clone())
            .collect();
        let all = versions.len();
        versions.dedup();
        assert_eq!(versions.len(), all, "a version was applied twice: {versions:?}");
    }
}

pub fn all() -> Vec<Procedure> {
    vec![
        Procedure {
            name: "bootstrap",
            fewest: 15,
            role: Role::Writer,
            before: |_| Box::pin(async {}),
            stimulus: |scene| Box::pin(async { create(scene, Role::Writer).await }),
            completion: |scene| Box::pin(async { running(scene, &[FIRST, SECOND]).await }),
        },
        Procedure {
            name: "scale-down",
            fewest: 5,
            role: Role::Writer,
            before: |scene| Box::pin(async { three(scene, Role::Writer).await }),
            stimulus: |scene| Box::pin(async { scene.scale(East, 2).await }),
            completion: |scene| {
                Box::pin(async {
                    scene.until_node_gone(East, THIRD).await;
                    scene.until_pod_gone(East, THIRD).await;
                    running(scene, &[FIRST, SECOND]).await;
                    scene.until_field(East, "/status/storageDrain", &Value::Null).await;
                })
            },
        },
        Procedure {
            name: "drain",
            fewest: 4,
            role: Role::Writer,
            before: |scene| Box::pin(async { three(scene, Role::Writer).await }),
            stimulus: |scene| Box::pin(async { drain(scene).await }),
            completion: |scene| {
                Box::pin(async {
                    scene
                        .until_node_condition(East, THIRD, "DrainPrepared", "True", "PreparedForDeletion")
                        .await;
                    running(scene, &[FIRST, SECOND]).await;
                })
            },
        },
        Procedure {
            name: "promotion",
            fewest: 4,
            role: Role::Writer,
            before: |scene| Box::pin(async { follower_without_roles(scene).await }),
            stimulus: |scene| Box::pin(async { scene.assign(East, "Writer").await }),
            completion: |scene| Box::pin(async { running(scene, &[FIRST, SECOND]).await }),
        },
        Procedure {
            name: "follower-scale-down",
            fewest: 3,
            role: Role::Follower,
            before: |scene| Box::pin(async { three(scene, Role::Follower).await }),
            stimulus: |scene| Box::pin(async { scene.scale(East, 2).await }),
            completion: |scene| Box::pin(async { removed_by_the_writer(scene).await }),
        },
    ]
}

async fn create(scene: &Scene, role: Role) {
    scene.create_cluster(East, scene.cluster(East, role)).await;
}

async fn running(scene: &Scene, names: &[&str]) {
    scene.until_running(East, names).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
}

/// Three nodes with their layout; the operator that did it is gone.
async fn three(scene: &Scene, role: Role) {
    let operator = scene.with_layout_of(East, role, &[], scene.three_nodes(East, role)).await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    scene.after_two_more_looks(East, &operator).await;
    operator.stop().await;
}

async fn follower_without_roles(scene: &Scene) {
    let operator = scene.operator(East, &[]).await;
    create(scene, Role::Follower).await;
    scene.until_condition(East, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await;
    scene.until_condition(East, "Ready", "True", "ClusterReady").await;
    scene.after_two_more_looks(East, &operator).await;
    operator.stop().await;
    scene.assert_never_wrote(East);
}

async fn drain(scene: &Scene) {
    let drain = json!({"metadata": {"annotations": {"garage.rajsingh.info/drain": "true"}}});
    scene.nodes(East).patch(THIRD, &PatchParams::default(), &Patch::Merge(drain)).await.unwrap();
}

/// The follower waits, the writer of another site removes the role (once), the follower goes on.
async fn removed_by_the_writer(scene: &Scene) {
    if scene.layout(East, FIRST).await["version"] == 1 {
        scene.until_condition(East, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await;
        let id = scene.node_id(East, THIRD).await;
        scene.apply(East, FIRST, json!([removal(&id)])).await;
    }
    scene.until_node_gone(East, THIRD).await;
    scene.until_pod_gone(East, THIRD).await;
    scene.until_condition(East, "AwaitingLayoutWriter", "False", "NothingPending").await;
    running(scene, &[FIRST, SECOND]).await;
}
