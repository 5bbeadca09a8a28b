//! Faults of Garage while something is under way: answers that fail, connections that break, nodes that hang, clocks
//! that differ, sites that do not see each other.
//!
//! Stimulus: a new node, a scale-down or a switch of the writer, with the fault in its midst. Ends on: the same end as without the fault, and on a
//! Follower without a layout write.

use std::slice::from_ref;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::{Value, json};

use super::planned_switch;
use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, auto_nodes, declared, manual_nodes};

const NAME: &str = "garage_faults";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 11,
        about: "faults of Garage delay what is under way, and change nothing else",
        cells,
        run,
    }
}

/// Faults of layout writes, at a Writer, in the midst of each stimulus.
const WRITES: [[&str; 3]; 6] = [
    ["unavailable-new-node", "unavailable-scale-down", "unavailable-switch"],
    ["wrong-version-new-node", "wrong-version-scale-down", "wrong-version-switch"],
    ["dropped-new-node", "dropped-scale-down", "dropped-switch"],
    ["lost-answer-new-node", "lost-answer-scale-down", "lost-answer-switch"],
    ["frozen-new-node", "frozen-scale-down", "frozen-switch"],
    ["clock-skew-new-node", "clock-skew-scale-down", "clock-skew-switch"],
];
/// Faults of reads, and between the sites, at a Follower.
const READS: [[&str; 3]; 3] = [
    ["unreadable-new-node", "unreadable-scale-down", "unreadable-switch"],
    ["partition-new-node", "partition-scale-down", "partition-switch"],
    ["broken-off-new-node", "broken-off-scale-down", "broken-off-switch"],
];

fn cells() -> Vec<Cell> {
    let writer = |name| {
        Cell::control(NAME, name)
            .with(EAST, "Writer")
            .claims("the Writer comes to the same end as without the fault", &["enforce-pending"])
    };
    let follower = |name| {
        Cell::subject(NAME, name).with(EAST, "Follower").with(WEST, "Writer").claims(
            "the Follower comes to the same end and writes nothing, whatever fails",
            &["enforce-guard", "fact-zero-writes"],
        )
    };
    let switch = |name| {
        Cell::subject(NAME, name).with(EAST, "Follower").with(WEST, "Writer").claims(
            "the promoted site does what waited, whatever fails, and the demoted one writes nothing",
            &["transition-promotion", "enforce-pending"],
        )
    };
    let raced = |cell: Cell| {
        cell.expects("staged-changes-kept").claims(
            "an apply that is answered 200 and then dropped is found out and made good",
            &["fact-apply-race"],
        )
    };
    let writers = WRITES
        .into_iter()
        .flat_map(|[grows, shrinks, turns]| [writer(grows), writer(shrinks), switch(turns)]);
    let followers = READS
        .into_iter()
        .flat_map(|[grows, shrinks, turns]| [follower(grows), follower(shrinks), switch(turns)]);
    let raced =
        [raced(Cell::control(NAME, "raced-new-node").with(EAST, "Writer")), raced(switch("raced-switch"))];
    writers.chain(followers).chain(raced).collect()
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        if cell.name.ends_with("switch") {
            return switch(&world).await;
        }
        let shrinks = cell.name.ends_with("scale-down");
        let nodes = world.settled(&Cluster::auto(world.role(EAST), if shrinks { 2 } else { 1 }), 0).await?;
        begin(&world, &nodes[0]).await?;
        let wanted = if shrinks { 1 } else { 2 };
        world.change(EAST, &json!({"storage": {"replicas": wanted}})).await?;
        let last = auto_nodes(2).remove(1);
        if world.follows() {
            let reason = if shrinks { "PendingRoleRemoval" } else { "NodesWithoutRole" };
            world.condition(EAST, "AwaitingLayoutWriter", "True", reason).await?;
            end(&world, &nodes[0]).await?;
            if shrinks {
                world.node_is_held(EAST, &last).await?;
                world.delete_node(WEST, &declared(EAST, &last)).await?;
            } else {
                world.declare_nodes(WEST, from_ref(&last)).await?;
            }
        } else {
            end(&world, &nodes[0]).await?;
        }
        if shrinks {
            world.node_gone(EAST, &last).await
        } else {
            world.in_layout(EAST, from_ref(&last)).await
        }
    }
    .boxed()
}

