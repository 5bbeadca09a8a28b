//! A stale gateway role: its node is gone for good.
//!
//! Stimulus: a role of the cluster's own gateway tier whose node ends. Ends on: the role removed where `autoApply` is on
//! and the site may write; else on it being listed as pending.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World};

const NAME: &str = "tombstones";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 3,
        about: "a stale gateway role is removed by a Writer with autoApply, and only listed otherwise",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "on-writer").with(EAST, "Writer").claims(
            "with autoApply the Writer removes the stale role",
            &["matrix-tombstones", "matrix-auto-apply"],
        ),
        Cell::control(NAME, "on-refused").with(EAST, "Writer").claims(
            "a removal that fails at first is made good, without anybody's nudge",
            &["matrix-tombstones"],
        ),
        Cell::subject(NAME, "on-follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "the Follower lists the stale role and reports AwaitingLayoutWriter=True/PendingTombstones",
                &["matrix-tombstones", "condition-awaiting"],
            )
            .claims("autoApply is ignored by a Follower", &["matrix-auto-apply"])
            .claims("once the role is gone nothing is pending", &["deviation-reasons"]),
        Cell::control(NAME, "on-absent")
            .with(EAST, "Absent")
            .claims("a site without the field removes the stale role like a Writer", &["compat-absent"]),
        Cell::control(NAME, "off-writer").with(EAST, "Writer").claims(
            "without autoApply the Writer lists the stale role and leaves it",
            &["matrix-auto-apply"],
        ),
        Cell::subject(NAME, "off-follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims("without autoApply the Follower does the same as with it", &["matrix-tombstones"]),
        Cell::control(NAME, "off-absent")
            .with(EAST, "Absent")
            .claims("a site without the field lists the stale role and leaves it", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let applies = cell.name.starts_with("on-");
        let cluster =
            Cluster::auto(world.role(EAST), 1).spec(&json!({"layoutManagement": {"autoApply": applies}}));
        let nodes = world.settled(&cluster, 0).await?;
        let ready = world.watch_ready(EAST);
        if cell.name == "on-refused" {
            let removal = json!({"caller": "east", "method": "POST", "path": "/v2/UpdateClusterLayout"});
            // More often than the writing of the status alone would have the operator look again.
            world.rule(&removal, 8, &json!({"kind": "answer", "status": 503})).await?;
        }
        let stale = stale_gateway(&world, &nodes[0]).await?;
        let pending = |value: Option<&Value>| {
            value
                .and_then(Value::as_array)
                .is_some_and(|all| all.iter().any(|one| one["nodeId"] == stale.as_str()))
        };
        if applies && !world.follows() {
            world
                .cluster_field(EAST, "/status/pendingGatewayTombstones", "no pending tombstone", |all| {
                    !pending(all)
                })
                .await?;
            gone(&world, &nodes[0], &stale).await?;
        } else {
            world.cluster_field(EAST, "/status/pendingGatewayTombstones", "the tombstone", pending).await?;
            world.condition(EAST, "GatewayTombstones", "True", "PendingRemoval").await?;
            if world.follows() {
                world.condition(EAST, "AwaitingLayoutWriter", "True", "PendingTombstones").await?;
                world.looks_again(EAST).await?;
            }
            world.stays_quiet(EAST, &nodes).await?;
            world.has_role(EAST, &nodes[0], &stale, true).await?;
            let address = world.address(EAST, &nodes[0]).await?;
            world.stage_by_hand(&address, &json!([{"id": stale, "remove": true}])).await?;
            world.apply_by_hand(&address).await?;
            world
                .cluster_field(EAST, "/status/pendingGatewayTombstones", "no pending tombstone", |all| {
                    !pending(all)
                })
                .await?;
        }
        if world.follows() {
            world.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
            world.stayed_ready(&ready)?;
        }
        world.shows_role(EAST).await
    }
    .boxed()
}

/// Makes a role that the cluster takes for one of its own gateways, and ends its node.
pub(super) async fn stale_gateway(world: &World<'_>, node: &str) -> Result<String, Failure> {
    let peer = world.address(EAST, node).await?;
    let uid = world.cluster(EAST).await?.uid().unwrap_or_default();
    let gateway = world.stray("gateway", 1, &peer).await?;
    let tags = json!(["tier:gateway", format!("cluster-uid:{uid}")]);
    let role = json!([{"id": gateway.id, "zone": "east", "capacity": null, "tags": tags}]);
    world.stage_by_hand(&peer, &role).await?;
    world.apply_by_hand(&peer).await?;
    world.seen(&peer, &gateway.id).await?;
    // A gateway that ends before it has taken over the layout with its role keeps the older one draining for ever, and
    // with it everybody from the next change.
    world.taken_over(&peer).await?;
    world.end_stray(&gateway).await?;
    // What is settled is looked at again after minutes only; the role is stale after a second.
    world.unseen_for(&peer, &gateway.id, 2).await?;
    world.reconciles(EAST, &[]).await?;
    Ok(gateway.id)
}

/// Waits until the role of `id` is gone from the layout of `node`: the status follows the layout.
pub(super) async fn gone(world: &World<'_>, node: &str, id: &str) -> Result<(), Failure> {
    let version = world.layout(EAST, node).await?;
    if version.roles.iter().any(|role| role.id == id) {
        world
            .cluster_field(EAST, "/status/layoutVersion", "a layout without the stale role", |seen| {
                seen.and_then(Value::as_u64).is_some_and(|seen| seen > version.version)
            })
            .await?;
    }
    world.has_role(EAST, node, id, false).await
}
