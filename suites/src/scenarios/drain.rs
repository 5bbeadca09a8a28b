//! Drain: a node is prepared for its deletion by an annotation.
//!
//! Ends on: `DrainPrepared=True/PreparedForDeletion`, its role gone and its pod still there. On a Follower first on
//! `DrainPrepared=False/PreparationBlocked`, until the writer has removed the role.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, declared};

const NAME: &str = "drain";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 2,
        about: "a Writer prepares a node for deletion; a Follower waits until the writer has removed the role",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("the Writer takes the role away and says that the node is prepared", &["matrix-remove"]),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "the Follower stages no removal and says that it waits for the writer",
                &["matrix-remove", "condition-awaiting"],
            )
            .claims("no drain is recorded that it could not finish", &["enforce-pending"])
            .claims("once the writer has removed the role the node is prepared", &["d3-wait"]),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field drains like a Writer and shows no trace", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let nodes = world.settled(&Cluster::manual(world.role(EAST)), 2).await?;
        let (stays, goes) = (&nodes[0], &nodes[1]);
        let id = world.identity(EAST, goes).await?;
        let ready = world.watch_ready(EAST);
        world.annotate_node(EAST, goes, &[("drain", "true")]).await?;
        if world.follows() {
            world.node_condition(EAST, goes, "DrainPrepared", "False", "PreparationBlocked").await?;
            world.condition(EAST, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await?;
            world.looks_again(EAST).await?;
            world.stays_quiet(EAST, &nodes).await?;
            world
                .cluster_field(EAST, "/status/storageDrain", "no recorded drain", |drain| drain.is_none())
                .await?;
            world.has_role(EAST, stays, &id, true).await?;
            world.delete_node(WEST, &declared(EAST, goes)).await?;
        }
        world.node_condition(EAST, goes, "DrainPrepared", "True", "PreparedForDeletion").await?;
        world.has_role(EAST, stays, &id, false).await?;
        world.pod_runs(EAST, goes).await?;
        if world.follows() {
            world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
            world.stayed_ready(&ready)?;
        }
        world.shows_role(EAST).await
    }
    .boxed()
}