/// The writer is switched while a node waits for it, with the fault from before the switch until after it.
async fn switch(world: &World<'_>) -> Result<(), Failure> {
    let first = world.settled(&Cluster::auto(world.role(EAST), 1), 0).await?.remove(0);
    world.declare_nodes(EAST, &manual_nodes(1)).await?;
    world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
    let last = auto_nodes(2).remove(1);
    world.identity(EAST, &last).await?;
    world.condition(EAST, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;
    begin(world, &first).await?;
    planned_switch::switch(world, WEST, EAST).await?;
    let separated = fault(world.cell) == "partition";
    if !separated {
        end(world, &first).await?;
    }
    world.in_layout(EAST, from_ref(&last)).await?;
    if separated {
        // What was decided while they did not see each other is the other site's, too, once they do.
        let version = world.layout(EAST, &first).await?.version;
        end(world, &first).await?;
        world.holds_version(WEST, &manual_nodes(1)[0], version).await?;
    }
    world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
    world.condition(WEST, "LayoutWriter", "False", "FollowerSite").await.map(drop)
}

fn fault(cell: &Cell) -> &'static str {
    let suffixes = ["-scale-down", "-new-node", "-switch"];
    suffixes.into_iter().find_map(|suffix| cell.name.strip_suffix(suffix)).unwrap_or(cell.name)
}

/// Begins the fault of the cell; those on single calls end by themselves.
async fn begin(world: &World<'_>, node: &str) -> Result<(), Failure> {
    let write = |path: &str| json!({"caller": "east", "method": "POST", "path": path});
    let read = |path: &str| json!({"caller": "east", "method": "GET", "path": path});
    let (update, apply) = ("/v2/UpdateClusterLayout", "/v2/ApplyClusterLayout");
    let wrong = json!({"code": "InternalError", "message": "Internal error: Invalid new layout version"});
    let rule = |pattern: Value, count, effect: Value| async move {
        world.rule(&pattern, count, &effect).await.map(drop)
    };
    match fault(world.cell) {
        "unavailable" => rule(write(update), 2, json!({"kind": "answer", "status": 503})).await,
        "wrong-version" => {
            rule(write(apply), 2, json!({"kind": "answer", "status": 500, "body": wrong})).await
        }
        "dropped" => rule(write(update), 2, json!({"kind": "drop"})).await,
        "lost-answer" => rule(write(apply), 1, json!({"kind": "drop", "perform": true})).await,
        "raced" => rule(write(apply), 1, json!({"kind": "lose-race"})).await,
        "unreadable" => rule(read("/v2/GetClusterLayout"), 4, json!({"kind": "answer", "status": 503})).await,
        "broken-off" => rule(read("/v2/GetClusterStatus"), 4, json!({"kind": "drop"})).await,
        "partition" => world.partition().await,
        "clock-skew" => {
            let node = world.hub_name(EAST, node);
            world.fault(&json!({"action": "clock", "node": node, "offsetMs": -3_600_000})).await
        }
        _ => world.fault(&json!({"action": "freeze", "node": world.hub_name(EAST, node)})).await,
    }
}

async fn end(world: &World<'_>, node: &str) -> Result<(), Failure> {
    match fault(world.cell) {
        "partition" => world.heal().await,
        "frozen" => {
            // It must have been missed before it goes on.
            world.condition(EAST, "Ready", "False", "GarageUnreachable").await?;
            world.fault(&json!({"action": "resume", "node": world.hub_name(EAST, node)})).await
        }
        _ => Ok(()),
    }
}
