//! The part of a node's reconcile that talks to its cluster: connect, read, assign.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::{ReconcileError, chain};
use super::super::layout::{Outcome, converge};
use super::super::scope::{self, address, is_ready};
use super::identity::Found;
use super::status::Observation;
use crate::api::layout::LayoutSiteRole;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{collision, identity, intent, is_managed, wanted_role};
use crate::decision::node_state::Obstacle;
use crate::garage::{AdminClient, AdminError, ClusterLayout, ClusterStatus};
use crate::guard::{LayoutAuthority, LayoutOperation};

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
    if let Some(other) = collision(node, &found.id, &nodes) {
        let message = format!("GarageNode {} has the same identity {}", other.name_any(), found.id);
        return Ok(Observation::obstructed(Obstacle::failed("IdentityCollision", message)));
    }
    let pods = scope::pods(&context.client, cluster).await?;
    let pass =
        Pass { context, cluster, node, nodes: &nodes, pods: &pods, authority, admin: endpoints.service() };
    Ok(match pass.run(&found.id).await {
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
    let mut nodes = scope::nodes(&context.client, cluster).await?;
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
}

impl Pass<'_> {
    async fn run(&self, id: &str) -> Result<Observation, AdminError> {
        let (mut status, mut layout) = self.read().await?;
        let mut waiting = None;
        if self.connect(&status).await {
            status = self.admin.cluster_status().await?;
        }
        match self.unconnected(&status).first() {
            Some((peer, _)) => waiting = Some(format!("node {peer} is not connected yet")),
            None if self.wants_change(&layout, id) => {
                let outcome = self.change().await;
                if let Outcome::Applied(_) = outcome {
                    (status, layout) = self.read().await?;
                }
                waiting = match outcome {
                    Outcome::Pending(why) => Some(why),
                    Outcome::Applied(_) | Outcome::Settled => None,
                };
            }
            None => {}
        }
        Ok(Observation::seen(id, &status, &layout, waiting))
    }

    /// The full status and layout read of every pass.
    async fn read(&self) -> Result<(ClusterStatus, ClusterLayout), AdminError> {
        tokio::try_join!(self.admin.cluster_status(), self.admin.cluster_layout())
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
            if let Err(error) = self.admin.connect(&format!("{id}@{address}")).await {
                tracing::info!(node = %id, error = %chain(&error), "node not connected yet");
            }
        }
        !unconnected.is_empty()
    }

    /// Whether the layout should change for this node. A Follower only asks for a missing role: zone, capacity and
    /// tags are the writer's declaration, not its own.
    fn wants_change(&self, layout: &ClusterLayout, id: &str) -> bool {
        match (layout.role(id), self.authority.decision().effective()) {
            (None, _) => true,
            (Some(_), LayoutSiteRole::Follower) => false,
            (Some(role), LayoutSiteRole::Writer) => {
                wanted_role(self.cluster, self.node, id).map_or(true, |wanted| !wanted.is(role))
            }
        }
    }

    async fn change(&self) -> Outcome {
        if let Err(refusal) = self.authority.permit(LayoutOperation::UpdateClusterLayout) {
            return Outcome::Pending(refusal.to_string());
        }
        match intent(self.cluster, self.nodes) {
            Ok(intent) => converge(&self.admin, self.authority, &self.context.locks, &intent).await,
            Err(invalid) => Outcome::Pending(invalid.to_string()),
        }
    }
}
