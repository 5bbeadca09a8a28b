//! Federation: the writer declares the follower's nodes, and every node gets its role from the writer.
//!
//! Stimulus: external GarageNodes at the writer's site for the nodes that the other site runs. Ends on: all nodes of both
//! sites in one layout, and two completed reconciles of both sites later no further write.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, declared};

const NAME: &str = "federation_import";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 1,
        about: "the writer declares the follower's nodes; all nodes get roles, every write is the writer's",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer").with(EAST, "Writer").with(WEST, "Follower").claims(
            "the Writer stages and applies the declared roles of the other site's nodes",
            &["d2-external", "matrix-assign", "matrix-import"],
        ),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "the writer's roles arrive through gossip, and the Follower stages nothing",
                &["matrix-import", "d2-external", "e2e-writer-assigns"],
            )
            .claims("it connects its nodes to the other site all the same", &["matrix-connect"]),
        // A Writer does take them over: `field_bugs/imported-tags`.
        Cell::subject(NAME, "apart").with(EAST, "Follower").with(WEST, "Writer").claims(
            "roles that the Follower reads from the other site before gossip brings them are not taken over",
            &["matrix-import", "fact-zero-writes"],
        ),
        Cell::control(NAME, "absent").with(EAST, "Absent").with(WEST, "Follower").claims(
            "a site without the field assigns the declared roles like a Writer and shows no trace",
            &["compat-absent"],
        ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        if cell.name == "apart" {
            return apart(&world).await;
        }
        let east = Cluster::manual(world.role(EAST)).factor(2);
        let west = Cluster::manual(world.role(WEST)).factor(2);
        let (at_east, at_west) =
            futures::try_join!(world.start(EAST, &east, 2), world.start(WEST, &west, 2))?;
        let (writer, follower) = if world.follows() { (WEST, EAST) } else { (EAST, WEST) };
        let (own, theirs) = if world.follows() { (&at_west, &at_east) } else { (&at_east, &at_west) };
        world.declare_nodes(writer, theirs).await?;
        let mut all = own.clone();
        all.extend(theirs.iter().map(|name| declared(follower, name)));
        futures::try_join!(world.in_layout(writer, &all), world.in_layout(follower, theirs))?;
        world.condition(follower, "AwaitingLayoutWriter", "False", "NothingPending").await?;
        world.stays_quiet(follower, theirs).await?;
        world.stays_quiet(writer, &all).await?;
        world.shows_role(EAST).await?;
        world.holds_roles(EAST, &at_east, 4).await?;
        world.holds_roles(WEST, &at_west, 4).await
    }
    .boxed()
}

/// The sites do not see each other while the writer makes the first layout: the other one can read it there all the same.
async fn apart(world: &World<'_>) -> Result<(), Failure> {
    let stagings = json!({"caller": "west", "method": "POST", "path": "/v2/UpdateClusterLayout"});
    let held = world.rule(&stagings, 0, &json!({"kind": "answer", "status": 503})).await?;
    let (east, west) = (Cluster::manual(world.role(EAST)), Cluster::manual(world.role(WEST)));
    let (at_east, at_west) = futures::try_join!(world.start(EAST, &east, 1), world.start(WEST, &west, 1))?;
    world.partition().await?;
    world.end_rule(held).await?;
    world.in_layout(WEST, &at_west).await?;

    world.condition(EAST, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;
    world.reconciles(EAST, &at_east).await?;
    world.stays_quiet(EAST, &at_east).await?;
    world.holds_roles(EAST, &at_east, 0).await?;

    world.heal().await?;
    world.declare_nodes(WEST, &at_east).await?;
    world.in_layout(EAST, &at_east).await?;
    world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
    world.holds_roles(EAST, &at_east, 2).await
}
