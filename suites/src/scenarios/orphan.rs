//! A node whose GarageCluster is gone, because a person took its finalizer away.
//!
//! Stimulus: the cluster is deleted, its Services are let go, its finalizer is removed by hand. Ends on: the node out of
//! the layout, then gone; on a Follower only after the writer has removed the role.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use k8s_openapi::api::core::v1::Service;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::fixture::CLUSTER;
use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, declared};

const NAME: &str = "orphan";
const LAYOUT: &str = "/v2/GetClusterLayout";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 8,
        about: "a node whose cluster is gone acts by the role that was recorded last",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("an orphan of a Writer takes its role out of the layout and goes", &["matrix-remove"]),
        Cell::subject(NAME, "follower").with(EAST, "Follower").with(WEST, "Writer").claims(
            "an orphan of a Follower writes nothing, and is held until the writer has removed its role",
            &["matrix-remove", "d3-wait", "enforce-pending"],
        ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let policy = json!({"deletionPolicy": "Drain"});
        let nodes = world.settled(&Cluster::auto(world.role(EAST), 1).spec(&policy), 0).await?;
        let node = &nodes[0];
        if !world.follows() {
            world.keeper(node).await?;
        }
        // The node is to be an orphan before anything has been done about its role.
        let stagings = json!({"caller": "east", "method": "POST", "path": "/v2/UpdateClusterLayout"});
        let held = world.rule(&stagings, 0, &json!({"kind": "answer", "status": 503})).await?;
        orphan(&world, node).await?;
        let before = world.writes_of(EAST)?;
        world.end_rule(held).await?;
        if world.follows() {
            // An orphan's pass reads the layout alone.
            world.called(EAST, LAYOUT, world.count_of(EAST, LAYOUT)? + 3).await?;
            let writes = world.writes_of(EAST)? - before;
            world.claim(EAST, "the orphan writes nothing", writes == 0, || format!("{writes} writes"))?;
            world.node_is_held(EAST, node).await?;
            world.delete_node(WEST, &declared(EAST, node)).await?;
        }
        world.node_gone(EAST, node).await
    }
    .boxed()
}

/// A person deletes the cluster, keeps the Services through which the node is asked, and takes the cluster's finalizer away.
async fn orphan(world: &World<'_>, node: &str) -> Result<(), Failure> {
    world.delete_cluster(EAST).await?;
    // From then on no pass of the operator makes a Service a dependent again.
    let asked_to_go = |object: Option<&DynamicObject>| {
        let object = object.ok_or("it does not exist")?;
        object.metadata.deletion_timestamp.as_ref().map(drop).ok_or_else(|| "it is to stay".to_owned())
    };
    world.node_until(EAST, node, format!("GarageNode {node} that is asked to go"), asked_to_go).await?;
    world.step(format!(
        "let the Services go and take the finalizer of GarageCluster {CLUSTER} away on {EAST}"
    ));
    let failed = |error| Failure::harness(EAST, "orphan the GarageNode", error);
    let services: Api<Service> = Api::namespaced(world.scope.client(EAST), &world.scope.namespace);
    for service in services.list(&ListParams::default()).await.map_err(failed)? {
        let free = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
        services.patch(&service.name_any(), &PatchParams::default(), &free).await.map_err(failed)?;
    }
    let unheld = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.clusters(EAST).patch(CLUSTER, &PatchParams::default(), &unheld).await.map_err(failed)?;
    world.cluster_gone(EAST).await
}
