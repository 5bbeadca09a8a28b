//! The zone redundancy of the spec changes.
//!
//! Ends on: the parameter in the layout, written by a Writer; on a Follower on
//! `AwaitingLayoutWriter=True/ReplicationChange` until the writer changes it as well.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::{Value, json};

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World};

const NAME: &str = "replication_change";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 5,
        about: "a changed zone redundancy is written by a Writer; a Follower reports that it waits",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("the Writer stages and applies the parameter", &["matrix-factor"]),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "the Follower reports AwaitingLayoutWriter=True/ReplicationChange and writes nothing",
                &["matrix-factor", "condition-awaiting", "transition-replication", "deviation-zone-drift"],
            )
            .claims("nothing is pending once the writer has changed it, too", &["deviation-reasons"]),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field writes the parameter like a Writer", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let nodes = world.settled(&Cluster::auto(world.role(EAST), 1), 0).await?;
        let ready = world.watch_ready(EAST);
        let one_zone = json!({"replication": {"zoneRedundancyMode": "AtLeast", "zoneRedundancyMinZones": 1}});
        let version = world.layout(EAST, &nodes[0]).await?.version;
        world.change(EAST, &one_zone).await?;
        if world.follows() {
            world.condition(EAST, "AwaitingLayoutWriter", "True", "ReplicationChange").await?;
            world.looks_again(EAST).await?;
            world.stays_quiet(EAST, &nodes).await?;
            world.change(WEST, &one_zone).await?;
        }
        world
            .cluster_field(EAST, "/status/layoutVersion", "a further layout version", |seen| {
                seen.and_then(Value::as_u64).is_some_and(|seen| seen > version)
            })
            .await?;
        let parameters = world.layout(EAST, &nodes[0]).await?.parameters;
        let written = parameters["zoneRedundancy"] == json!({"atLeast": 1});
        world.claim(EAST, "the layout has the new zone redundancy", written, || parameters.to_string())?;
        if world.follows() {
            world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
            world.stayed_ready(&ready)?;
        }
        world.shows_role(EAST).await
    }
    .boxed()
}
