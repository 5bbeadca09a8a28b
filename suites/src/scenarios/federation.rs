//! Federation: the writer declares the follower's nodes, and every node gets its role from the writer.
//!
//! Stimulus: external GarageNodes at the writer's site for the nodes that the follower runs. Ends on: all nodes of both
//! sites in one layout, and two completed reconciles of the follower later not one layout write by it.
//! The second cell swaps the sites.

use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join};
use harness::failure::Failure;
use harness::garage::mesh::Mesh;
use harness::garage::progress::completes_reconciles;
use harness::garage::role::Role;
use harness::garage::system::{Garage, roles_of};
use harness::scenario::{Cell, Kind, Scenario, Scope};
use harness::site::{PerSite, Site};

use super::observe;
use crate::fixture::cluster::LayoutPolicy;
use crate::fixture::node::{External, create_managed, declare_external};
use crate::fixture::{CLUSTER, cluster, secret};

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: "federation",
        about: "the writer declares the follower's nodes; all nodes get roles, every write is the writer's",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    let cell = |name, east, west| Cell {
        scenario: "federation",
        name,
        kind: Kind::Subject,
        roles: PerSite { east: Some(east), west: Some(west) },
        claim: "all nodes of both sites get roles, and the follower makes no layout write",
        record: "How do follower identities get roles? D2-A; Behavior matrix: Assign roles to own new nodes",
    };
    vec![cell("east-writes", "Writer", "Follower"), cell("west-writes", "Follower", "Writer")]
}

fn run<'a>(scope: &'a Scope, mesh: &'a Mesh, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let roles = roles_of(cell);
        let writer = if roles.east == Some(Role::Writer) { Site::East } else { Site::West };
        let follower = writer.other();
        try_join(start(scope, mesh, writer, Role::Writer), start(scope, mesh, follower, Role::Follower))
            .await?;
        let external = declare_followers_nodes(scope, writer).await?;

        let mut at_writer = nodes();
        at_writer.extend(external);
        let in_layout = |site, nodes| async move { observe::all_in_layout(scope, site, nodes).await };
        try_join(in_layout(writer, &at_writer), in_layout(follower, &nodes())).await?;
        observe::condition(scope, follower, "AwaitingLayoutWriter", "False", "NothingPending").await?;
        completes_reconciles(scope, mesh, follower, CLUSTER, &nodes(), 2).await?;

        holds_all_roles(scope, mesh, writer).await?;
        holds_all_roles(scope, mesh, follower).await
    }
    .boxed()
}

/// Starts the cluster of one site with its own nodes.
async fn start(scope: &Scope, mesh: &Mesh, site: Site, role: Role) -> Result<(), Failure> {
    secret::create_all(scope, mesh, site).await?;
    cluster::create(scope, site, LayoutPolicy::Manual, role).await?;
    for name in nodes() {
        create_managed(scope, site, &name).await?;
    }
    Ok(())
}

/// Declares each node of the follower at the writer's site, and returns the names there.
async fn declare_followers_nodes(scope: &Scope, writer: Site) -> Result<Vec<String>, Failure> {
    let home = writer.other();
    let mut declared = Vec::new();
    for name in nodes() {
        let node_id = observe::identity(scope, home, &name).await?;
        let address = observe::address(scope, home, &name).await?;
        let node = External { home, name: name.clone(), node_id, address };
        declare_external(scope, writer, &node).await?;
        declared.push(format!("{home}-{name}"));
    }
    Ok(declared)
}

/// Every node of `site` holds a layout with the nodes of both sites in it.
async fn holds_all_roles(scope: &Scope, mesh: &Mesh, site: Site) -> Result<(), Failure> {
    let roles = nodes().len() * Site::ALL.len();
    for layout in observe::layouts(scope, mesh, site, &nodes()).await? {
        if layout.roles.len() != roles {
            let claim = format!("every node holds a layout with {roles} roles");
            return Err(Failure::Claim { site, claim, seen: format!("{layout:?}") });
        }
    }
    Ok(())
}

fn nodes() -> Vec<String> {
    (0..2).map(|ordinal| format!("{CLUSTER}-{ordinal}")).collect()
}
