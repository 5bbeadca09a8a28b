//! A node whose cluster is gone (operator contract §5.6): what is known of the cluster is what its status recorded.

use kube::ResourceExt;

use super::super::context::Context;
use super::super::endpoints::LayoutAccess;
use super::super::error::{ReconcileError, chain};
use super::super::secrets::token;
use super::status::Observation;
use crate::api::secret::ADMIN_TOKEN_KEY;
use crate::api::v1beta1::GarageNode;
use crate::controller::layout::{Outcome, converge};
use crate::decision::assignment::identity;
use crate::decision::mutation::{Intent, Waiting, has_settled};
use crate::decision::node_state::Drain;
use crate::garage::{AdminClient, AdminError};
use crate::guard::{ClusterKey, LayoutAuthority, LayoutOperation, RoleDecision};
use crate::mutant::{self, Mutant};

/// Takes back the gauge of a cluster that is gone: whoever took its finalizer away by hand left it behind.
pub(super) fn forget_cluster(context: &Context, node: &GarageNode) {
    let gone = ClusterKey::new(node.namespace().unwrap_or_default(), &node.spec.cluster_ref.name);
    context.metrics.site_role(&gone.to_string(), None);
}

/// Takes the role out of the layout through the recorded endpoint, if the recorded role allows it.
pub(super) async fn advance(context: &Context, node: &GarageNode) -> Result<Observation, ReconcileError> {
    let status = node.status.clone().unwrap_or_default();
    let namespace = node.namespace().unwrap_or_default();
    let Some(id) = identity(node).filter(|_| status.in_layout) else {
        return Ok(Observation::draining(Drain::PreparedNotInLayout));
    };
    let held = |why: String| Ok(Observation::draining(Drain::Blocked(why)));
    let (Some(endpoint), Some(reference)) = (&status.cluster_admin_endpoint, &status.cluster_admin_token_ref)
    else {
        return held(
            "its cluster is gone, and no admin endpoint was recorded; remove the finalizer by hand"
                .to_owned(),
        );
    };
    let token = match token(&context.client, &namespace, reference, ADMIN_TOKEN_KEY).await? {
        Ok(token) => token,
        Err(missing) => return held(missing.to_string()),
    };
    let admin = AdminClient::new(context.http.clone(), endpoint, token, context.settings.deadlines);
    let authority = context.guard.authority(recorded_role(node, &namespace));
    Ok(match step(context, &admin, &authority, &id).await {
        Ok(drain) => Observation::draining(drain),
        Err(error) => Observation::draining(Drain::Blocked(chain(&error))),
    })
}

/// The permit of an orphan comes from the last role that its own status records; unknown means refused.
fn recorded_role(node: &GarageNode, namespace: &str) -> RoleDecision {
    let cluster = ClusterKey::new(namespace, &node.spec.cluster_ref.name);
    match node.status.as_ref().and_then(|status| status.site_role) {
        Some(role) => RoleDecision::new(cluster, Some(role), []),
        None => RoleDecision::unresolved(cluster, None, "the cluster is gone, and its role was not recorded"),
    }
}

async fn step(
    context: &Context,
    admin: &AdminClient,
    authority: &LayoutAuthority,
    id: &str,
) -> Result<Drain, AdminError> {
    let layout = admin.cluster_layout().await?;
    if layout.role(id).is_none() {
        let settled = has_settled(&admin.layout_history().await?, layout.version);
        let waits = || Drain::Preparing(Waiting::Unsettled.message());
        return Ok(if settled { Drain::Prepared } else { waits() });
    }
    let defiant = mutant::is(Mutant::OrphanWrites);
    if let Err(refusal) = authority.before(LayoutOperation::UpdateClusterLayout)
        && !defiant
    {
        return Ok(Drain::Blocked(refusal.to_string()));
    }
    let intent = Intent { removals: [id.to_owned()].into(), ..Intent::default() };
    Ok(match converge(context, &LayoutAccess::through(admin.clone()), authority, &intent).await {
        Outcome::Pending(why) => Drain::Preparing(why),
        Outcome::Applied(_) | Outcome::Settled => Drain::Preparing("the layout has to settle".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::recorded_role;
    use crate::api::layout::LayoutSiteRole::{self, Follower, Writer};
    use crate::api::v1beta1::{GarageNode, GarageNodeSpec, GarageNodeStatus};
    use rstest::rstest;

    #[rstest]
    #[case(Some(Writer), true)]
    #[case(Some(Follower), false)]
    #[case(None, false)]
    fn an_orphan_may_write_only_if_it_knows_that_its_site_was_the_writer(
        #[case] recorded: Option<LayoutSiteRole>,
        #[case] may: bool,
    ) {
        let mut node = GarageNode::new("garage-0", GarageNodeSpec::default());
        node.status = Some(GarageNodeStatus { site_role: recorded, ..GarageNodeStatus::default() });
        assert_eq!(recorded_role(&node, "ns").forbidden().is_none(), may);
    }
}
