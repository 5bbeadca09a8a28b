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
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::{Value, json};

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, auto_nodes, manual_nodes};

const NAME: &str = "old_writer_returns";

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
    vec![
        Cell::subject(NAME, "undemoted")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .expects("one-writer-per-term")
            .claims(
                "two sites that are declared Writer both write: the hazard that the field is there to avoid",
                &["failure-two-writers", "fact-apply-race"],
            )
            .claims("both sites tell that another one makes versions", &["d8-foreign", "transition-foreign"])
            .claims(
                "no acknowledgement keeps a promotion from being admitted while the old writer is declared",
                &["d6-no-ack", "transition-promotion"],
            ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        world.settled(&Cluster::auto(Role::Follower, 1), 0).await?;
        // One writes while the other one is kept from it: who writes when is then no matter of chance.
        let west_writes = json!({"caller": "west", "method": "POST", "path": "/v2/UpdateClusterLayout"});
        let held = world.rule(&west_writes, 0, &json!({"kind": "answer", "status": 503})).await?;
        world.partition().await?;
        world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
        let nodes = auto_nodes(2);
        world.identity(EAST, &nodes[1]).await?;
        world.declare(Some(Role::Writer), Some(Role::Writer));
        world.set_role(EAST, "Writer").await?;
        world.in_layout(EAST, from_ref(&nodes[1])).await?;
        world.reconciles(EAST, &nodes).await?;
        world.heal().await?;
        let version = world.layout(EAST, &nodes[0]).await?.version;
        // What is settled is looked at again after minutes only.
        world.holds_version(WEST, &manual_nodes(1)[0], version).await?;
        world.reconciles(WEST, &manual_nodes(1)).await?;
        world
            .cluster_field(WEST, "/status/layoutVersion", "the other writer's version", |seen| {
                seen.and_then(Value::as_u64).is_some_and(|seen| seen >= version)
            })
            .await?;

        world.condition(WEST, "ForeignLayoutWriter", "True", "UnknownLayoutVersion").await?;
        let east_calls = json!({"caller": "east", "method": "POST", "path": "/v2/UpdateClusterLayout"});
        let other = world.rule(&east_calls, 0, &json!({"kind": "answer", "status": 503})).await?;
        let before = world.writes_of(WEST)?;
        world.end_rule(held).await?;
        world.change(WEST, &json!({"storage": {"tags": ["again"]}})).await?;
        world
            .cluster_field(WEST, "/status/layoutVersion", "a version of its own", |seen| {
                seen.and_then(Value::as_u64).is_some_and(|seen| seen > version)
            })
            .await?;
        let after = world.writes_of(WEST)?;
        world.claim(WEST, "the returned writer writes", after > before, || format!("{after} writes"))?;

        world.holds_version(EAST, &nodes[0], version + 1).await?;
        world.reconciles(EAST, &nodes).await?;
        world.condition(EAST, "ForeignLayoutWriter", "True", "UnknownLayoutVersion").await?;

        world.step("demote the returned writer");
        world.set_role(WEST, "Follower").await?;
        world.declare(Some(Role::Writer), Some(Role::Follower));
        world.condition(WEST, "LayoutWriter", "False", "FollowerSite").await?;
        world.end_rule(other).await?;
        world.reconciles(EAST, &nodes).await?;
        world.stays_quiet(WEST, &manual_nodes(1)).await
    }
    .boxed()
}
