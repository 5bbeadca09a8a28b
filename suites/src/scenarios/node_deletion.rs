//! Deletion of a GarageNode that has a role.
//!
//! Ends on: its role out of the layout, then the node gone. On a Follower the finalizer is held until the writer has
//! removed the role.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, declared};

const NAME: &str = "node_deletion";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 2,
        about: "a deleted node keeps its finalizer until its role is gone, and only a Writer takes that away",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("the Writer takes the role away, then the finalizer", &["matrix-remove"]),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "the Follower holds finalizer, StatefulSet and pod and reports PendingRoleRemoval",
                &["matrix-remove", "d3-wait", "condition-awaiting", "enforce-pending"],
            )
            .claims("the finalizer goes once the writer has removed the role", &["d3-wait"]),
        Cell::control(NAME, "absent").with(EAST, "Absent").claims(
            "a site without the field removes the role like a Writer and shows no trace",
            &["compat-absent"],
        ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let nodes = world.settled(&Cluster::manual(world.role(EAST)), 2).await?;
        let (stays, goes) = (&nodes[0], &nodes[1]);
        let id = world.identity(EAST, goes).await?;
        let ready = world.watch_ready(EAST);
        world.delete_node(EAST, goes).await?;
        if world.follows() {
            world.node_condition(EAST, goes, "DrainPrepared", "False", "PreparationBlocked").await?;
            world.condition(EAST, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await?;
            world.looks_again(EAST).await?;
            world.stays_quiet(EAST, &nodes).await?;
            world.node_is_held(EAST, goes).await?;
            world.has_role(EAST, stays, &id, true).await?;
            world.delete_node(WEST, &declared(EAST, goes)).await?;
        }
        world.node_gone(EAST, goes).await?;
        world.has_role(EAST, stays, &id, false).await?;
        if world.follows() {
            world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
            world.stayed_ready(&ready)?;
        }
        world.shows_role(EAST).await
    }
    .boxed()
}
