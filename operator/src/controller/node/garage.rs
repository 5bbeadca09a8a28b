//! The part of a node's reconcile that talks to its cluster: connect, read, assign.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::super::apply::remove_annotations;
use super::super::context::Context;
use super::super::endpoints::{Endpoints, LayoutAccess};
use super::super::error::{ReconcileError, chain};
use super::super::layout::{Outcome, converge};
use super::super::scope::{self, address, is_ready};
use super::identity::Found;
use super::status::Observation;
use crate::api::layout::LayoutSiteRole;
use crate::api::naming::ACKNOWLEDGE_LOST_SOURCE;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{collision, identity, intent, is_managed, wanted_role};
use crate::decision::factor_migration::hold;
use crate::decision::identity_change::{acknowledged, lost_source};
use crate::decision::node_state::{NodeFacts, Obstacle};
use crate::garage::{AdminClient, AdminError, ClusterLayout, ClusterStatus};
use crate::guard::{LayoutAuthority, LayoutOperation};
use crate::mutant::{self, Mutant};

/// Connects the node, assigns its role if this site may, and reads how it is then.
pub(super) async fn reconcile(
    context: &Context,
    cluster: &GarageCluster,
    node: &GarageNode,
    found: Found,
    authority: &LayoutAuthority,
) -> Result<Observation, ReconcileError> {
    let endpoints = match Endpoints::of(context, cluster).await? {
        Ok(endpoints) => endpoints,
        Err(missing) => {
            return Ok(Observation::obstructed(Obstacle::pending("AdminTokenMissing", missing.to_string())));
        }
    };
    let nodes = siblings(context, cluster, node).await?;
    if let Some(other) = collision(cluster, node, &found.id, &nodes) {
        let message = format!("GarageNode {} has the same identity {}", other.name_any(), found.id);
        return Ok(Observation::obstructed(Obstacle::failed("IdentityCollision", message)));
    }
    let pods = scope::pods(&context.client, cluster).await?;
    let (admin, access) = (endpoints.service(), endpoints.layout(&scope::steady(&nodes, &pods)));
    let lost = acknowledged(node);
    let pass = Pass { context, cluster, node, nodes: &nodes, pods: &pods, authority, admin, access };
    let seen = pass.run(&found.id).await;
    if let (Some(_), Ok(observation)) = (&lost, &seen)
        && observation.facts.in_layout
        && observation.facts.waiting.is_none()
    {
        // Its role is gone, or it never was this node's: an acknowledgement is used once.
        remove_annotations(&context.client, node, &[ACKNOWLEDGE_LOST_SOURCE]).await?;
    }
    Ok(match seen {
        Ok(Observation { facts: NodeFacts { waiting: Some(why), .. }, .. })
            if mutant::is(Mutant::BlockedAsFailed) =>
        {
            Observation::obstructed(Obstacle::failed("LayoutWriteBlocked", why))
        }
        Ok(observation) => observation,
        Err(error) => Observation::obstructed(Obstacle::pending("GarageUnreachable", chain(&error))),
    })
}

/// The nodes of the cluster, this one as it is known here.
async fn siblings(
    context: &Context,
    cluster: &GarageCluster,
    node: &GarageNode,
) -> Result<Vec<GarageNode>, ReconcileError> {
    let mut nodes = scope::nodes(context, cluster).await?;
    if let Some(own) = nodes.iter_mut().find(|other| other.name_any() == node.name_any()) {
        own.status.clone_from(&node.status);
    }
    Ok(nodes)
}

struct Pass<'a> {
    context: &'a Context,
    cluster: &'a GarageCluster,
    node: &'a GarageNode,
    nodes: &'a [GarageNode],
    pods: &'a BTreeMap<String, Pod>,
    authority: &'a LayoutAuthority,
    admin: AdminClient,
    access: LayoutAccess,
}

