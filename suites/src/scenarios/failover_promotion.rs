//! The writer's site is gone: its operator, its API server, its nodes, each alone and all together.
//!
//! Stimulus: the failure, and a node that waits for the writer. Ends on: the follower serving and waiting all the while,
//! and once it is promoted finishing what waited.

use std::slice::from_ref;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Disturbance, Disturbs, Scenario, Scope};
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, auto_nodes, manual_nodes};

const NAME: &str = "failover_promotion";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 7,
        about: "the writer's site fails; the follower serves and waits, is promoted, and finishes what waited",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    const WAITS: &[&str] = &["failure-writer-down", "e2e-failover"];
    let cell = |name, disturbs| {
        Cell::subject(NAME, name)
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .disturbs(disturbs)
            .claims("without the writer the Follower stays Ready, keeps its layout and waits", WAITS)
            .claims(
                "promoted, it finishes what waited",
                &["failure-writer-down", "transition-promotion", "e2e-failover"],
            )
    };
    vec![
        cell("operator", Disturbs::Operator),
        cell("api-server", Disturbs::Site),
        cell("nodes", Disturbs::Namespaces),
        cell("site", Disturbs::Site),
        cell("site-scale-down", Disturbs::Site).claims(
            "a scale-down that waited is finished by the promoted site itself",
            &["d3-wait", "failure-scale-down"],
        ),
        cell("operator-demoted", Disturbs::Cluster).needs_webhooks().claims(
            "demoted while its operator was gone, the former writer comes back as a Follower and writes nothing",
            &["transition-mutable", "enforce-guard"],
        ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let goes = cell.name == "site-scale-down";
        let replicas = if goes { 2 } else { 1 };
        let nodes = world.settled(&Cluster::auto(Role::Follower, replicas), 0).await?;
        world.declare_nodes(EAST, &manual_nodes(1)).await?;
        let ready = world.watch_ready(EAST);
        fail(&world).await?;

        let wanted = if goes { 1 } else { 2 };
        world.change(EAST, &json!({"storage": {"replicas": wanted}})).await?;
        let reason = if goes { "PendingRoleRemoval" } else { "NodesWithoutRole" };
        world.condition(EAST, "AwaitingLayoutWriter", "True", reason).await?;
        let all = auto_nodes(2);
        world.identity(EAST, &all[1]).await?;
        if parts(cell).2 {
            // The writer's operator keeps looking for its nodes: that is no quiet time.
            world.reconciles(EAST, &all).await?;
            world.reconciles(EAST, &all).await?;
        } else {
            world.stays_quiet(EAST, &all).await?;
        }
        let layout = world.layout(EAST, &nodes[0]).await?;
        world.claim(EAST, "the layout is kept", layout.roles.len() == nodes.len() + 1, || {
            format!("{layout:?}")
        })?;
        world.stayed_ready(&ready)?;
        if goes {
            world.node_is_held(EAST, &all[1]).await?;
        }

        promote(&world).await?;
        if goes {
            world.node_gone(EAST, &all[1]).await?;
        } else {
            world.in_layout(EAST, from_ref(&all[1])).await?;
        }
        world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
        fail_back(&world).await
    }
    .boxed()
}

fn parts(cell: &Cell) -> (bool, bool, bool) {
    match cell.name {
        "operator" | "operator-demoted" => (true, false, false),
        "api-server" => (false, true, false),
        "nodes" => (false, false, true),
        // A drain's proof asks every storage node, so those must be there.
        "site-scale-down" => (true, true, false),
        _ => (true, true, true),
    }
}

/// Whether the writer is demoted though nobody is there to take notice.
fn demotes(cell: &Cell) -> bool {
    cell.name == "operator-demoted"
}

/// What the cell is about fails at the writer's site.
async fn fail(world: &World<'_>) -> Result<(), Failure> {
    let (operator, api_server, nodes) = parts(world.cell);
    if operator {
        world.scope.disturb(WEST, Disturbance::EndOperator { site: WEST }).await?;
    }
    if nodes {
        for name in manual_nodes(1) {
            let node = world.hub_name(WEST, &name);
            world.fault(&json!({"action": "kill", "node": node})).await?;
        }
    }
    if api_server {
        world.scope.disturb(WEST, Disturbance::EndApiServer { site: WEST }).await?;
    }
    Ok(())
}

/// The old writer is demoted where it can still be told: without its operator the webhooks refuse every edit, and without
/// its API server there is nobody to tell. Then the follower is promoted.
async fn promote(world: &World<'_>) -> Result<(), Failure> {
    let (operator, api_server, _) = parts(world.cell);
    if !operator && !api_server {
        world.set_role(WEST, "Follower").await?;
        world.declare(Some(Role::Follower), Some(Role::Follower));
        world.condition(WEST, "LayoutWriter", "False", "FollowerSite").await?;
    } else if demotes(world.cell) {
        // A person who has to does without the webhooks that the operator served.
        let follower = json!({"layoutManagement": {"siteRole": "Follower"}});
        let webhooks = world.remove_webhooks(WEST).await?;
        world.webhooks_are_off(WEST, &follower).await?;
        world.set_role(WEST, "Follower").await?;
        world.restore_webhooks(WEST, webhooks).await?;
    } else if !operator {
        // Its operator runs, blind, and might still believe what it knew last: nothing must be left for it to do.
        world.scope.disturb(WEST, Disturbance::EndOperator { site: WEST }).await?;
    }
    world.declare(Some(Role::Writer), Some(Role::Follower));
    world.set_role(EAST, "Writer").await?;
    world.condition(EAST, "LayoutWriter", "True", "WriterSite").await.map(drop)
}

/// A site that could not be told comes back as the Writer that it is declared: it must be the only one by then.
async fn fail_back(world: &World<'_>) -> Result<(), Failure> {
    let (operator, api_server, _) = parts(world.cell);
    if !operator && !api_server {
        return Ok(());
    }
    if demotes(world.cell) {
        world.scope.disturb(WEST, Disturbance::ReviveAll).await?;
        world.condition(WEST, "LayoutWriter", "False", "FollowerSite").await?;
        return world.stays_quiet(WEST, &manual_nodes(1)).await;
    }
    // A Writer that still records a drain cannot be demoted.
    world.cluster_field(EAST, "/status/storageDrain", "no recorded drain", |drain| drain.is_none()).await?;
    world.set_role(EAST, "Follower").await?;
    world.declare(Some(Role::Follower), Some(Role::Follower));
    world.condition(EAST, "LayoutWriter", "False", "FollowerSite").await?;
    world.declare(Some(Role::Follower), Some(Role::Writer));
    let (_, _, nodes) = parts(world.cell);
    if nodes {
        for name in manual_nodes(1) {
            let node = world.hub_name(WEST, &name);
            world.fault(&json!({"action": "restart", "node": node})).await?;
        }
    }
    world.scope.disturb(WEST, Disturbance::ReviveAll).await?;
    // It knows its role again, and shows it.
    world.reconciles(WEST, &manual_nodes(1)).await
}
