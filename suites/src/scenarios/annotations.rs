//! One-shot operations that annotations ask for: revert-layout, skip-dead-nodes, purge-cluster-layout.
//!
//! A Writer carries them out. A Follower refuses and consumes them, so that they do not fire after it is promoted: the
//! cell promotes it and lets it reconcile.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::objects;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::{Value, json};

use crate::fixture::cluster::Cluster;
use crate::world::change::PREFIX;
use crate::world::{EAST, WEST, World, manual_nodes};

const NAME: &str = "annotations";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 4,
        about: "operations by annotation: a Writer carries them out, a Follower refuses and consumes them",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    const BLOCKED: &[&str] = &["matrix-annotations", "d9-annotations", "deviation-consumed"];
    let mut cells = Vec::new();
    for (writer, follower, absent) in [
        ("revert-writer", "revert-follower", "revert-absent"),
        ("skip-writer", "skip-follower", "skip-absent"),
        ("purge-writer", "purge-follower", "purge-absent"),
    ] {
        cells.push(
            Cell::control(NAME, writer).with(EAST, "Writer").claims(
                "the Writer carries the operation out, or says why it cannot",
                &["matrix-annotations"],
            ),
        );
        cells.push(
            Cell::subject(NAME, follower)
                .with(EAST, "Follower")
                .with(WEST, "Writer")
                .claims("the Follower refuses it: annotation gone, event LayoutWriteBlocked, lastOperation failed", BLOCKED)
                .claims("the Follower makes no layout write for it", &["matrix-annotations"])
                .claims("it does not fire after a later promotion", &["deviation-consumed", "transition-promotion"]),
        );
        cells.push(
            Cell::control(NAME, absent).with(EAST, "Absent").claims(
                "a site without the field carries the operation out like a Writer",
                &["compat-absent"],
            ),
        );
    }
    cells
}

/// An operation by annotation.
struct Operation {
    annotation: &'static str,
    value: &'static str,
    /// Its name in `status.lastOperation`.
    name: &'static str,
    /// The layout write that it makes at a Writer.
    path: Option<&'static str>,
}

fn operation(cell: &Cell) -> Operation {
    if cell.name.starts_with("revert") {
        let path = Some("/v2/RevertClusterLayout");
        Operation { annotation: "revert-layout", value: "true", name: "RevertLayout", path }
    } else if cell.name.starts_with("skip") {
        let path = Some("/v2/ClusterLayoutSkipDeadNodes");
        Operation { annotation: "skip-dead-nodes", value: "true", name: "SkipDeadNodes", path }
    } else {
        Operation {
            annotation: "purge-cluster-layout",
            value: "factor=2",
            name: "PurgeClusterLayout",
            path: None,
        }
    }
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let operation = operation(cell);
        let nodes = world.settled(&Cluster::auto(world.role(EAST), 1), 0).await?;
        let reverts = operation.name == "RevertLayout";
        if reverts {
            stage_foreign_role(&world, &nodes[0]).await?;
        }
        let before = operation.path.map(|path| world.count_of(EAST, path)).transpose()?.unwrap_or_default();
        let ready = world.watch_ready(EAST);
        world.annotate_cluster(EAST, &[(operation.annotation, operation.value)]).await?;
        consumed(&world, &operation).await?;
        if world.follows() {
            refused(&world, &operation).await?;
            world.stays_quiet(EAST, &nodes).await?;
            world.stayed_ready(&ready)?;
            let later = promoted(&world, &nodes).await?;
            if reverts {
                let layout = world.layout(EAST, &nodes[0]).await?;
                let kept = !layout.staged_role_changes.is_empty();
                world.claim(EAST, "what is staged stays staged", kept, || format!("{layout:?}"))?;
            }
            let fired = later.iter().any(|path| path.contains("Revert") || path.contains("Skip"));
            world.claim(EAST, "a consumed annotation does not fire after the promotion", !fired, || {
                format!("{later:?}")
            })?;
        } else if let Some(path) = operation.path {
            world.has_called(EAST, path, before)?;
            if reverts {
                let layout = world.layout(EAST, &nodes[0]).await?;
                let clear = layout.staged_role_changes.is_empty();
                world.claim(EAST, "nothing is staged any more", clear, || format!("{layout:?}"))?;
            }
        } else {
            last_operation(&world, &operation, false).await?;
        }
        Ok(())
    }
    .boxed()
}

/// Somebody stages a role that no operator wants.
async fn stage_foreign_role(world: &World<'_>, node: &str) -> Result<(), Failure> {
    let peer = world.address(EAST, node).await?;
    let stray = world.stray("foreign", 1, &peer).await?;
    let role = json!([{"id": stray.id, "zone": "elsewhere", "capacity": 1_u64 << 30, "tags": []}]);
    world.stage_by_hand(&peer, &role).await
}

async fn consumed(world: &World<'_>, operation: &Operation) -> Result<(), Failure> {
    let key = format!("{PREFIX}{}", operation.annotation);
    let gone = |object: Option<&kube::api::DynamicObject>| {
        let object = object.ok_or("it does not exist")?;
        let present = object.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(&key));
        if present { Err(format!("{key} is there")) } else { Ok(()) }
    };
    world.cluster_until(EAST, format!("GarageCluster without {key}"), gone).await.map(drop)
}

async fn refused(world: &World<'_>, operation: &Operation) -> Result<(), Failure> {
    world.event(EAST, "LayoutWriteBlocked", operation.name).await?;
    last_operation(world, operation, false).await
}

async fn last_operation(world: &World<'_>, operation: &Operation, succeeded: bool) -> Result<(), Failure> {
    let cluster = world.cluster(EAST).await?;
    let last = objects::field(&cluster, "/status/lastOperation").cloned().unwrap_or_default();
    let told = last["type"] == operation.name && last["succeeded"] == succeeded;
    let explained = succeeded || last["error"].as_str().is_some_and(|error| !error.is_empty());
    let claim = format!("status.lastOperation says {} with succeeded={succeeded} and why", operation.name);
    world.claim(EAST, &claim, told && explained, || last.to_string())
}

/// The old writer is demoted, then the follower promoted; returns the writes that it has made since.
async fn promoted(world: &World<'_>, nodes: &[String]) -> Result<Vec<String>, Failure> {
    let before = world.calls_of("east")?.iter().filter(|call| call.layout_write).count();
    world.step("switch the writer");
    world.set_role(WEST, "Follower").await?;
    world.declare(Some(Role::Follower), Some(Role::Follower));
    world
        .cluster_field(WEST, "/status/layoutWriter/role", "the role Follower", |role| {
            role.and_then(Value::as_str) == Some("Follower")
        })
        .await?;
    world.declare(Some(Role::Writer), Some(Role::Follower));
    world.set_role(EAST, "Writer").await?;
    world.condition(EAST, "LayoutWriter", "True", "WriterSite").await?;
    // West's node has to be declared by the new writer, or it is none of its business.
    world.reconciles(EAST, nodes).await?;
    world.reconciles(EAST, nodes).await?;
    world.reconciles(WEST, &manual_nodes(1)).await?;
    let calls = world.calls_of("east")?;
    let writes = calls.into_iter().filter(|call| call.layout_write);
    Ok(writes.skip(before).map(|call| call.path).collect())
}