impl Pass<'_> {
    async fn run(&self, id: &str) -> Result<Observation, AdminError> {
        let (mut status, mut layout) = read(&self.admin).await?;
        let mut waiting = None;
        if !self.unconnected(&status).is_empty() || self.wants_change(&layout, id) {
            waiting = self.approach(id).await?;
            (status, layout) = read(&self.access.admin).await?;
        }
        if waiting.is_none() && self.holds_lost_role(&layout) {
            waiting = Some("the role of its lost identity has to leave the layout".to_owned());
        }
        Ok(Observation::seen(id, &status, &layout, waiting))
    }

    /// Connects first, then changes the layout if this site may; answers what it waits for.
    async fn approach(&self, id: &str) -> Result<Option<String>, AdminError> {
        let (status, layout) = read(&self.access.admin).await?;
        let seen =
            if self.connect(&status).await { self.access.admin.cluster_status().await? } else { status };
        if let Some((peer, _)) = self.unconnected(&seen).first() {
            return Ok(Some(format!("node {peer} is not connected yet")));
        }
        if !self.wants_change(&layout, id) {
            return Ok(None);
        }
        if layout.role(id).is_none()
            && let Some(unseen) = self.unseen(id, &seen).await
        {
            return Ok(Some(unseen));
        }
        if let Some(silent) = self.unidentified().filter(|_| layout.version == 0) {
            return Ok(Some(format!("GarageNode {silent} has not told its identity yet")));
        }
        Ok(match self.change().await {
            Outcome::Pending(why) => Some(why),
            Outcome::Applied(_) | Outcome::Settled => None,
        })
    }

    /// Why a declared node gets no first role yet: Garage does not see it, and cannot connect to where it is said to be.
    async fn unseen(&self, id: &str, status: &ClusterStatus) -> Option<String> {
        let external = self.node.spec.external.as_ref().filter(|_| !status.is_up(id))?;
        let address = format!("{}:{}", external.address, external.port);
        let dialled = self.access.admin.connect(&format!("{id}@{address}")).await;
        let why = dialled.err().map(|error| format!(" ({})", chain(&error))).unwrap_or_default();
        Some(format!("Garage has not seen node {id} at {address} yet; is its nodeId right?{why}"))
    }

    /// A node that runs and has not been asked yet: the first layout is made of all that run.
    fn unidentified(&self) -> Option<String> {
        let running = |node: &&GarageNode| self.pods.get(&node.name_any()).is_some_and(is_ready);
        let silent =
            self.nodes.iter().filter(|node| is_managed(node) && identity(node).is_none()).find(running);
        silent.map(ResourceExt::name_any)
    }

    /// Managed nodes with a ready pod that are not up in this view, with their addresses.
    fn unconnected(&self, status: &ClusterStatus) -> Vec<(String, String)> {
        let port = self.cluster.spec.network.rpc_port();
        let reachable =
            self.nodes.iter().filter(|node| is_managed(node) && node.metadata.deletion_timestamp.is_none());
        reachable
            .filter_map(|node| {
                let pod = self.pods.get(&node.name_any()).filter(|pod| is_ready(pod))?;
                Some((identity(node)?, format!("{}:{port}", address(pod)?)))
            })
            .filter(|(id, _)| !status.is_up(id))
            .collect()
    }

    /// Connects what is not connected; answers whether it tried.
    async fn connect(&self, status: &ClusterStatus) -> bool {
        let unconnected = self.unconnected(status);
        for (id, address) in &unconnected {
            if let Err(error) = self.access.admin.connect(&format!("{id}@{address}")).await {
                tracing::info!(node = %id, error = %chain(&error), "node not connected yet");
            }
        }
        !unconnected.is_empty()
    }

    /// Whether the layout should change for this node. A Follower only asks for a missing role: zone, capacity and
    /// tags are the writer's declaration, not its own.
    fn wants_change(&self, layout: &ClusterLayout, id: &str) -> bool {
        if self.holds_lost_role(layout) {
            return true;
        }
        match (layout.role(id), self.authority.decision().effective()) {
            (None, _) => true,
            (Some(_), LayoutSiteRole::Follower) => false,
            (Some(role), LayoutSiteRole::Writer) => {
                wanted_role(self.cluster, self.node, id).map_or(true, |wanted| !wanted.is(role))
            }
        }
    }

    /// Whether the identity that this node lost still has a role.
    fn holds_lost_role(&self, layout: &ClusterLayout) -> bool {
        let node = self.nodes.iter().find(|node| node.name_any() == self.node.name_any());
        node.and_then(lost_source).is_some_and(|lost| layout.role(&lost).is_some())
    }

    async fn change(&self) -> Outcome {
        if let Some(why) = hold(self.cluster) {
            return Outcome::Pending(why);
        }
        if let Err(refusal) = self.authority.before(LayoutOperation::UpdateClusterLayout) {
            return Outcome::Pending(refusal.to_string());
        }
        match intent(self.cluster, self.nodes) {
            Ok(intent) => converge(self.context, &self.access, self.authority, &intent).await,
            Err(invalid) => Outcome::Pending(invalid.to_string()),
        }
    }
}

/// The full status and layout read.
async fn read(admin: &AdminClient) -> Result<(ClusterStatus, ClusterLayout), AdminError> {
    tokio::try_join!(admin.cluster_status(), admin.cluster_layout())
}
