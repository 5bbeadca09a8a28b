//! The end of a node: its role leaves the layout first, then its finalizer goes (operator contract §5.6).

use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::info;

use super::super::apply::remove_finalizer;
use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::{ReconcileError, chain};
use super::super::layout::{Outcome, converge};
use super::super::scope;
use super::status::{self, Observation};
use super::{authority_of, next_look, pace_key};
use crate::api::federation::DeletionPolicy;
use crate::api::naming::NODE_FINALIZER;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{identity, intent};
use crate::decision::mutation::is_settled;
use crate::garage::{AdminClient, AdminError};
use crate::guard::{LayoutAuthority, LayoutOperation};

/// Whether the finalizer may go.
enum Verdict {
    Release(&'static str),
    Hold(String),
}

/// Lets the node go as soon as its role is gone, or nobody cares about its role any more.
pub(super) async fn finalize(
    context: &Context,
    node: &GarageNode,
    cluster: Option<&GarageCluster>,
) -> Result<Action, ReconcileError> {
    if !node.finalizers().iter().any(|finalizer| finalizer == NODE_FINALIZER) {
        context.paces.forget(&pace_key(node));
        return Ok(Action::await_change());
    }
    match judge(context, node, cluster).await? {
        Verdict::Release(why) => {
            info!(node = %node.name_any(), namespace = %node.namespace().unwrap_or_default(), why, "GarageNode released");
            remove_finalizer(&context.client, node, NODE_FINALIZER).await?;
            context.paces.forget(&pace_key(node));
            Ok(Action::await_change())
        }
        Verdict::Hold(why) => {
            let mut observation = Observation::default();
            observation.facts.deleting = true;
            observation.facts.waiting = Some(why);
            status::write(context, node, cluster, observation).await?;
            Ok(next_look(context, node, false))
        }
    }
}

async fn judge(
    context: &Context,
    node: &GarageNode,
    cluster: Option<&GarageCluster>,
) -> Result<Verdict, ReconcileError> {
    let Some(cluster) = cluster else {
        return Ok(Verdict::Release("its cluster is gone"));
    };
    let destroyed = cluster.metadata.deletion_timestamp.is_some()
        && cluster.spec.effective_deletion_policy() == DeletionPolicy::Destroy;
    if destroyed {
        return Ok(Verdict::Release("its cluster is destroyed"));
    }
    let Some(id) = identity(node) else { return Ok(Verdict::Release("it never had an identity")) };
    let endpoints = match Endpoints::of(context, cluster).await? {
        Ok(endpoints) => endpoints,
        Err(missing) => return Ok(Verdict::Hold(missing.to_string())),
    };
    let authority = authority_of(context, cluster);
    let nodes = scope::nodes(&context.client, cluster).await?;
    let removal =
        Removal { context, cluster, nodes: &nodes, authority: &authority, admin: endpoints.service() };
    Ok(removal.step(&id).await.unwrap_or_else(|error| Verdict::Hold(chain(&error))))
}

struct Removal<'a> {
    context: &'a Context,
    cluster: &'a GarageCluster,
    nodes: &'a [GarageNode],
    authority: &'a LayoutAuthority,
    admin: AdminClient,
}

impl Removal<'_> {
    async fn step(&self, id: &str) -> Result<Verdict, AdminError> {
        let (_, layout) = tokio::try_join!(self.admin.cluster_status(), self.admin.cluster_layout())?;
        let staged = layout.staged_role_changes.iter().any(|change| change.id.eq_ignore_ascii_case(id));
        if layout.role(id).is_none() && !staged {
            return self.after_removal().await;
        }
        if let Err(refusal) = self.authority.permit(LayoutOperation::UpdateClusterLayout) {
            let role_is_gone = layout.role(id).is_none();
            return if role_is_gone {
                self.after_removal().await
            } else {
                Ok(Verdict::Hold(refusal.to_string()))
            };
        }
        Ok(Verdict::Hold(self.remove().await))
    }

    async fn remove(&self) -> String {
        let intent = match intent(self.cluster, self.nodes) {
            Ok(intent) => intent,
            Err(invalid) => return invalid.to_string(),
        };
        match converge(&self.admin, self.authority, &self.context.locks, &intent).await {
            Outcome::Pending(why) => why,
            Outcome::Applied(version) => format!("layout version {version} without the node has to settle"),
            Outcome::Settled => "the layout without the node has to settle".to_owned(),
        }
    }

    /// The node still serves what the older version placed on it until everyone has synced.
    async fn after_removal(&self) -> Result<Verdict, AdminError> {
        let settled = is_settled(&self.admin.layout_history().await?);
        Ok(if settled {
            Verdict::Release("its role is gone and the layout is settled")
        } else {
            Verdict::Hold("an older layout version is still draining".to_owned())
        })
    }
}
