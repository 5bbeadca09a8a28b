//! Carries a drain proof through: what is decided is recorded, then done.
//!
//! Whoever runs a node proves its drain: the node has to answer until the proof is complete, and only that site can keep
//! it. So a Follower proves what the Writer's removal moved, and a Writer proves nothing for nodes that it only declares.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::super::apply::write_status;
use super::super::context::Context;
use super::super::error::{ReconcileError, chain};
use crate::api::v1beta1::GarageNode;
use crate::decision::assignment::is_managed;
use crate::decision::drain_proof::{self, DrainProof, Seen};
use crate::decision::node_state::Drain;
use crate::garage::{AdminClient, AdminError, ClusterLayout};
use crate::mutant::{self, Mutant};

/// The proof as the status of the node records it.
pub(super) fn recorded(node: &GarageNode) -> Option<&DrainProof> {
    node.status.as_ref()?.drain.as_ref()
}

/// Records that the role of a storage node of this site is about to go, or has just gone.
pub(super) async fn begin(
    context: &Context,
    node: &GarageNode,
) -> Result<Option<DrainProof>, ReconcileError> {
    if let Some(proof) = recorded(node) {
        return Ok(Some(proof.clone()));
    }
    if node.spec.gateway || !is_managed(node) || !context.settings.drain_block_proof {
        return Ok(None);
    }
    let proof = DrainProof { started_at: Some(Time(Timestamp::now())), ..DrainProof::default() };
    let mut status = node.status.clone().unwrap_or_default();
    status.drain = Some(proof.clone());
    write_status(&context.client, node, &status).await?;
    Ok(Some(proof))
}

/// Takes the proof one step further; the caller records how far it is. A node without one has nothing to prove here.
///
/// Repairs are launched only from a recorded baseline, so that a crash in between cannot miss one.
pub(super) async fn advance(
    context: &Context,
    proof: Option<DrainProof>,
    admin: &AdminClient,
    id: &str,
    layout: &ClusterLayout,
) -> (Drain, Option<DrainProof>) {
    let Some(proof) = proof else { return (Drain::Prepared, None) };
    let skipped = !context.settings.drain_block_proof || mutant::is(Mutant::DrainSkipsProof);
    if proof.completed_at.is_some() || skipped {
        return (Drain::Prepared, Some(proof));
    }
    let seen = match observe(admin, id, layout).await {
        Ok(seen) => seen,
        Err(error) => {
            // What a node did while it was not seen is unknown: the quiet period begins anew, the repairs stay.
            return (Drain::Preparing(chain(&error)), Some(DrainProof { quiet_since: None, ..proof }));
        }
    };
    let now = Time(Timestamp::now());
    let step = drain_proof::advance(&proof, &seen, &now, context.settings.drain_quiet_period);
    let mut failed = None;
    for target in &step.launch {
        // One that does not answer keeps nobody else from beginning.
        if let Err(error) = admin.launch_repair(target, "blocks").await {
            failed.get_or_insert(error);
        }
    }
    if let Some(error) = failed {
        return (Drain::Preparing(chain(&error)), Some(step.proof));
    }
    (step.waiting.map_or(Drain::Prepared, Drain::Preparing), Some(step.proof))
}

/// What the storage nodes and the leaving one say; each of them has to answer.
async fn observe(admin: &AdminClient, id: &str, layout: &ClusterLayout) -> Result<Seen, AdminError> {
    let (workers, errors) = tokio::try_join!(admin.list_workers(), admin.list_block_errors())?;
    let storage = layout.roles.iter().filter(|role| role.capacity.is_some()).map(|role| role.id.clone());
    let members: BTreeSet<String> = storage.chain([id.to_owned()]).collect();
    let mut seen = Seen { layout_version: layout.version, ..Seen::default() };
    for member in members {
        let found = workers.get(&member).cloned().unwrap_or_default();
        seen.block_errors.insert(member.clone(), errors.get(&member).copied().unwrap_or(0));
        seen.workers.insert(member, found);
    }
    Ok(seen)
}
