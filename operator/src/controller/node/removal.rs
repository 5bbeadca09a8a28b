//! The way of a role out of the layout: removed by a Writer, waited for by a Follower (design record D3).

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use super::super::context::Context;
use super::super::endpoints::{Endpoints, LayoutAccess};
use super::super::error::{ReconcileError, chain};
use super::super::layout::{Outcome, converge, is_unheard};
use super::super::scope;
use super::status::Observation;
use super::{authority_of, proof};
use crate::api::federation::DeletionPolicy;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{holder, identity, intent, is_managed};
use crate::decision::drain_proof::DrainProof;
use crate::decision::factor_migration::hold;
use crate::decision::mutation::{Waiting, has_settled};
use crate::decision::node_state::Drain;
use crate::garage::{AdminClient, AdminError, ClusterLayout, ClusterStatus};
use crate::guard::{LayoutAuthority, LayoutOperation};
use crate::mutant::{self, Mutant};

/// The first write of a removal.
const OPERATION: LayoutOperation = LayoutOperation::UpdateClusterLayout;

/// Takes the role of `node` one step further out of the layout. The answer's `facts.drain` says how far it is.
pub(super) async fn advance(
    context: &Context,
    cluster: &GarageCluster,
    node: &GarageNode,
) -> Result<Observation, ReconcileError> {
    let Some(id) = identity(node) else { return Ok(Observation::draining(Drain::PreparedNotInLayout)) };
    let endpoints = match Endpoints::of(context, cluster).await? {
        Ok(endpoints) => endpoints,
        Err(missing) => return Ok(Observation::draining(Drain::Preparing(missing.to_string()))),
    };
    let authority = authority_of(context, cluster);
    let nodes = scope::nodes(context, cluster).await?;
    let holder = holder(cluster, &id, &nodes).filter(|other| other.name_any() != node.name_any());
    if let Some(other) = holder.filter(|_| !is_managed(node)) {
        // A declaration too many: what it named is somebody else's, and stays.
        tracing::info!(node = %node.name_any(), holder = %other.name_any(), "the identity belongs to another GarageNode: its role stays");
        return Ok(Observation::draining(Drain::PreparedNotInLayout));
    }
    let pods = scope::pods(&context.client, cluster).await?;
    let (admin, access) = (endpoints.service(), endpoints.layout(&scope::steady(&nodes, &pods)));
    let removal = Removal { context, cluster, node, nodes: &nodes, authority: &authority, admin, access };
    Ok(match removal.step(&id).await? {
        Ok(observation) => observation,
        Err(error) => Observation::draining(Drain::Preparing(chain(&error))),
    })
}

struct Removal<'a> {
    context: &'a Context,
    cluster: &'a GarageCluster,
    node: &'a GarageNode,
    nodes: &'a [GarageNode],
    authority: &'a LayoutAuthority,
    admin: AdminClient,
    access: LayoutAccess,
}

impl Removal<'_> {
    async fn step(&self, id: &str) -> Result<Result<Observation, AdminError>, ReconcileError> {
        let (status, layout) = match self.read().await {
            Ok(read) => read,
            Err(error) => return Ok(Err(error)),
        };
        let staged = layout.staged_role_changes.iter().any(|change| change.id.eq_ignore_ascii_case(id));
        let gone = layout.role(id).is_none();
        let permitted = if gone && !staged { None } else { Some(self.authority.before(OPERATION)) };
        let (drain, proof) = match permitted {
            Some(Err(_)) if !gone && mutant::is(Mutant::BlockedAdvances) => (Drain::Prepared, None),
            Some(Err(refusal)) if !gone => (Drain::Blocked(refusal.to_string()), None),
            None | Some(Err(_)) => self.after_removal(id, &layout).await?,
            Some(Ok(())) if self.is_fresh() => {
                (Drain::Preparing("a moment is left for the cluster to be deleted, too".to_owned()), None)
            }
            Some(Ok(())) => {
                let proof = proof::begin(self.context, self.node).await?;
                (self.remove().await, proof)
            }
        };
        let read = self.read().await;
        let (status, layout) = read.unwrap_or((status, layout));
        let mut observation = Observation::seen(id, &status, &layout, None);
        observation.facts.drain = Some(drain);
        observation.proof = proof.or_else(|| proof::recorded(self.node).cloned());
        Ok(Ok(observation))
    }

    /// A node and its cluster are often deleted together, with their namespace: under Destroy the role then stays, so
    /// a deletion that has only just begun is not acted upon yet.
    fn is_fresh(&self) -> bool {
        let Some(Time(began)) = &self.node.metadata.deletion_timestamp else { return false };
        let age = Duration::try_from(Timestamp::now().duration_since(*began)).unwrap_or_default();
        self.cluster.spec.effective_deletion_policy() == DeletionPolicy::Destroy
            && age < self.context.settings.cadence.pending * 2
    }

    /// The full status and layout read of every pass.
    async fn read(&self) -> Result<(ClusterStatus, ClusterLayout), AdminError> {
        tokio::try_join!(self.admin.cluster_status(), self.admin.cluster_layout())
    }

    async fn remove(&self) -> Drain {
        if let Some(why) = hold(self.cluster) {
            return Drain::Preparing(why);
        }
        let intent = match intent(self.cluster, self.nodes) {
            Ok(intent) => intent,
            Err(invalid) => return Drain::Blocked(invalid.to_string()),
        };
        match converge(self.context, &self.access, self.authority, &intent).await {
            Outcome::Pending(why) => Drain::Preparing(why),
            Outcome::Applied(version) => {
                Drain::Preparing(format!("layout version {version} without the node has to settle"))
            }
            Outcome::Settled => Drain::Preparing("the layout without the node has to settle".to_owned()),
        }
    }

    /// The node still serves what the older version placed on it until everyone has synced; and if this site runs it,
    /// until its blocks are proved elsewhere.
    async fn after_removal(
        &self,
        id: &str,
        layout: &ClusterLayout,
    ) -> Result<(Drain, Option<DrainProof>), ReconcileError> {
        let had_role = self.node.status.as_ref().is_some_and(|status| status.in_layout);
        let proof = match proof::recorded(self.node) {
            // Another site has removed the role since this one looked last.
            None if had_role => proof::begin(self.context, self.node).await?,
            recorded => recorded.cloned(),
        };
        let preparing = |why: String| Ok((Drain::Preparing(why), proof.clone()));
        let settled = match self.admin.layout_history().await {
            Ok(history) => has_settled(&history, layout.version),
            Err(error) => return preparing(chain(&error)),
        };
        if !mutant::is(Mutant::DrainSkipsSettling) {
            if !settled {
                return preparing(Waiting::Unsettled.message());
            }
            // A node that has lost its files, or is a moment behind, misses roles that the others still know.
            if is_unheard(&self.access, layout).await {
                return preparing(Waiting::Unheard.message());
            }
        }
        Ok(proof::advance(self.context, proof, &self.admin, id, layout).await)
    }
}
