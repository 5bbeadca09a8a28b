//! Rollout: the image of all nodes changes.
//!
//! Ends on: every pod replaced, one after the other, on its old volumes; nobody writes the layout.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::objects;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World};

const NAME: &str = "rollout";
const IMAGE: &str = "dxflrs/garage:v2.5.0";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 2,
        about: "pods are rolled whatever the role, on their old volumes, without a layout write",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("the Writer rolls its pods and keeps their volumes and roles", &["matrix-workloads"]),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "the Follower rolls its pods, keeps their volumes, and writes nothing",
                &["matrix-workloads", "fact-zero-writes"],
            )
            .claims("a restarted node is not taken for one without a role", &["condition-awaiting"]),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field rolls its pods as before", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let volume = |size| json!({"type": "PersistentVolumeClaim", "size": size});
        let cluster = Cluster::auto(world.role(EAST), 2)
            .spec(&json!({"storage": {"metadata": volume("1Gi"), "data": volume("10Gi")}}));
        let nodes = world.settled(&cluster, 0).await?;
        let before = claims(&world).await?;
        world.claim(EAST, "each node has two claims", before.len() == 4, || format!("{before:?}"))?;
        let writes = world.writes_of(EAST)?;
        let mut pods = Vec::new();
        for node in &nodes {
            pods.push(world.pod(EAST, node).await?.uid());
        }
        world.change(EAST, &json!({"image": IMAGE})).await?;
        for (node, old) in nodes.iter().zip(&pods) {
            world
                .pod_until(EAST, node, "of the new revision", |pod| match pod {
                    Some(pod) if pod.uid() != *old => Ok(()),
                    Some(_) => Err("it is the old pod".to_owned()),
                    None => Err("it is gone".to_owned()),
                })
                .await?;
        }
        world
            .cluster_field(EAST, "/status/storageRollout", "no rollout under way", |rollout| {
                rollout.is_none()
            })
            .await?;
        world.condition(EAST, "Ready", "True", "ClusterReady").await?;
        world.in_layout(EAST, &nodes).await?;
        world.stays_quiet(EAST, &nodes).await?;
        let after = claims(&world).await?;
        world.claim(EAST, "the claims are the same", after == before, || {
            format!("{before:?}, then {after:?}")
        })?;
        let now = world.writes_of(EAST)?;
        world.claim(EAST, "a rollout writes no layout", now == writes, || {
            format!("{} writes", now - writes)
        })?;
        if world.follows() {
            let cluster = world.cluster(EAST).await?;
            let awaiting = objects::condition(&cluster, "AwaitingLayoutWriter");
            let claim = "nothing waits for the writer after a rollout";
            world.claim(EAST, claim, awaiting == Some(("False", "NothingPending")), || {
                format!("{awaiting:?}")
            })?;
        }
        world.shows_role(EAST).await
    }
    .boxed()
}

/// Claims of volumes with their identities.
async fn claims(world: &World<'_>) -> Result<Vec<(String, Option<String>)>, Failure> {
    let api: Api<PersistentVolumeClaim> = Api::namespaced(world.scope.client(EAST), &world.scope.namespace);
    let list = api.list(&ListParams::default()).await;
    let list = list.map_err(|error| Failure::harness(EAST, "list the claims", error))?;
    Ok(list.items.iter().map(|claim| (claim.name_any(), claim.uid())).collect())
}
