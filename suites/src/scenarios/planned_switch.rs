//! A planned switch of the writer, and back.
//!
//! Stimulus: the writer is demoted and says so, then the other site is promoted; a new node on the promoted site shows
//! that it writes, one on the demoted site that it waits. Then the same the other way round.

use std::slice::from_ref;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use harness::site::Site;
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, auto_nodes, manual_nodes};

const NAME: &str = "planned_switch";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 7,
        about: "the writer is demoted, the other site promoted, and back; one site writes at a time",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::subject(NAME, "there-and-back")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "a demotion takes effect with the status that tells it, and no write follows",
                &["transition-mutable", "status-role"],
            )
            .claims("the promoted site assigns what waited", &["transition-promotion", "d6-no-ack"])
            .claims("both roles can be given back", &["transition-mutable"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        world.settled(&Cluster::auto(Role::Follower, 1), 0).await?;
        // The new writer will have to know the other site's nodes as well.
        world.declare_nodes(EAST, &manual_nodes(1)).await?;
        world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
        let nodes = auto_nodes(2);
        world.identity(EAST, &nodes[1]).await?;
        world.condition(EAST, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;

        switch(&world, WEST, EAST).await?;
        world.in_layout(EAST, from_ref(&nodes[1])).await?;
        world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
        settle(&world, EAST, &nodes, &manual_nodes(1)).await?;
        world.stays_quiet(WEST, &manual_nodes(1)).await?;

        switch(&world, EAST, WEST).await?;
        world.declare_nodes(WEST, from_ref(&nodes[1])).await?;
        settle(&world, WEST, &manual_nodes(1), &nodes).await?;
        world.stays_quiet(EAST, &nodes).await
    }
    .boxed()
}

/// The writer `from` is demoted and confirms it, then `to` is promoted.
pub(super) async fn switch(world: &World<'_>, from: Site, to: Site) -> Result<(), Failure> {
    world.set_role(from, "Follower").await?;
    world.declare(Some(Role::Follower), Some(Role::Follower));
    world.condition(from, "LayoutWriter", "False", "FollowerSite").await?;
    let role = |site| Some(if site == to { Role::Writer } else { Role::Follower });
    world.declare(role(EAST), role(WEST));
    world.set_role(to, "Writer").await?;
    world.condition(to, "LayoutWriter", "True", "WriterSite").await.map(drop)
}

/// The new writer brings the roles that it declares into the layout, then has nothing more to do. `theirs` are the nodes
/// of the other site.
async fn settle(world: &World<'_>, site: Site, nodes: &[String], theirs: &[String]) -> Result<(), Failure> {
    world.condition(site, "Ready", "True", "ClusterReady").await?;
    world.bears_roles(site, site, nodes).await?;
    world.bears_roles(site, site.other(), theirs).await?;
    world.reconciles(site, nodes).await?;
    world.stays_quiet(site, nodes).await
}
