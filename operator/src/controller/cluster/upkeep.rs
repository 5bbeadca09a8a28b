//! Layout changes that belong to the cluster and not to one of its nodes: stale gateway roles, layout
//! parameters, roles of other sites' nodes.

use std::collections::BTreeSet;

use tracing::info;

use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::ReconcileError;
use super::super::layout::{Outcome, converge};
use super::observe::Picture;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::wanted_parameters;
use crate::decision::mutation::Intent;
use crate::guard::{LayoutAuthority, LayoutOperation};
use crate::mutant::{self, Mutant};

/// Makes the changes, after the status has told what is pending, and answers whether nothing of it is left to be looked
/// after: what waits for something is tried again, and what was applied must be seen once. A Follower only asks, and is
/// refused.
pub(super) async fn keep(
    context: &Context,
    cluster: &GarageCluster,
    picture: &Picture,
    authority: &LayoutAuthority,
) -> Result<bool, ReconcileError> {
    let Some(intent) = intent(cluster, picture).filter(|_| !mutant::has_given_up()) else { return Ok(true) };
    let operation = match intent.parameters {
        Some(_) => LayoutOperation::UpdateClusterLayoutWithParams,
        None => LayoutOperation::UpdateClusterLayout,
    };
    let defiant = (mutant::is(Mutant::AutoApplyOnFollower) && !intent.removals.is_empty())
        || (mutant::is(Mutant::FollowerImports) && !picture.imports.is_empty());
    // The refusal is counted and logged where it is made.
    if !defiant && authority.before(operation).is_err() {
        return Ok(true);
    }
    let Ok(endpoints) = Endpoints::of(context, cluster).await? else { return Ok(true) };
    let access = endpoints.layout(&picture.steady);
    let outcome = converge(context, &access, authority, &intent).await;
    match &outcome {
        Outcome::Pending(why) => {
            mutant::failed();
            info!(cluster = %authority.decision().cluster(), why, "layout upkeep is pending");
        }
        Outcome::Applied(version) => {
            info!(cluster = %authority.decision().cluster(), version, "layout upkeep applied");
        }
        Outcome::Settled => {}
    }
    Ok(outcome == Outcome::Settled)
}

/// What is to be changed; `None` when nothing is.
fn intent(cluster: &GarageCluster, picture: &Picture) -> Option<Intent> {
    let automatic = cluster.spec.layout_management.as_ref().and_then(|management| management.auto_apply);
    let removals = match automatic {
        Some(true) => picture.tombstones.iter().map(|tombstone| tombstone.node_id.clone()).collect(),
        _ => BTreeSet::new(),
    };
    let drifted = picture.replication_drift.is_some();
    let parameters = wanted_parameters(&cluster.spec.replication).filter(|_| drifted);
    if removals.is_empty() && parameters.is_none() && picture.imports.is_empty() {
        return None;
    }
    let mut intent = Intent { parameters, ..picture.intent.clone() };
    intent.removals.extend(removals);
    intent.roles.extend(picture.imports.iter().cloned());
    Some(intent)
}
