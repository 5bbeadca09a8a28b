//! What a scenario does and awaits, in its own words.
//!
//! | file | what it holds |
//! |---|---|
//! | [`mod@self`] | the world of a cell, and how it comes to be; start here |
//! | [`change`] | what a user changes |
//! | [`admission`] | what the API server makes of a change, and what decides that |
//! | [`seen`] | what is awaited of the operator's objects |
//! | [`ready`] | Ready over time |
//! | [`garage`] | nodes and layouts, read and changed by hand |
//! | [`fault`] | what is broken on purpose |
//! | [`calls`] | the calls that were recorded |

pub mod admission;
pub mod calls;
pub mod change;
pub mod fault;
pub mod garage;
pub mod ready;
pub mod seen;

use futures::future::try_join_all;
use harness::failure::Failure;
use harness::garage::progress::completes_reconciles;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::{change_roles, roles_of};
use harness::scenario::{Cell, Scope};
use harness::site::{PerSite, Site};

use crate::fixture::cluster::{Cluster, LayoutPolicy};
use crate::fixture::node::{External, create_managed, declare_external};
use crate::fixture::{CLUSTER, secret};

/// The site under test of the cells that have one.
pub const EAST: Site = Site::East;
/// The other site.
pub const WEST: Site = Site::West;

/// What a cell works with.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    /// Its namespaces, its clients, its recorder.
    pub scope: &'a Scope,
    /// Its mesh and the hub.
    pub stage: &'a Stage,
    /// The cell itself.
    pub cell: &'a Cell,
}

impl<'a> World<'a> {
    /// The world of `cell`.
    #[must_use]
    pub fn new(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> Self {
        Self { scope, stage, cell }
    }

    /// The role of `site` in this cell; Absent where it has none.
    #[must_use]
    pub fn role(&self, site: Site) -> Role {
        (*roles_of(self.cell).at(site)).unwrap_or(Role::Absent)
    }

    /// Whether `site` takes part.
    #[must_use]
    pub fn takes_part(&self, site: Site) -> bool {
        self.cell.roles.at(site).is_some()
    }

    /// Whether the site under test is a Follower.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.role(EAST) == Role::Follower
    }

    /// Records what is done next.
    pub fn step(&self, title: impl Into<String>) {
        self.scope.recorder.step(title);
    }

    /// Records that from now on the sites have these roles.
    pub fn declare(&self, east: Option<Role>, west: Option<Role>) {
        change_roles(self.scope, &PerSite { east, west });
    }

    /// Creates the Secrets and the GarageCluster of `site`.
    pub async fn found(&self, site: Site, cluster: &Cluster) -> Result<(), Failure> {
        secret::create_all(self.scope, &self.stage.mesh, site).await?;
        cluster.create(self.scope, site).await
    }

    /// Creates the cluster of `site` and its nodes, waits until the operator knows their identities, and returns their
    /// names.
    pub async fn start(&self, site: Site, cluster: &Cluster, manual: u32) -> Result<Vec<String>, Failure> {
        self.found(site, cluster).await?;
        let names = match cluster.policy {
            LayoutPolicy::Auto => auto_nodes(cluster.replicas),
            LayoutPolicy::Manual => manual_nodes(manual),
        };
        if cluster.policy == LayoutPolicy::Manual {
            try_join_all(names.iter().map(|name| create_managed(self.scope, site, name))).await?;
        }
        self.identities(site, &names).await?;
        Ok(names)
    }

    /// Brings the cell to where its stimulus begins: the site under test, east, runs `cluster` and every node of it has a
    /// role. Where west takes part it runs one node. The writer declares the follower's nodes.
    pub async fn settled(&self, cluster: &Cluster, manual: u32) -> Result<Vec<String>, Failure> {
        let names = if self.takes_part(WEST) {
            let west = Cluster::manual(self.role(WEST)).factor(cluster.factor);
            let (east, west) = futures::try_join!(
                self.start(EAST, cluster, manual),
                self.start(WEST, &west, cluster.factor.max(1))
            )?;
            let (writer, theirs) = if self.follows() { (WEST, &east) } else { (EAST, &west) };
            self.declare_nodes(writer, theirs).await?;
            futures::try_join!(self.in_layout(EAST, &east), self.in_layout(WEST, &west))?;
            east
        } else {
            let east = self.start(EAST, cluster, manual).await?;
            self.in_layout(EAST, &east).await?;
            east
        };
        self.shows_role(EAST).await?;
        if self.follows() {
            self.condition(EAST, "AwaitingLayoutWriter", "False", "NothingPending").await?;
        }
        self.condition(EAST, "Ready", "True", "ClusterReady").await?;
        Ok(names)
    }

    /// Declares nodes of the other site at `writer`, so that its operator gives them roles (design record, D2-A).
    pub async fn declare_nodes(&self, writer: Site, names: &[String]) -> Result<(), Failure> {
        let home = writer.other();
        try_join_all(names.iter().map(|name| async move {
            let (node_id, address) = futures::try_join!(self.identity(home, name), self.address(home, name))?;
            declare_external(self.scope, writer, &External { home, name: name.clone(), node_id, address })
                .await
        }))
        .await
        .map(drop)
    }

    /// The operator of `site` completes two reconciles of everything it has, and causes nothing with the second one.
    pub async fn stays_quiet(&self, site: Site, nodes: &[String]) -> Result<(), Failure> {
        completes_reconciles(self.scope, &self.stage.mesh, site, CLUSTER, nodes, 2).await
    }

    /// The operator of `site` completes a reconcile of everything it has.
    pub async fn reconciles(&self, site: Site, nodes: &[String]) -> Result<(), Failure> {
        completes_reconciles(self.scope, &self.stage.mesh, site, CLUSTER, nodes, 1).await
    }

    /// The operator of `site` comes to the end of two passes over its cluster, as far as its spec lets it: its status
    /// speaks of the newest spec, also after one more nudge.
    pub async fn reconciles_at_all(&self, site: Site) -> Result<(), Failure> {
        for number in 1..=2 {
            let zone = serde_json::json!({"storage": {"tags": [format!("nudge-{number}")]}});
            self.change(site, &zone).await?;
            let generation = self.cluster(site).await?.metadata.generation;
            let seen =
                |seen: Option<&serde_json::Value>| seen.and_then(serde_json::Value::as_i64) >= generation;
            self.cluster_field(site, "/status/observedGeneration", "a status of the newest spec", seen)
                .await?;
        }
        Ok(())
    }

    /// Something that the cell claims is not so.
    #[must_use]
    pub fn not_so(&self, site: Site, claim: impl Into<String>, seen: impl Into<String>) -> Failure {
        Failure::Claim { site, claim: claim.into(), seen: seen.into() }
    }

    /// Fails unless `holds`.
    pub fn claim(
        &self,
        site: Site,
        claim: &str,
        holds: bool,
        seen: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if holds { Ok(()) } else { Err(self.not_so(site, claim, seen())) }
    }
}

/// Names of the nodes of an Auto cluster.
#[must_use]
pub fn auto_nodes(replicas: u32) -> Vec<String> {
    (0..replicas).map(|ordinal| format!("{CLUSTER}-storage-{ordinal}")).collect()
}

/// Names of the nodes that scenarios create.
#[must_use]
pub fn manual_nodes(count: u32) -> Vec<String> {
    (0..count).map(|ordinal| format!("{CLUSTER}-{ordinal}")).collect()
}

/// The name under which the writer declares node `name` of site `home`.
#[must_use]
pub fn declared(home: Site, name: &str) -> String {
    format!("{home}-{name}")
}
