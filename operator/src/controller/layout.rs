//! The common mutation core: the only place where layouts are staged and applied (operator contract §5).

use futures::future::join_all;

use super::context::Context;
use super::endpoints::LayoutAccess;
use super::error::{ReconcileError, chain};
use crate::decision::foreign_writer::Content;
use crate::decision::mutation::{Intent, Step, Waiting, has_settled, is_ahead, next_step};
use crate::garage::{AdminClient, AdminError, ClusterLayout, LayoutParameters, RoleChange};
use crate::guard::{LayoutAuthority, LayoutOperation, LayoutWritesDisabled};
use crate::mutant::{self, Mutant};

/// How a mutation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The layout is as intended.
    Settled,
    /// This version was applied.
    Applied(i64),
    /// Somebody or something else has to move first; says what.
    Pending(String),
}

/// Brings the layout behind `access` one step closer to `intent`.
///
/// Settled history, nothing that only other nodes know of, exclusive intent, stage, verify that what is staged equals the intent, apply as the next version.
/// A record that cannot be written, a refused permit, a refused layout, a lost lock and a foreign change are pending, never failures.
pub async fn converge(
    context: &Context,
    access: &LayoutAccess,
    authority: &LayoutAuthority,
    intent: &Intent,
) -> Outcome {
    let Some(_lock) = context.locks.try_lock(authority.decision().owner()) else {
        return Outcome::Pending("another layout change of this operator is under way".to_owned());
    };
    match mutate(context, access, authority, intent).await {
        Ok(outcome) => outcome,
        Err(MutationError::Admin(error)) => Outcome::Pending(explain(&error)),
        Err(MutationError::Refused(refusal)) => Outcome::Pending(refusal.to_string()),
        Err(MutationError::Record(error)) => Outcome::Pending(chain(&error)),
    }
}

enum MutationError {
    Admin(AdminError),
    Refused(LayoutWritesDisabled),
    Record(ReconcileError),
}

impl From<AdminError> for MutationError {
    fn from(error: AdminError) -> Self {
        Self::Admin(error)
    }
}

impl From<LayoutWritesDisabled> for MutationError {
    fn from(refusal: LayoutWritesDisabled) -> Self {
        Self::Refused(refusal)
    }
}

async fn mutate(
    context: &Context,
    access: &LayoutAccess,
    authority: &LayoutAuthority,
    intent: &Intent,
) -> Result<Outcome, MutationError> {
    let admin = &access.admin;
    let layout = admin.cluster_layout().await?;
    let intent = &without_unseen(admin, &layout, intent).await?;
    match next_step(&layout, intent) {
        Step::Nothing => return Ok(Outcome::Settled),
        Step::Wait(Waiting::Foreign(_)) if mutant::is(Mutant::RevertForeignStaging) => {
            let permit = authority.permit(LayoutOperation::RevertClusterLayout)?;
            admin.revert_cluster_layout(&permit).await?;
        }
        Step::Wait(waiting @ Waiting::Foreign(_)) => return Ok(pending(&waiting)),
        Step::Wait(_) | Step::Stage { .. } | Step::Apply { .. } => {}
    }
    if !has_settled(&admin.layout_history().await?, layout.version) {
        return Ok(pending(&Waiting::Unsettled));
    }
    if is_unheard(access, &layout).await {
        return Ok(pending(&Waiting::Unheard));
    }
    let staged = stage(admin, authority, layout, intent).await?;
    match next_step(&staged, intent) {
        Step::Nothing => Ok(Outcome::Settled),
        Step::Wait(waiting) => Ok(pending(&waiting)),
        Step::Stage { .. } => Ok(Outcome::Pending("what is staged is not yet what was staged".to_owned())),
        Step::Apply { .. } if mutant::is(Mutant::StageWithoutApply) => {
            Ok(Outcome::Pending("what is staged is not applied".to_owned()))
        }
        Step::Apply { version } => {
            let (live, next) = (Content::of(&staged), Content::after_apply(&staged));
            let recorded = context.ledger.intend(&context.client, authority.decision().owner(), &live, &next);
            recorded.await.map_err(MutationError::Record)?;
            apply(admin, authority, version).await?;
            Ok(Outcome::Applied(version))
        }
    }
}

/// The intent without first roles for nodes that Garage does not see.
async fn without_unseen(
    admin: &AdminClient,
    layout: &ClusterLayout,
    intent: &Intent,
) -> Result<Intent, AdminError> {
    let mut unseen = intent.unproven(layout);
    if !unseen.is_empty() {
        let status = admin.cluster_status().await?;
        unseen.retain(|id| !status.is_up(id));
    }
    Ok(intent.clone().without(&unseen))
}

/// Whether another node knows of a change that the one at hand does not show. One that does not answer knows nothing.
pub(super) async fn is_unheard(access: &LayoutAccess, layout: &ClusterLayout) -> bool {
    let others = join_all(access.others.iter().map(AdminClient::cluster_layout)).await;
    others.iter().flatten().any(|other| is_ahead(other, layout))
}

async fn apply(admin: &AdminClient, authority: &LayoutAuthority, version: i64) -> Result<(), MutationError> {
    if mutant::applies_unversioned() {
        let permit = authority.permit(LayoutOperation::ApplyStagedLayoutChanges)?;
        admin.apply_staged_layout_changes(&permit).await?;
        return Ok(());
    }
    let permit = authority.permit(LayoutOperation::ApplyClusterLayout)?;
    match admin.apply_cluster_layout(&permit, version).await {
        Err(error) if error.is_wrong_version() && mutant::is(Mutant::BlindSecondApply) => {
            Ok(admin.apply_cluster_layout(&permit, version + 1).await?)
        }
        result => Ok(result?),
    }
}

/// Stages what is missing and answers the layout as it is then.
async fn stage(
    admin: &AdminClient,
    authority: &LayoutAuthority,
    layout: ClusterLayout,
    intent: &Intent,
) -> Result<ClusterLayout, MutationError> {
    let Step::Stage { roles, parameters } = next_step(&layout, intent) else { return Ok(layout) };
    update(admin, authority, &roles, parameters).await?;
    mutant::staged();
    Ok(admin.cluster_layout().await?)
}

async fn update(
    admin: &AdminClient,
    authority: &LayoutAuthority,
    roles: &[RoleChange],
    parameters: Option<LayoutParameters>,
) -> Result<(), MutationError> {
    if let Some(parameters) = parameters {
        let permit = authority.permit(LayoutOperation::UpdateClusterLayoutWithParams)?;
        admin.update_cluster_layout_with_params(&permit, roles, parameters).await?;
    } else {
        let permit = authority.permit(LayoutOperation::UpdateClusterLayout)?;
        admin.update_cluster_layout(&permit, roles).await?;
    }
    Ok(())
}

fn pending(waiting: &Waiting) -> Outcome {
    Outcome::Pending(waiting.message())
}

/// A factor or zone refusal leaves everything staged; a wrong version means that somebody was faster.
fn explain(error: &AdminError) -> String {
    if error.is_replication_constraint() {
        format!("Garage does not accept the layout yet; it stays staged: {}", chain(error))
    } else if error.is_wrong_version() {
        "another layout version came in between".to_owned()
    } else {
        chain(error)
    }
}
