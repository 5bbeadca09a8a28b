//! Bootstrap: a new GarageCluster whose nodes have no role yet.
//!
//! Stimulus: a GarageCluster with two replicas and a remote cluster. Ends on: both nodes in the first layout, or
//! `AwaitingLayoutWriter=True/NodesWithoutRole` and two completed reconciles later still no layout.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::json;

use crate::fixture::cluster::Cluster;
use crate::world::{EAST, World};

const NAME: &str = "bootstrap";

/// What is declared of every node.
const TAG: &str = "rack:7";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 1,
        about: "a new cluster gets its first layout from a Writer, and none from a Follower",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    const ROLES: &[&str] = &["matrix-bootstrap", "matrix-assign"];
    vec![
        Cell::control(NAME, "writer")
            .with(EAST, "Writer")
            .claims("the Writer assigns roles to its nodes and applies layout 1", ROLES)
            .claims(
                "status and condition LayoutWriter=True/WriterSite tell the role",
                &["status-role", "condition-layout-writer"],
            ),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .claims(
                "the Follower makes no layout write",
                &["matrix-bootstrap", "api-follower", "fact-zero-writes"],
            )
            .claims(
                "it reports AwaitingLayoutWriter=True/NodesWithoutRole and stays Ready",
                &["condition-awaiting", "condition-ready"],
            )
            .claims(
                "it runs, connects and reads its nodes, and looks again by itself",
                &["matrix-connect", "matrix-workloads", "enforce-pending"],
            ),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field writes like a Writer", &["compat-absent", "d10-default"])
            .claims(
                "nothing of the feature is in its spec, status or conditions",
                &["compat-absent", "status-pointer", "deviation-reasons"],
            ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let cluster = Cluster::auto(world.role(EAST), 2).factor(2).spec(&json!({"storage": {"tags": [TAG]}}));
        let nodes = world.start(EAST, &cluster, 0).await?;
        if world.role(EAST) == Role::Follower {
            world.condition(EAST, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;
            world.condition(EAST, "Ready", "True", "ClusterReady").await?;
            for node in &nodes {
                world.node_condition(EAST, node, "Ready", "False", "NotInLayout").await?;
            }
            let ready = world.watch_ready(EAST);
            world.looks_again(EAST).await?;
            world.stays_quiet(EAST, &nodes).await?;
            world.stayed_ready(&ready)?;
        } else {
            world.in_layout(EAST, &nodes).await?;
            world.condition(EAST, "Ready", "True", "ClusterReady").await?;
            world.stays_quiet(EAST, &nodes).await?;
            world.tells_no_foreign_writer(EAST, 1).await?;
        }
        world.shows_role(EAST).await?;
        let applied = world.role(EAST).may_write();
        for layout in world.layouts(EAST, &nodes).await? {
            let claim =
                if applied { "every node holds layout 1 with both roles" } else { "no node holds a layout" };
            let expected = if applied { (1, 2) } else { (0, 0) };
            let holds = (layout.version, layout.roles.len()) == expected;
            world.claim(EAST, claim, holds, || format!("{layout:?}"))?;
            let tagged = layout.roles.iter().all(|role| role.tags.iter().any(|tag| tag == TAG));
            world.claim(EAST, "every role has the tags of its declaration", tagged, || {
                format!("{layout:?}")
            })?;
        }
        Ok(())
    }
    .boxed()
}
