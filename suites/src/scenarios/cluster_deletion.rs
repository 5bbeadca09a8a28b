//! Deletion of a GarageCluster, under both policies.
//!
//! Destroy ends on the end of everything without a layout write, whatever the role. Drain ends on the end of everything
//! after the roles are gone: removed by a Writer, awaited by a Follower.

use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join_all};
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, declared};

const NAME: &str = "cluster_deletion";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 2,
        about: "Destroy writes nothing; Drain waits until the roles are gone, and only a Writer removes them",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "destroy-writer").with(EAST, "Writer").claims(
            "under Destroy a cluster goes with its nodes, without a layout write",
            &["matrix-remove"],
        ),
        Cell::subject(NAME, "destroy-follower").with(EAST, "Follower").with(WEST, "Writer").claims(
            "a Follower's cluster goes under Destroy without waiting for the writer",
            &["matrix-remove"],
        ),
        Cell::control(NAME, "destroy-absent")
            .with(EAST, "Absent")
            .claims("a site without the field goes under Destroy as before", &["compat-absent"]),
        Cell::control(NAME, "drain-writer")
            .with(EAST, "Writer")
            .claims("under Drain the Writer takes its roles away before its nodes go", &["matrix-remove"]),
        Cell::subject(NAME, "drain-follower").with(EAST, "Follower").with(WEST, "Writer").claims(
            "under Drain a Follower's nodes are held until the writer has removed their roles",
            &["matrix-remove", "d3-wait", "enforce-pending"],
        ),
        Cell::control(NAME, "drain-absent")
            .with(EAST, "Absent")
            .claims("a site without the field drains like a Writer", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let drains = cell.name.starts_with("drain");
        let policy = json!({"deletionPolicy": if drains { "Drain" } else { "Destroy" }});
        let cluster = Cluster::auto(world.role(EAST), 2).spec(&policy);
        let nodes = world.settled(&cluster, 0).await?;
        if drains { drain(&world, &nodes).await } else { destroy(&world, &nodes).await }
    }
    .boxed()
}

async fn destroy(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    if !world.follows() {
        // Else nothing could be removed anyway.
        world.keeper(&nodes[0]).await?;
    }
    let before = world.writes_of(EAST)?;
    world.delete_cluster(EAST).await?;
    try_join_all(nodes.iter().map(|node| world.node_gone(EAST, node))).await?;
    world.cluster_gone(EAST).await?;
    let after = world.writes_of(EAST)?;
    world.claim(EAST, "Destroy makes no layout write", after == before, || {
        format!("{} layout writes", after - before)
    })
}

async fn drain(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    if world.follows() {
        world.delete_cluster(EAST).await?;
        for node in nodes {
            world.node_condition(EAST, node, "DrainPrepared", "False", "PreparationBlocked").await?;
            world.node_is_held(EAST, node).await?;
        }
        world.looks_again(EAST).await?;
        for node in nodes {
            world.node_is_held(EAST, node).await?;
            world.delete_node(WEST, &declared(EAST, node)).await?;
        }
    } else {
        world.keeper(&nodes[0]).await?;
        world.delete_cluster(EAST).await?;
    }
    try_join_all(nodes.iter().map(|node| world.node_gone(EAST, node))).await?;
    world.cluster_gone(EAST).await
}
