//! An API server is away for a moment, and with it the history of every watch.
//!
//! Stimulus: kube-apiserver ends and is started again in the midst of a new node, a scale-down or a switch. Ends on: the
//! same end as without the outage.

use std::slice::from_ref;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Disturbance, Disturbs, Scenario, Scope};
use harness::site::Site;
use serde_json::json;

use super::planned_switch;
use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, auto_nodes, declared, manual_nodes};

const NAME: &str = "api_outage";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 11,
        about: "an API server that is restarted loses nobody's place",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    let cell = |name, claim| {
        Cell::subject(NAME, name)
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .disturbs(Disturbs::Site)
            .claims(claim, &["enforce-pending", "failure-writer-down"])
    };
    vec![
        cell(
            "new-node",
            "a Follower whose API server was restarted still waits for the writer, and gets its role",
        ),
        cell(
            "scale-down",
            "a Follower whose API server was restarted still holds the node, and lets it go in the end",
        ),
        cell("switch", "a demotion and a promotion are seen by operators whose API servers were restarted"),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let shrinks = cell.name == "scale-down";
        world.settled(&Cluster::auto(Role::Follower, if shrinks { 2 } else { 1 }), 0).await?;
        let wanted = if shrinks { 1 } else { 2 };
        world.change(EAST, &json!({"storage": {"replicas": wanted}})).await?;
        let nodes = auto_nodes(2);
        let reason = if shrinks { "PendingRoleRemoval" } else { "NodesWithoutRole" };
        world.condition(EAST, "AwaitingLayoutWriter", "True", reason).await?;
        world.identity(EAST, &nodes[1]).await?;
        outage(&world, EAST).await?;
        world.stays_quiet(EAST, &nodes).await?;
        match cell.name {
            "switch" => {
                world.declare_nodes(EAST, &manual_nodes(1)).await?;
                outage(&world, WEST).await?;
                planned_switch::switch(&world, WEST, EAST).await?;
                world.in_layout(EAST, from_ref(&nodes[1])).await
            }
            "scale-down" => {
                world.node_is_held(EAST, &nodes[1]).await?;
                world.delete_node(WEST, &declared(EAST, &nodes[1])).await?;
                world.node_gone(EAST, &nodes[1]).await
            }
            _ => {
                world.declare_nodes(WEST, from_ref(&nodes[1])).await?;
                world.in_layout(EAST, from_ref(&nodes[1])).await
            }
        }
    }
    .boxed()
}

async fn outage(world: &World<'_>, site: Site) -> Result<(), Failure> {
    world.scope.disturb(site, Disturbance::EndApiServer { site }).await?;
    world.scope.disturb(site, Disturbance::ReviveApiServer { site }).await
}
