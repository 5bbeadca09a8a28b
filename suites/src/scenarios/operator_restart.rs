//! The operator is killed and started again in the midst of a scale-down or a switch of the writer.
//!
//! Ends on: the same end as without the restart, and no write by a Follower that has just been started.

use std::slice::from_ref;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Disturbance, Disturbs, Scenario, Scope};
use harness::site::Site;
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, auto_nodes, declared, manual_nodes};

const NAME: &str = "operator_restart";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 11,
        about: "a restarted operator goes on where it was, and knows its role",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    const SAME: &[&str] = &["enforce-pending", "d3-wait"];
    let subject = |name| {
        Cell::subject(NAME, name).with(EAST, "Follower").with(WEST, "Writer").disturbs(Disturbs::Operator)
    };
    vec![
        subject("scale-down-waiting")
            .claims("a Follower that is restarted while it waits goes on holding the node", SAME),
        subject("scale-down-missed").claims(
            "a Follower that was down when the writer removed the role finishes when it is back",
            SAME,
        ),
        Cell::control(NAME, "drain-proof").with(EAST, "Writer").disturbs(Disturbs::Operator).claims(
            "a Writer that is restarted in the midst of a drain's proof goes on from its record",
            &["matrix-remove"],
        ),
        subject("switch").claims(
            "restarted after each step of a switch, both operators act by the role that is declared then",
            &["transition-mutable", "transition-promotion"],
        ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        match cell.name {
            "switch" => switch(&world).await,
            "drain-proof" => drain_proof(&world).await,
            _ => scale_down(&world).await,
        }
    }
    .boxed()
}

async fn restart(world: &World<'_>, site: Site) -> Result<(), Failure> {
    world.scope.disturb(site, Disturbance::EndOperator { site }).await?;
    world.scope.disturb(site, Disturbance::ReviveOperator { site }).await
}

async fn scale_down(world: &World<'_>) -> Result<(), Failure> {
    let nodes = world.settled(&Cluster::auto(Role::Follower, 2), 0).await?;
    world.change(EAST, &json!({"storage": {"replicas": 1}})).await?;
    world.condition(EAST, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await?;
    let missed = world.cell.name == "scale-down-missed";
    if missed {
        world.scope.disturb(EAST, Disturbance::EndOperator { site: EAST }).await?;
        world.delete_node(WEST, &declared(EAST, &nodes[1])).await?;
        harness::wait::until_gone(
            WEST,
            world.nodes(WEST),
            &declared(EAST, &nodes[1]),
            "the declaration",
            world.scope.limits.step,
        )
        .await?;
        world.node_is_held(EAST, &nodes[1]).await?;
        world.scope.disturb(EAST, Disturbance::ReviveOperator { site: EAST }).await?;
    } else {
        restart(world, EAST).await?;
        world.stays_quiet(EAST, &nodes).await?;
        world.node_is_held(EAST, &nodes[1]).await?;
        world.delete_node(WEST, &declared(EAST, &nodes[1])).await?;
    }
    world.node_gone(EAST, &nodes[1]).await?;
    world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await.map(drop)
}

async fn drain_proof(world: &World<'_>) -> Result<(), Failure> {
    let nodes = world.settled(&Cluster::auto(Role::Writer, 2), 0).await?;
    let workers = json!({"path": "/v2/ListWorkers"});
    let rule = world.rule(&workers, 0, &json!({"kind": "answer", "status": 503})).await?;
    world.change(EAST, &json!({"storage": {"replicas": 1}})).await?;
    world.cluster_field(EAST, "/status/storageDrain", "a recorded drain", |drain| drain.is_some()).await?;
    world.called(EAST, "/v2/ListWorkers", 1).await?;
    let staged = world.count_of(EAST, "/v2/UpdateClusterLayout")?;
    restart(world, EAST).await?;
    world.end_rule(rule).await?;
    world.node_gone(EAST, &nodes[1]).await?;
    let again = world.count_of(EAST, "/v2/UpdateClusterLayout")?;
    world
        .claim(EAST, "the removal is not staged again", again == staged, || format!("{staged}, then {again}"))
}

async fn switch(world: &World<'_>) -> Result<(), Failure> {
    world.settled(&Cluster::auto(Role::Follower, 1), 0).await?;
    world.declare_nodes(EAST, &manual_nodes(1)).await?;
    world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
    let nodes = auto_nodes(2);
    world.identity(EAST, &nodes[1]).await?;
    restart(world, EAST).await?;
    world.stays_quiet(EAST, &nodes).await?;

    world.set_role(WEST, "Follower").await?;
    world.declare(Some(Role::Follower), Some(Role::Follower));
    world.condition(WEST, "LayoutWriter", "False", "FollowerSite").await?;
    restart(world, WEST).await?;
    world.stays_quiet(WEST, &manual_nodes(1)).await?;

    world.declare(Some(Role::Writer), Some(Role::Follower));
    world.set_role(EAST, "Writer").await?;
    restart(world, EAST).await?;
    world.condition(EAST, "LayoutWriter", "True", "WriterSite").await?;
    world.in_layout(EAST, from_ref(&nodes[1])).await
}
