//! Scale-down: one replica less.
//!
//! Ends on: the last node out of the layout, then gone. On a Follower first on
//! `AwaitingLayoutWriter=True/PendingRoleRemoval` with finalizer and workload held, and on the end by itself once the
//! writer has removed the role.

use std::pin::pin;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Either, select};
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, declared};

const NAME: &str = "scale_down";
/// By which the blocks of a node that goes are proved elsewhere (Garage admin reference §5).
const REPAIR: &str = "/v2/LaunchRepairOperation";
/// Read in every pass over a node whose role is gone.
const HISTORY: &str = "/v2/GetClusterLayoutHistory";
/// More passes than the proof of its blocks takes.
const LOOKS: usize = 6;

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 2,
        about: "a Writer removes the role of the node that goes; a Follower holds the node until the writer has",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("the Writer takes the role away, proves the blocks, and lets the node go", &["matrix-remove"]),
        Cell::control(NAME, "unsettled").with(EAST, "Writer").claims(
            "the Writer holds the node while an older layout version is live, though its role is gone",
            &["matrix-remove"],
        ),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims("StatefulSet, pod and finalizer are held while the role is there", &["matrix-remove", "d3-wait", "failure-scale-down"])
            .claims("it reports AwaitingLayoutWriter=True/PendingRoleRemoval, stays Ready and looks again by itself", &["condition-awaiting", "condition-ready", "enforce-pending"])
            .claims("once the writer has removed the role it proves the blocks and finishes by itself", &["d3-wait", "e2e-scale-down"])
            .claims("the writer's declaration goes as well, and waits for no proof of a node that others run", &["matrix-remove"]),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field removes the role like a Writer and shows no trace", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let nodes = world.settled(&Cluster::auto(world.role(EAST), 2), 0).await?;
        if cell.name == "unsettled" {
            return unsettled(&world, &nodes).await;
        }
        let (stays, goes) = (&nodes[0], &nodes[1]);
        let id = world.identity(EAST, goes).await?;
        let ready = world.watch_ready(EAST);
        world.change(EAST, &json!({"storage": {"replicas": 1}})).await?;
        if world.follows() {
            world.condition(EAST, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await?;
            world.node_condition(EAST, goes, "DrainPrepared", "False", "PreparationBlocked").await?;
            world.looks_again(EAST).await?;
            world.stays_quiet(EAST, &nodes).await?;
            world.node_is_held(EAST, goes).await?;
            world.delete_node(WEST, &declared(EAST, goes)).await?;
        }
        world.node_gone(EAST, goes).await?;
        world.has_role(EAST, stays, &id, false).await?;
        world.has_called(EAST, REPAIR, 0)?;
        if world.follows() {
            world.node_gone(WEST, &declared(EAST, goes)).await?;
            world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
            world.stayed_ready(&ready)?;
        } else {
            world.tells_no_foreign_writer(EAST, 2).await?;
        }
        world.shows_role(EAST).await
    }
    .boxed()
}

/// The node that stays does not say that it has what the new version places on it.
async fn unsettled(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    let (stays, goes) = (&nodes[0], &nodes[1]);
    let held = json!({"action": "hold-trackers", "node": world.hub_name(EAST, stays)});
    let held = world.begin_fault(&held).await?;
    world.change(EAST, &json!({"storage": {"replicas": 1}})).await?;
    world.holds_version(EAST, stays, 2).await?;
    let before = world.count_of(EAST, HISTORY)?;
    let looks = pin!(world.called(EAST, HISTORY, before + LOOKS));
    // An operator that does not wait lets the node go instead.
    if let Either::Left((looked, _)) = select(looks, pin!(world.node_gone(EAST, goes))).await {
        looked?;
    }
    world.node_is_held(EAST, goes).await?;
    world.end_fault(held).await?;
    world.node_gone(EAST, goes).await
}
