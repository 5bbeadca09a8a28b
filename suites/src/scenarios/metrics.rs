//! What the operator counts and shows.
//!
//! Stimulus: work that only a writer may do, then a switch of the roles. Ends on: the counter of refused writes equal to
//! the refusals in the log, and the gauge equal to the role, each as the history's checks see them over time.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::metrics::record;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::json;

use super::planned_switch::switch;
use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, auto_nodes, manual_nodes};

const NAME: &str = "metrics";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 10,
        about: "refusals are counted, and the role in force is shown",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "writer").with(EAST, "Writer").claims(
            "a Writer's gauge says Writer, and nothing is counted as refused",
            &["metric-role", "metric-blocked"],
        ),
        Cell::subject(NAME, "follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "every refusal that is logged is counted, by cluster and operation",
                &["metric-blocked", "enforce-guard"],
            )
            .claims("the gauge follows the role through a promotion", &["metric-role"]),
        Cell::control(NAME, "absent")
            .with(EAST, "Absent")
            .claims("a site without the field shows neither", &["compat-absent"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        world.settled(&Cluster::auto(world.role(EAST), 1), 0).await?;
        world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
        let nodes = auto_nodes(2);
        if !world.follows() {
            world.in_layout(EAST, &nodes).await?;
            world.reconciles(EAST, &nodes).await?;
            let blocked = world.metric(EAST, "garage_operator_layout_write_blocked_total").await?;
            world.claim(EAST, "nothing is counted as refused", blocked.is_empty(), || {
                format!("{blocked:?}")
            })?;
            let gauge = world.metric(EAST, "garage_operator_layout_site_role").await?;
            let shown = gauge.iter().any(|line| line.contains("Writer") && line.ends_with(" 1"));
            let claim = "the gauge shows the role where one is declared";
            return world
                .claim(EAST, claim, shown == world.role(EAST).field().is_some(), || format!("{gauge:?}"));
        }
        world.identity(EAST, &nodes[1]).await?;
        world.condition(EAST, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;
        world.annotate_cluster(EAST, &[("skip-dead-nodes", "true")]).await?;
        world.event(EAST, "LayoutWriteBlocked", "SkipDeadNodes").await?;
        world.stays_quiet(EAST, &nodes).await?;
        let blocked = world.metric(EAST, "garage_operator_layout_write_blocked_total").await?;
        for operation in ["UpdateClusterLayout", "ClusterLayoutSkipDeadNodes"] {
            let counted = blocked.iter().any(|line| line.contains(&format!("operation=\"{operation}\"")));
            world.claim(EAST, &format!("refused {operation} is counted"), counted, || {
                format!("{blocked:?}")
            })?;
        }
        record(scope).await;
        world.declare_nodes(EAST, &manual_nodes(1)).await?;
        switch(&world, WEST, EAST).await?;
        world.in_layout(EAST, &nodes).await?;
        record(scope).await;
        let gauge = world.metric(EAST, "garage_operator_layout_site_role").await?;
        let shown = gauge.iter().any(|line| line.contains("Writer") && line.ends_with(" 1"));
        world.claim(EAST, "the gauge follows the role", shown, || format!("{gauge:?}"))
    }
    .boxed()
}
