//! A node gets another tag.
//!
//! Stimulus: a tag in the spec. Ends on: the tag in the layout, written by a Writer; at a Follower on nothing.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World};

const NAME: &str = "retag";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario { name: NAME, row: 1, about: "a Writer writes a new tag, a Follower does not", cells, run }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("the Writer writes the tag once", &["matrix-assign"]),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims("the Follower writes nothing", &["api-follower", "fact-zero-writes"]),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field writes like a Writer", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let nodes = world.settled(&Cluster::auto(world.role(EAST), 1), 0).await?;
        let before = world.writes_of(EAST)?;

        world.change(EAST, &json!({"storage": {"tags": ["new"]}})).await?;

        world.reconciles(EAST, &nodes).await?;
        world.stays_quiet(EAST, &nodes).await?;
        let writes = world.writes_of(EAST)? - before;
        let expected = if world.follows() { 0 } else { 2 };
        world.claim(EAST, "an update and an apply, or nothing", writes == expected, || writes.to_string())
    }
    .boxed()
}
