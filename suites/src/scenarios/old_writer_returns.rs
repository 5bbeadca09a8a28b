//! The former writer comes back and is still declared Writer.
//!
//! Stimulus: the sites are separated, the follower is promoted and writes, the old writer was never demoted; then they
//! meet again and the old writer writes, too. Ends on: two writers, in the history and said by the run.

use std::slice::from_ref;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Disturbs, Scenario, Scope};
use harness::site::Site;
use serde_json::{Value, json};

use super::operator_restart;
use crate::fixture::cluster::Cluster;
use crate::world::fault::Rule;
use crate::world::{EAST, WEST, World, auto_nodes, manual_nodes};

const NAME: &str = "old_writer_returns";
const APPLY: &str = "/v2/ApplyClusterLayout";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 7,
        about: "the former writer returns undemoted: two writers, and the run says so",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    let cell = |name| {
        Cell::subject(NAME, name)
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .expects("one-writer-per-term")
            .claims("both sites tell that another one makes versions", &["d8-foreign", "transition-foreign"])
    };
    vec![
        cell("undemoted")
            .claims(
                "two sites that are declared Writer both write: the hazard that the field is there to avoid",
                &["failure-two-writers", "fact-apply-race"],
            )
            .claims(
                "no acknowledgement keeps a promotion from being admitted while the old writer is declared",
                &["d6-no-ack", "transition-promotion"],
            ),
        cell("restarted").disturbs(Disturbs::Operator).claims(
            "operators that were restarted in between know what they applied and what they did not",
            &["d8-foreign"],
        ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        world.settled(&Cluster::auto(Role::Follower, 1), 0).await?;
        let nodes = auto_nodes(2);
        let west_is_kept = keep_from_writing(&world, "west").await?;
        world.partition().await?;
        take_over(&world, &nodes).await?;
        restart(&world, WEST).await?;
        world.heal().await?;
        let version = world.layout(EAST, &nodes[0]).await?.version;
        west_sees(&world, version).await?;

        let east_is_kept = keep_from_writing(&world, "east").await?;
        west_writes(&world, version, west_is_kept).await?;
        // The operator asks any of its nodes.
        for node in &nodes {
            world.holds_version(EAST, node, version + 1).await?;
        }
        restart(&world, EAST).await?;
        world.reconciles(EAST, &nodes).await?;
        world.condition(EAST, "ForeignLayoutWriter", "True", "UnknownLayoutVersion").await?;

        world.step("demote the returned writer");
        world.set_role(WEST, "Follower").await?;
        world.declare(Some(Role::Writer), Some(Role::Follower));
        world.condition(WEST, "LayoutWriter", "False", "FollowerSite").await?;
        restart(&world, WEST).await?;
        world.end_rule(east_is_kept).await?;
        // What the returned writer took from it the other one takes back as soon as it may: that is no quiet time yet.
        world.bears_roles(EAST, EAST, &nodes).await?;
        world.reconciles(EAST, &nodes).await?;
        world.stays_quiet(WEST, &manual_nodes(1)).await
    }
    .boxed()
}

/// One writes while the other one is kept from it: who writes when is then no matter of chance.
async fn keep_from_writing(world: &World<'_>, caller: &str) -> Result<Rule, Failure> {
    let writes = json!({"caller": caller, "method": "POST", "path": "/v2/UpdateClusterLayout"});
    world.rule(&writes, 0, &json!({"kind": "answer", "status": 503})).await
}

/// In the cell that is about restarts the operator of `site` is restarted.
async fn restart(world: &World<'_>, site: Site) -> Result<(), Failure> {
    if world.cell.name == "restarted" { operator_restart::restart(world, site).await } else { Ok(()) }
}

/// The follower is promoted while the sites are separated, and gives a node its role.
async fn take_over(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
    world.identity(EAST, &nodes[1]).await?;
    world.declare(Some(Role::Writer), Some(Role::Writer));
    world.set_role(EAST, "Writer").await?;
    world.in_layout(EAST, from_ref(&nodes[1])).await?;
    world.reconciles(EAST, nodes).await
}

/// The old writer sees that somebody else made `version`.
async fn west_sees(world: &World<'_>, version: u64) -> Result<(), Failure> {
    // What is settled is looked at again after minutes only.
    world.holds_version(WEST, &manual_nodes(1)[0], version).await?;
    world.reconciles(WEST, &manual_nodes(1)).await?;
    world
        .cluster_field(WEST, "/status/layoutVersion", "the other writer's version", |seen| {
            seen.and_then(Value::as_u64).is_some_and(|seen| seen >= version)
        })
        .await?;
    world.condition(WEST, "ForeignLayoutWriter", "True", "UnknownLayoutVersion").await.map(drop)
}

/// The old writer makes a version after `version` as soon as it is let: for what it wanted all along, or for its new tag.
async fn west_writes(world: &World<'_>, version: u64, west_is_kept: Rule) -> Result<(), Failure> {
    let before = world.count_of(WEST, APPLY)?;
    world.change(WEST, &json!({"storage": {"tags": ["again"]}})).await?;
    world.end_rule(west_is_kept).await?;
    world
        .cluster_field(WEST, "/status/layoutVersion", "a version of its own", |seen| {
            seen.and_then(Value::as_u64).is_some_and(|seen| seen > version)
        })
        .await?;
    let after = world.count_of(WEST, APPLY)?;
    world.claim(WEST, "the returned writer writes", after > before, || format!("{after} applies"))
}
