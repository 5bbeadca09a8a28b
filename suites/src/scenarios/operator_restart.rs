//! The operator is killed and started again after the steps of whatever takes several of them: a scale-down, a drain, a
//! deletion, a rollout, a failover, a switch of the writer.
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
use kube::ResourceExt as _;
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
        Cell::control(NAME, "staged").with(EAST, "Writer").disturbs(Disturbs::Operator).claims(
            "a Writer that is killed between staging a removal and applying it goes on without staging it again",
            &["matrix-remove"],
        ),
        subject("node-leaves")
            .claims("restarted after each step of a drain and a deletion, a Follower waits for the writer", SAME),
        subject("cluster-leaves")
            .claims("restarted while its nodes leave, a Follower lets its cluster go when all roles are gone", SAME),
        subject("rollout").claims(
            "a rollout goes on where it was, and writes no layout",
            &["matrix-workloads", "fact-zero-writes"],
        ),
        subject("failover").claims(
            "restarted after each step of a failover, the Follower waits, and promoted finishes what waited",
            &["failure-writer-down", "transition-promotion"],
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
            "staged" => staged(&world).await,
            "node-leaves" => node_leaves(&world).await,
            "cluster-leaves" => cluster_leaves(&world).await,
            "rollout" => rollout(&world).await,
            "failover" => failover(&world).await,
            _ => scale_down(&world).await,
        }
    }
    .boxed()
}

/// The operator of `site` is killed and started again.
pub(super) async fn restart(world: &World<'_>, site: Site) -> Result<(), Failure> {
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

async fn staged(world: &World<'_>) -> Result<(), Failure> {
    let nodes = world.settled(&Cluster::auto(Role::Writer, 2), 0).await?;
    let apply = json!({"caller": "east", "method": "POST", "path": "/v2/ApplyClusterLayout"});
    let refused = world.rule(&apply, 0, &json!({"kind": "answer", "status": 503})).await?;
    world.change(EAST, &json!({"storage": {"replicas": 1}})).await?;
    world.met(refused, 1).await?;
    let staged = world.count_of(EAST, "/v2/UpdateClusterLayout")?;
    restart(world, EAST).await?;
    world.end_rule(refused).await?;
    world.node_gone(EAST, &nodes[1]).await?;
    let again = world.count_of(EAST, "/v2/UpdateClusterLayout")?;
    world
        .claim(EAST, "the removal is not staged again", again == staged, || format!("{staged}, then {again}"))
}

/// A node is prepared for its deletion, then deleted, and its operator is restarted after each step.
async fn node_leaves(world: &World<'_>) -> Result<(), Failure> {
    let nodes = world.settled(&Cluster::manual(Role::Follower), 2).await?;
    let goes = &nodes[1];
    world.annotate_node(EAST, goes, &[("drain", "true")]).await?;
    world.node_condition(EAST, goes, "DrainPrepared", "False", "PreparationBlocked").await?;
    restart(world, EAST).await?;
    world.stays_quiet(EAST, &nodes).await?;
    world.delete_node(EAST, goes).await?;
    world.condition(EAST, "AwaitingLayoutWriter", "True", "PendingRoleRemoval").await?;
    restart(world, EAST).await?;
    world.stays_quiet(EAST, &nodes).await?;
    world.node_is_held(EAST, goes).await?;
    world.delete_node(WEST, &declared(EAST, goes)).await?;
    restart(world, WEST).await?;
    restart(world, EAST).await?;
    world.node_gone(EAST, goes).await?;
    world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await.map(drop)
}

async fn cluster_leaves(world: &World<'_>) -> Result<(), Failure> {
    let cluster = Cluster::auto(Role::Follower, 2).spec(&json!({"deletionPolicy": "Drain"}));
    let nodes = world.settled(&cluster, 0).await?;
    world.delete_cluster(EAST).await?;
    for node in &nodes {
        world.node_condition(EAST, node, "DrainPrepared", "False", "PreparationBlocked").await?;
    }
    for node in &nodes {
        restart(world, EAST).await?;
        world.looks_again(EAST).await?;
        world.node_is_held(EAST, node).await?;
        world.delete_node(WEST, &declared(EAST, node)).await?;
        world.node_gone(EAST, node).await?;
    }
    world.cluster_gone(EAST).await
}

/// The operator is restarted while one pod is new and the other one is not.
async fn rollout(world: &World<'_>) -> Result<(), Failure> {
    let nodes = world.settled(&Cluster::auto(Role::Follower, 2), 0).await?;
    let mut old = Vec::new();
    for node in &nodes {
        old.push(world.pod(EAST, node).await?.uid());
    }
    world.change(EAST, &json!({"image": "dxflrs/garage:v2.5.0"})).await?;
    world
        .cluster_field(EAST, "/status/storageRollout", "a recorded rollout", |rollout| rollout.is_some())
        .await?;
    restart(world, EAST).await?;
    for (node, old) in nodes.iter().zip(old) {
        world
            .pod_until(EAST, node, "of the new revision", |pod| match pod {
                Some(pod) if pod.uid() != old => Ok(()),
                Some(_) => Err("it is the old pod".to_owned()),
                None => Err("it is gone".to_owned()),
            })
            .await?;
    }
    world
        .cluster_field(EAST, "/status/storageRollout", "no rollout under way", |rollout| rollout.is_none())
        .await?;
    world.condition(EAST, "Ready", "True", "ClusterReady").await?;
    world.stays_quiet(EAST, &nodes).await
}

/// The writer's operator is gone; the Follower's is restarted after each step.
async fn failover(world: &World<'_>) -> Result<(), Failure> {
    world.settled(&Cluster::auto(Role::Follower, 1), 0).await?;
    world.declare_nodes(EAST, &manual_nodes(1)).await?;
    world.scope.disturb(WEST, Disturbance::EndOperator { site: WEST }).await?;
    world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
    let nodes = auto_nodes(2);
    world.condition(EAST, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;
    world.identity(EAST, &nodes[1]).await?;
    restart(world, EAST).await?;
    world.stays_quiet(EAST, &nodes).await?;
    world.declare(Some(Role::Writer), Some(Role::Follower));
    world.set_role(EAST, "Writer").await?;
    restart(world, EAST).await?;
    world.in_layout(EAST, from_ref(&nodes[1])).await?;
    restart(world, EAST).await?;
    world.condition(EAST, "LayoutWriter", "True", "WriterSite").await?;
    world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
    // The former writer was never told: it must be the only one when it comes back.
    world.set_role(EAST, "Follower").await?;
    world.declare(Some(Role::Follower), Some(Role::Follower));
    world.condition(EAST, "LayoutWriter", "False", "FollowerSite").await?;
    world.declare(Some(Role::Follower), Some(Role::Writer));
    world.scope.disturb(WEST, Disturbance::ReviveOperator { site: WEST }).await?;
    world.reconciles(WEST, &manual_nodes(1)).await
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
