//! An operator that knows the field meets objects that were made before it.
//!
//! Stimulus: an object without the field, read and reconciled, and written back unchanged through both versions. Ends on:
//! the stored object as it was, byte for byte, with no role in spec or status.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use kube::ResourceExt as _;
use kube::api::PostParams;

use crate::fixture::CLUSTER;
use crate::fixture::cluster::Cluster;
use crate::fixture::version::Version;
use crate::world::{EAST, World};

const NAME: &str = "upgrade";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 9,
        about: "absent stays absent: nothing rewrites a stored object",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    all().into_iter().map(Cell::needs_webhooks).collect()
}

fn all() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims(
                "reconciling does not rewrite the spec: its generation stays and its fields are the same",
                &["compat-absent", "d10-default", "api-no-default"],
            )
            .claims(
                "writing the object back unchanged, through either version, stores the same bytes",
                &["compat-absent", "test-conversion"],
            ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let wanted = Cluster::auto(world.role(EAST), 1);
        let nodes = world.settled(&wanted, 0).await?;
        world.stays_quiet(EAST, &nodes).await?;
        let stored = world.cluster(EAST).await?;
        let generation = stored.metadata.generation;
        world
            .claim(EAST, "the spec was written once", generation == Some(1), || format!("{generation:?}"))?;
        for version in Version::ALL {
            let api = version.clusters(scope, EAST);
            let failed = |error| Failure::harness(EAST, "write the object back", error);
            let object = api.get(CLUSTER).await.map_err(failed)?;
            world.step(format!("write the object back unchanged as {version}"));
            // The API server stores nothing when the bytes are the same: the version of the object stays.
            let back = api.replace(CLUSTER, &PostParams::default(), &object).await.map_err(failed)?;
            let same = back.resource_version() == object.resource_version();
            let claim = format!("{version}: the stored bytes are the same");
            world.claim(EAST, &claim, same, || {
                format!("{:?}, then {:?}", object.resource_version(), back.resource_version())
            })?;
        }
        world.shows_no_trace(EAST).await
    }
    .boxed()
}
