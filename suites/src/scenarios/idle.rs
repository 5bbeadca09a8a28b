//! Nothing happens.
//!
//! Stimulus: none; the operator lives on, as the renewals of its Lease prove. Ends on: no write, and hardly a look at
//! what is settled.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::facts::{QUIET, Quiet};
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::pair::lease;
use harness::scenario::{Cell, Scenario, Scope};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World};

const NAME: &str = "idle";

/// How often the operator renews its Lease while nothing happens.
const RENEWALS: usize = 2;

/// How often it may look at each object in that time: after the nudge, and once more because of what that changed.
const LOOKS: usize = 3;

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario { name: NAME, row: 1, about: "what is settled is left alone, whatever the role", cells, run }
}

fn cells() -> Vec<Cell> {
    const LEFT_ALONE: &[&str] = &["enforce-pending"];
    vec![
        Cell::control(NAME, "writer").with(EAST, "Writer").claims(
            "a settled Writer writes nothing, and does not look at its nodes again and again",
            LEFT_ALONE,
        ),
        Cell::subject(NAME, "follower").with(EAST, "Follower").with(WEST, "Writer").claims(
            "a settled Follower writes nothing, and does not look at its nodes again and again",
            LEFT_ALONE,
        ),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field is as quiet as a Writer", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let nodes = world.settled(&Cluster::auto(world.role(EAST), 1), 0).await?;
        world.stays_quiet(EAST, &nodes).await?;
        scope.recorder.state(QUIET, json!(Quiet { on: true }));
        let before = looks(&world)?;
        world.reconciles(EAST, &nodes).await?;
        lives_on(&world).await?;
        let looked = looks(&world)? - before;
        scope.recorder.state(QUIET, json!(Quiet { on: false }));
        let limit = LOOKS * (1 + nodes.len());
        world.claim(EAST, "what is settled is not looked at again and again", looked <= limit, || {
            format!(
                "{looked} reads of the status in {RENEWALS} renewals of the Lease, at most {limit} expected"
            )
        })
    }
    .boxed()
}

/// How often the operator read the status of the mesh so far: it does so in every pass.
fn looks(world: &World<'_>) -> Result<usize, Failure> {
    world.count_of(EAST, "/v2/GetClusterStatus")
}

/// Waits while the operator renews its Lease.
async fn lives_on(world: &World<'_>) -> Result<(), Failure> {
    world.step(format!("await {RENEWALS} renewals of the operator's Lease on {EAST}"));
    let renewals = async {
        for _ in 0..RENEWALS {
            lease::renewed(world.scope.client(EAST), Timestamp::now()).await?;
        }
        Ok::<(), kube::Error>(())
    };
    match tokio::time::timeout(world.scope.limits.step, renewals).await {
        Ok(renewed) => renewed.map_err(|error| Failure::harness(EAST, "follow the operator's Lease", error)),
        Err(_elapsed) => Err(world.not_so(EAST, "the operator renews its Lease", "it does not")),
    }
}
