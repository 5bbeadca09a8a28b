//! Roles that somebody else staged.
//!
//! Stimulus: a person stages exactly the role that the operator would stage, and does not apply it. Ends on: a Writer
//! applies what it finds; a Follower leaves it staged.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::fixture::CLUSTER;
use crate::fixture::cluster::Cluster;
use crate::world::{EAST, World};

const NAME: &str = "staged_roles";

/// Bytes of an Auto node whose volume has no size (operator contract §4.2).
const CAPACITY: u64 = 10 << 30;

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 1,
        about: "a Writer applies the role that it finds staged, a Follower leaves it staged",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("the Writer applies the role that somebody staged as it is declared", &["matrix-assign"]),
        // The person is no writer, and nobody has declared the node at one.
        Cell::subject(NAME, "follower").with(EAST, "Follower").expects("followers-roles-declared").claims(
            "the Follower does not apply what is staged, though it is what it declares",
            &["fact-zero-writes", "api-follower", "enforce-guard"],
        ),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field applies what is staged like a Writer", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        // A Writer would be faster than the person.
        let stagings = json!({"caller": "east", "method": "POST", "path": "/v2/UpdateClusterLayout"});
        let held = world.rule(&stagings, 0, &json!({"kind": "answer", "status": 503})).await?;
        let nodes = world.start(EAST, &Cluster::auto(world.role(EAST), 1), 0).await?;
        let role = declared_role(&world, &nodes[0]).await?;
        let address = world.address(EAST, &nodes[0]).await?;
        world.stage_by_hand(&address, &json!([role])).await?;
        world.end_rule(held).await?;
        if world.role(EAST) == Role::Follower {
            world.condition(EAST, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;
            world.looks_again(EAST).await?;
            world.stays_quiet(EAST, &nodes).await?;
            let layout = world.layout(EAST, &nodes[0]).await?;
            let staged = layout.version == 0 && layout.staged_role_changes.len() == 1;
            return world.claim(EAST, "what is staged is not applied", staged, || format!("{layout:?}"));
        }
        world.in_layout(EAST, &nodes).await?;
        world.stays_quiet(EAST, &nodes).await?;
        let layout = world.layout(EAST, &nodes[0]).await?;
        let applied = layout.version == 1 && layout.staged_role_changes.is_empty();
        world.claim(EAST, "what was staged is applied as layout 1", applied, || format!("{layout:?}"))
    }
    .boxed()
}

/// The role that the operator would stage for `node`.
async fn declared_role(world: &World<'_>, node: &str) -> Result<Value, Failure> {
    let uid = world.cluster(EAST).await?.uid().unwrap_or_default();
    let tags = [
        format!("cluster:{CLUSTER}/{}", world.scope.namespace),
        format!("cluster-uid:{uid}"),
        "tier:storage".to_owned(),
        format!("{node}-0"),
    ];
    let id = world.identity(EAST, node).await?;
    Ok(json!({"id": id, "zone": EAST.name(), "capacity": CAPACITY, "tags": tags}))
}
