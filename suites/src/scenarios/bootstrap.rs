//! Bootstrap: a new GarageCluster whose nodes have no role yet.
//!
//! Stimulus: a GarageCluster with two replicas and a remote cluster. Ends on: both nodes in the first layout (control),
//! or `AwaitingLayoutWriter=True/NodesWithoutRole` and two completed reconciles later still no layout (subject).

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::mesh::Mesh;
use harness::garage::progress::completes_reconciles;
use harness::garage::role::Role;
use harness::garage::system::{Garage, roles_of};
use harness::scenario::{Cell, Kind, Scenario, Scope};
use harness::site::{PerSite, Site};

use super::observe;
use crate::fixture::cluster::{LayoutPolicy, REPLICAS};
use crate::fixture::{CLUSTER, cluster, secret};

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: "bootstrap",
        about: "a new cluster gets its first layout from a Writer, and none from a Follower",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    let cell = |name, kind, role, claim| Cell {
        scenario: "bootstrap",
        name,
        kind,
        roles: PerSite { east: Some(role), west: None },
        claim,
        record: "Behavior matrix: Bootstrap (first layout)",
    };
    vec![
        cell("writer", Kind::Control, "Writer", "the Writer assigns roles to its nodes and applies layout 1"),
        cell(
            "follower",
            Kind::Subject,
            "Follower",
            "the Follower makes no layout write and reports AwaitingLayoutWriter=True/NodesWithoutRole",
        ),
    ]
}

fn run<'a>(scope: &'a Scope, mesh: &'a Mesh, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let site = Site::East;
        let role = roles_of(cell).east.unwrap_or(Role::Absent);
        secret::create_all(scope, mesh, site).await?;
        cluster::create(scope, site, LayoutPolicy::Auto, role).await?;
        if role.may_write() {
            observe::all_in_layout(scope, site, &nodes()).await?;
            observe::condition(scope, site, "LayoutWriter", "True", "WriterSite").await?;
        } else {
            observe::condition(scope, site, "LayoutWriter", "False", "FollowerSite").await?;
            observe::condition(scope, site, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;
        }
        observe::identities(scope, site, &nodes()).await?;
        completes_reconciles(scope, mesh, site, CLUSTER, &nodes(), 2).await?;
        layouts_are(scope, mesh, site, role).await
    }
    .boxed()
}

/// What the nodes themselves hold in the end: one layout with both roles, or none at all.
async fn layouts_are(scope: &Scope, mesh: &Mesh, site: Site, role: Role) -> Result<(), Failure> {
    let roles = if role.may_write() { nodes().len() } else { 0 };
    for layout in observe::layouts(scope, mesh, site, &nodes()).await? {
        let applied = layout.version >= 1;
        if applied != role.may_write() || layout.roles.len() != roles {
            let claim = format!("every node holds {roles} roles");
            return Err(Failure::Claim { site, claim, seen: format!("{layout:?}") });
        }
    }
    Ok(())
}

fn nodes() -> Vec<String> {
    (0..REPLICAS).map(|ordinal| format!("{CLUSTER}-storage-{ordinal}")).collect()
}
