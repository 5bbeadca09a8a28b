//! Carries out what annotations ask for, or refuses it (operator contract §5.8, design record deviation 2).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tracing::info;

use super::super::apply::remove_annotations;
use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::{ReconcileError, chain};
use super::migration;
use crate::api::layout::LayoutSiteRole;
use crate::api::observed::LastOperation;
use crate::api::v1beta2::GarageCluster;
use crate::decision::foreign_writer::acknowledge;
use crate::decision::operations::{Requested, requested};
use crate::garage::{AdminClient, AdminError};
use crate::guard::{LayoutAuthority, LayoutOperation};
use crate::mutant::{self, Mutant};

/// How an operation ended.
struct Ending {
    /// What `status.lastOperation` says; `None` leaves it as it is.
    told: Option<Result<(), String>>,
    /// The annotations go: it is done, or it never will be.
    consumed: bool,
}

impl Ending {
    fn done() -> Self {
        Self { told: Some(Ok(())), consumed: true }
    }

    fn refused(why: impl Into<String>) -> Self {
        Self { told: Some(Err(why.into())), consumed: true }
    }

    fn try_again(why: impl Into<String>) -> Self {
        Self { told: Some(Err(why.into())), consumed: false }
    }
}

/// Handles every annotation that asks for an operation. The outcome is recorded before its annotation goes, so that
/// it is never lost; a refused one is gone before this site can be promoted.
pub(super) async fn handle(
    context: &Context,
    cluster: &mut GarageCluster,
    authority: &LayoutAuthority,
) -> Result<(), ReconcileError> {
    let follows = authority.decision().effective() == LayoutSiteRole::Follower;
    let key = authority.decision().cluster().to_string();
    let recalled = mutant::recalled(&key, follows, cluster.annotations());
    for operation in requested(&recalled).into_iter().chain(requested(cluster.annotations())) {
        let ending = match operation.write() {
            Some(write) if follows && !defiant(&operation) => {
                refuse(context, cluster, authority, &operation, write).await
            }
            _ => carry_out(context, cluster, authority, &operation).await?,
        };
        record(context, cluster, &operation, &ending).await?;
        let left = follows && mutant::is(Mutant::AnnotationLeft);
        if ending.consumed && !left {
            remove_annotations(&context.client, cluster, operation.annotations()).await?;
        }
    }
    Ok(())
}

/// A deliberate defect: a Follower carries out what it has to refuse.
fn defiant(operation: &Requested) -> bool {
    match operation {
        Requested::PurgeClusterLayout { .. } => mutant::is(Mutant::PurgeOnFollower),
        _ => mutant::is(Mutant::AnnotationExecuted) || operation.write().is_some_and(mutant::is_unguarded),
    }
}

/// Asking for the permit is the refusal: it is counted and logged there.
async fn refuse(
    context: &Context,
    cluster: &GarageCluster,
    authority: &LayoutAuthority,
    operation: &Requested,
    write: LayoutOperation,
) -> Ending {
    let why = match authority.before(write) {
        Err(refusal) => refusal.to_string(),
        Ok(()) => format!("{} is refused: this site is a Follower", operation.name()),
    };
    if !mutant::is(Mutant::NoEvent) {
        context.events.warn(cluster, "LayoutWriteBlocked", operation.name(), &why).await;
    }
    Ending::refused(why)
}

fn ended(result: Result<(), String>) -> Ending {
    result.map_or_else(Ending::refused, |()| Ending::done())
}

async fn carry_out(
    context: &Context,
    cluster: &mut GarageCluster,
    authority: &LayoutAuthority,
    operation: &Requested,
) -> Result<Ending, ReconcileError> {
    match operation {
        Requested::Revert { value } if value != "true" => {
            return Ok(Ending::refused(format!("the value {value:?} is not \"true\"")));
        }
        Requested::PurgeClusterLayout { value } => {
            return Ok(ended(migration::start(context, cluster, value).await?));
        }
        Requested::AcknowledgeForeignWriter => {
            let mut page = context.ledger.open(cluster).await;
            page.record = page.record.as_ref().map(acknowledge);
            return Ok(Ending::done());
        }
        Requested::AbortPurge => return Ok(ended(migration::stop(context, cluster).await?)),
        Requested::Revert { .. } | Requested::SkipDeadNodes { .. } => {}
    }
    let admin = match Endpoints::of(context, cluster).await? {
        Ok(endpoints) => endpoints.service(),
        Err(missing) => return Ok(Ending::try_again(missing.to_string())),
    };
    let Some(_lock) = context.locks.try_lock(authority.decision().owner()) else {
        return Ok(Ending { told: None, consumed: false });
    };
    info!(cluster = %cluster.name_any(), operation = operation.name(), "carrying out an operation");
    let result = match operation {
        Requested::SkipDeadNodes { allow_missing_data } => skip(&admin, authority, *allow_missing_data).await,
        _ => revert(&admin, authority).await,
    };
    Ok(match (result, operation) {
        (Ok(()), Requested::SkipDeadNodes { .. }) => Ending { told: None, consumed: true },
        (Ok(()), _) => Ending::done(),
        (Err(why), _) => Ending::try_again(why),
    })
}

/// What is dropped is read first: whoever reverts has seen it, and the log tells it.
async fn revert(admin: &AdminClient, authority: &LayoutAuthority) -> Result<(), String> {
    let layout = admin.cluster_layout().await.map_err(|error| chain(&error))?;
    info!(staged = layout.staged_role_changes.len(), version = layout.version, "dropping what is staged");
    let permit =
        authority.permit(LayoutOperation::RevertClusterLayout).map_err(|refusal| refusal.to_string())?;
    admin.revert_cluster_layout(&permit).await.map_err(|error| chain(&error))
}

/// Garage answers 400 when there is nothing to skip: that counts as done.
async fn skip(
    admin: &AdminClient,
    authority: &LayoutAuthority,
    allow_missing_data: bool,
) -> Result<(), String> {
    let layout = admin.cluster_layout().await.map_err(|error| chain(&error))?;
    let operation = LayoutOperation::ClusterLayoutSkipDeadNodes;
    let permit = authority.permit(operation).map_err(|refusal| refusal.to_string())?;
    match admin.cluster_layout_skip_dead_nodes(&permit, layout.version, allow_missing_data).await {
        Ok(_) | Err(AdminError::Answered { status: 400, .. }) => Ok(()),
        Err(error) => Err(chain(&error)),
    }
}

async fn record(
    context: &Context,
    cluster: &mut GarageCluster,
    operation: &Requested,
    ending: &Ending,
) -> Result<(), ReconcileError> {
    let Some(told) = &ending.told else { return Ok(()) };
    let error = told.as_ref().err().cloned();
    let mut status = cluster.status.clone().unwrap_or_default();
    let known = status.last_operation.as_ref().is_some_and(|last| {
        !ending.consumed
            && last.kind == operation.name()
            && last.error == error
            && last.succeeded == told.is_ok()
    });
    if known {
        return Ok(());
    }
    status.last_operation = Some(LastOperation {
        kind: operation.name().to_owned(),
        triggered_at: Time(Timestamp::now()),
        succeeded: told.is_ok(),
        error,
    });
    cluster.status = Some(context.ledger.write(&context.client, cluster, status).await?);
    Ok(())
}
