//! The way of a role out of the layout: removed by a Writer, waited for by a Follower (design record D3).

use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::{ReconcileError, chain};
use super::super::layout::{Outcome, converge};
use super::super::scope;
use super::authority_of;
use super::status::Observation;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{identity, intent};
use crate::decision::mutation::is_settled;
use crate::decision::node_state::Drain;
use crate::garage::{AdminClient, AdminError, ClusterLayout, ClusterStatus};
use crate::guard::{LayoutAuthority, LayoutOperation};

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
    let nodes = scope::nodes(&context.client, cluster).await?;
    let removal =
        Removal { context, cluster, nodes: &nodes, authority: &authority, admin: endpoints.service() };
    Ok(match removal.step(&id).await {
        Ok(observation) => observation,
        Err(error) => Observation::draining(Drain::Preparing(chain(&error))),
    })
}

struct Removal<'a> {
    context: &'a Context,
    cluster: &'a GarageCluster,
    nodes: &'a [GarageNode],
    authority: &'a LayoutAuthority,
    admin: AdminClient,
}

impl Removal<'_> {
    async fn step(&self, id: &str) -> Result<Observation, AdminError> {
        let (status, layout) = self.read().await?;
        let staged = layout.staged_role_changes.iter().any(|change| change.id.eq_ignore_ascii_case(id));
        let gone = layout.role(id).is_none();
        if gone && !staged {
            let drain = self.after_removal().await?;
            return Ok(seen(id, &status, &layout, drain));
        }
        if let Err(refusal) = self.authority.permit(LayoutOperation::UpdateClusterLayout) {
            let drain = if gone { self.after_removal().await? } else { Drain::Blocked(refusal.to_string()) };
            return Ok(seen(id, &status, &layout, drain));
        }
        let drain = self.remove().await;
        let (status, layout) = self.read().await?;
        Ok(seen(id, &status, &layout, drain))
    }

    /// The full status and layout read of every pass.
    async fn read(&self) -> Result<(ClusterStatus, ClusterLayout), AdminError> {
        tokio::try_join!(self.admin.cluster_status(), self.admin.cluster_layout())
    }

    async fn remove(&self) -> Drain {
        let intent = match intent(self.cluster, self.nodes) {
            Ok(intent) => intent,
            Err(invalid) => return Drain::Blocked(invalid.to_string()),
        };
        match converge(&self.admin, self.authority, &self.context.locks, &intent).await {
            Outcome::Pending(why) => Drain::Preparing(why),
            Outcome::Applied(version) => {
                Drain::Preparing(format!("layout version {version} without the node has to settle"))
            }
            Outcome::Settled => Drain::Preparing("the layout without the node has to settle".to_owned()),
        }
    }

    /// The node still serves what the older version placed on it until everyone has synced.
    async fn after_removal(&self) -> Result<Drain, AdminError> {
        if !is_settled(&self.admin.layout_history().await?) {
            return Ok(Drain::Preparing("an older layout version is still draining".to_owned()));
        }
        Ok(Drain::Prepared)
    }
}

fn seen(id: &str, status: &ClusterStatus, layout: &ClusterLayout, drain: Drain) -> Observation {
    let mut observation = Observation::seen(id, status, layout, None);
    observation.facts.drain = Some(drain);
    observation
}
