//! Clients of the older version.
//!
//! Stimulus: v1beta1 clients that write the whole object without the role, with it, and without any change. Ends on: the
//! role as it was declared; nobody who does not know the field can clear or invent it.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::objects;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use kube::api::PostParams;
use serde_json::json;

use crate::fixture::CLUSTER;
use crate::fixture::cluster::Cluster;
use crate::fixture::version::Version;
use crate::world::{EAST, WEST, World};

const NAME: &str = "conversion";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario { name: NAME, row: 9, about: "clients of v1beta1 neither clear nor invent the role", cells, run }
}

fn cells() -> Vec<Cell> {
    all().into_iter().map(Cell::needs_webhooks).collect()
}

fn all() -> Vec<Cell> {
    const KEPT: &[&str] = &["api-v1beta1", "test-conversion"];
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("a v1beta1 client that leaves the role out does not clear it", KEPT),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims("a v1beta1 client that leaves the role out does not make a Follower write", KEPT)
            .claims("role and status are the same in both versions", &["api-v1beta1", "status-pointer"]),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a v1beta1 client does not invent a role", &["test-conversion", "compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let nodes = world.settled(&Cluster::auto(world.role(EAST), 1), 0).await?;
        let old = Version::V1beta1.clusters(scope, EAST);
        let failed = |step: &'static str| move |error| Failure::harness(EAST, step, error);
        let mut object = old.get(CLUSTER).await.map_err(failed("read the v1beta1 GarageCluster"))?;
        let role = objects::text(&object, "/spec/layoutManagement/siteRole").map(str::to_owned);
        let declared = world.role(EAST).field();
        world.claim(EAST, "v1beta1 shows the role", role.as_deref() == declared, || format!("{role:?}"))?;
        let status = objects::text(&object, "/status/layoutWriter/role").map(str::to_owned);
        world.claim(EAST, "v1beta1 shows the role in force", status.as_deref() == declared, || {
            format!("{status:?}")
        })?;

        // A client that does not know the field writes back what it knows.
        object.data["spec"].as_object_mut().and_then(|spec| spec.remove("layoutManagement"));
        object.data["spec"]["storage"]["tags"] = json!(["from-v1beta1"]);
        world.step("a v1beta1 client writes the object without the role");
        old.replace(CLUSTER, &PostParams::default(), &object)
            .await
            .map_err(failed("write the v1beta1 GarageCluster"))?;
        let written = world.cluster(EAST).await?;
        let kept = objects::text(&written, "/spec/layoutManagement/siteRole").map(str::to_owned);
        world.claim(EAST, "the role is as it was declared", kept.as_deref() == declared, || {
            format!("{kept:?}")
        })?;
        world.reconciles(EAST, &nodes).await?;
        world.shows_role(EAST).await
    }
    .boxed()
}
