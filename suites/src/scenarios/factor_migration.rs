//! Migration of the replication factor.
//!
//! Stimulus: another factor in the spec and, in the same update, the annotation that purges the layout. Ends on: a
//! completed migration at a standalone Writer; on a refusal, with nothing scaled or purged, at a federated one and at a
//! Follower.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::objects;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::fixture::CLUSTER;
use crate::fixture::cluster::Cluster;
use crate::world::change::PREFIX;
use crate::world::{EAST, WEST, World};

const NAME: &str = "factor_migration";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 5,
        about: "a standalone Writer migrates its factor; a federated one and a Follower refuse",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "standalone").with(EAST, "Writer").claims(
            "a standalone Writer scales down, purges, and builds the layout with the new factor",
            &["matrix-factor"],
        ),
        Cell::control(NAME, "federated").with(EAST, "Writer").claims(
            "a federated Writer refuses: annotation consumed, lastOperation failed, nothing touched",
            &["matrix-factor"],
        ),
        Cell::subject(NAME, "follower").with(EAST, "Follower").with(WEST, "Writer").claims(
            "a Follower refuses: annotation consumed, event, nothing scaled or purged",
            &["matrix-factor", "deviation-consumed"],
        ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let alone = cell.name == "standalone";
        let cluster = Cluster::auto(world.role(EAST), 2);
        let cluster = if alone { cluster.spec(&json!({"remoteClusters": null})) } else { cluster };
        let nodes = world.settled(&cluster, 0).await?;
        let before = world.layout(EAST, &nodes[0]).await?;
        world.step("ask for a migration to factor 2");
        let patch = json!({
            "metadata": {"annotations": {format!("{PREFIX}purge-cluster-layout"): "factor=2"}},
            "spec": {"replication": {"factor": 2}},
        });
        let patched =
            world.clusters(EAST).patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map_err(|error| Failure::harness(EAST, "ask for the migration", error))?;
        if alone {
            world
                .cluster_field(EAST, "/status/factorMigration/phase", "a completed migration", |phase| {
                    phase.and_then(Value::as_str) == Some("Completed")
                })
                .await?;
            world.in_layout(EAST, &nodes).await?;
            return world.holds_roles(EAST, &nodes, 2).await;
        }
        let told = |last: Option<&Value>| {
            last.is_some_and(|last| last["type"] == "PurgeClusterLayout" && last["succeeded"] == false)
        };
        world.cluster_field(EAST, "/status/lastOperation", "a refused operation", told).await?;
        if world.follows() {
            world.event(EAST, "LayoutWriteBlocked", "PurgeClusterLayout").await?;
        }
        world.stays_quiet(EAST, &nodes).await?;
        let cluster = world.cluster(EAST).await?;
        let annotated = cluster.metadata.annotations.as_ref();
        let consumed =
            !annotated.is_some_and(|all| all.contains_key(&format!("{PREFIX}purge-cluster-layout")));
        world.claim(EAST, "the annotation is consumed", consumed, || format!("{annotated:?}"))?;
        let phase = objects::field(&cluster, "/status/factorMigration").cloned();
        world.claim(EAST, "no migration is recorded", phase.is_none(), || format!("{phase:?}"))?;
        for node in &nodes {
            world.pod_runs(EAST, node).await?;
        }
        let after = world.layout(EAST, &nodes[0]).await?;
        world.claim(EAST, "the layout is as it was", after == before, || format!("{after:?}"))
    }
    .boxed()
}
