//! A new node in a cluster that has a layout.
//!
//! Stimulus: one replica more. Ends on: the new node in the layout; on a Follower first on
//! `AwaitingLayoutWriter=True/NodesWithoutRole`, and on the role once the writer has declared the node.

use std::slice::from_ref;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, auto_nodes};

const NAME: &str = "new_node";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 1,
        about: "a further node gets its role from a Writer; at a Follower it waits for the writer",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("the Writer gives its new node a role", &["matrix-assign"]),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "the Follower starts its new node and stages nothing for it",
                &["matrix-assign", "matrix-workloads"],
            )
            .claims(
                "it reports NodesWithoutRole until the writer declares the node, then NothingPending",
                &["condition-awaiting", "deviation-reasons", "d2-external"],
            )
            .claims("Ready stays true all the while", &["condition-ready"]),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field writes like a Writer and shows no trace", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        world.settled(&Cluster::auto(world.role(EAST), 1), 0).await?;
        let ready = world.watch_ready(EAST);
        world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
        let nodes = auto_nodes(2);
        let new = &nodes[1];
        let id = world.identity(EAST, new).await?;
        if world.follows() {
            world.condition(EAST, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;
            world.looks_again(EAST).await?;
            world.stays_quiet(EAST, &nodes).await?;
            world.has_role(EAST, new, &id, false).await?;
            world.declare_nodes(WEST, from_ref(new)).await?;
            world.in_layout(EAST, from_ref(new)).await?;
            world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
            world.stayed_ready(&ready)?;
        } else {
            world.in_layout(EAST, from_ref(new)).await?;
        }
        world.has_role(EAST, new, &id, true).await?;
        world.shows_role(EAST).await
    }
    .boxed()
}
