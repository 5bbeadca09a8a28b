//! The proof that every block has left a node whose role is gone (operator contract §5.4, step 6).
//!
//! Each node that could need a block from the leaving one runs a block repair; then nothing may move for a quiet
//! period. One step per observation, all of it in the status, so that a crash loses nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::garage::Worker;

/// Name of the worker that a block repair starts.
const REPAIR: &str = "Block repair worker";
/// Prefix of the names of the workers that fetch blocks.
const RESYNC: &str = "Block resync worker #";

/// How far a proof is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainProof {
    /// When the drain began: before the role was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The layout version without the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout_version: Option<i64>,
    /// Per node, the newest worker before its repair was started.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub baseline: BTreeMap<String, u64>,
    /// Per node, the worker of its repair.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub repairs: BTreeMap<String, u64>,
    /// Per node, the blocks it could not fetch when the quiet period began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Since when nothing has moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_since: Option<Time>,
    /// When the proof was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
}

/// What all nodes say about their workers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The layout version.
    pub layout_version: i64,
    /// Workers by node: the storage nodes and the one that leaves.
    pub workers: BTreeMap<String, Vec<Worker>>,
    /// Blocks that a node cannot fetch.
    pub block_errors: BTreeMap<String, usize>,
}

/// The proof one step further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    /// How far it is now; to be recorded before anything is launched.
    pub proof: DrainProof,
    /// Nodes whose block repair has to be started.
    pub launch: Vec<String>,
    /// What it waits for; `None` once it is complete.
    pub waiting: Option<String>,
}

/// Takes the proof one step further.
pub fn advance(proof: &DrainProof, seen: &Seen, now: &Time, quiet: Duration) -> Advance {
    let step = |proof: DrainProof, launch: Vec<String>, waiting: &str| Advance {
        proof,
        launch,
        waiting: Some(waiting.to_owned()),
    };
    let mut next = proof.clone();
    let same_nodes = proof.baseline.keys().eq(seen.workers.keys());
    if proof.layout_version != Some(seen.layout_version) || !same_nodes {
        return step(begin(proof, seen), Vec::new(), "block repairs have to be started");
    }
    next.repairs = repairs(proof, seen);
    let missing: Vec<String> =
        seen.workers.keys().filter(|node| !next.repairs.contains_key(*node)).cloned().collect();
    if !missing.is_empty() {
        next.quiet_since = None;
        return step(next, missing, "block repairs are being started");
    }
    if !seen.workers.iter().all(|(node, workers)| is_done(workers, next.repairs.get(node))) {
        next.quiet_since = None;
        return step(next, Vec::new(), "block repairs are under way");
    }
    let errors = errors(seen);
    if next.quiet_since.is_none() || next.errors != errors {
        next.errors = errors;
        next.quiet_since = Some(now.clone());
    }
    let since = next.quiet_since.as_ref().map_or(now.0, |since| since.0);
    let lasted = Duration::try_from(now.0.duration_since(since)).unwrap_or_default();
    if lasted < quiet {
        return step(next, Vec::new(), "nothing may move for the quiet period");
    }
    if !is_quiet(seen) {
        return step(next, Vec::new(), "blocks are still missing or being fetched");
    }
    next.completed_at = Some(now.clone());
    Advance { proof: next, launch: Vec::new(), waiting: None }
}

/// A proof for another version or another set of nodes begins anew.
fn begin(proof: &DrainProof, seen: &Seen) -> DrainProof {
    let newest = |workers: &Vec<Worker>| workers.iter().map(|worker| worker.id).max().unwrap_or(0);
    DrainProof {
        started_at: proof.started_at.clone(),
        layout_version: Some(seen.layout_version),
        baseline: seen.workers.iter().map(|(node, workers)| (node.clone(), newest(workers))).collect(),
        ..DrainProof::default()
    }
}

/// The adopted repairs, and those that have appeared since. One that vanished was lost with its process.
fn repairs(proof: &DrainProof, seen: &Seen) -> BTreeMap<String, u64> {
    let found = |(node, workers): (&String, &Vec<Worker>)| {
        let baseline = proof.baseline.get(node).copied().unwrap_or(0);
        let repairs = workers.iter().filter(|worker| worker.name == REPAIR && worker.id > baseline);
        let adopted =
            proof.repairs.get(node).filter(|id| workers.iter().any(|worker| worker.id == **id)).copied();
        Some((node.clone(), adopted.or_else(|| repairs.map(|worker| worker.id).max())?))
    };
    seen.workers.iter().filter_map(found).collect()
}

fn is_done(workers: &[Worker], repair: Option<&u64>) -> bool {
    let repair = workers.iter().find(|worker| Some(&worker.id) == repair);
    repair.is_some_and(|worker| worker.is("done") && worker.errors == 0)
}

/// Workers that fetch blocks; a disabled one has neither a queue nor errors.
fn resyncs(workers: &[Worker]) -> impl Iterator<Item = (&Worker, u64, u64)> {
    workers
        .iter()
        .filter(|worker| worker.name.starts_with(RESYNC))
        .filter_map(|worker| Some((worker, worker.queue_length?, worker.persistent_errors?)))
}

fn errors(seen: &Seen) -> BTreeMap<String, u64> {
    let of = |workers: &Vec<Worker>| resyncs(workers).map(|(_, _, errors)| errors).max().unwrap_or(0);
    seen.workers.iter().map(|(node, workers)| (node.clone(), of(workers))).collect()
}

fn is_quiet(seen: &Seen) -> bool {
    let idle = |workers: &Vec<Worker>| {
        resyncs(workers).all(|(worker, queue, errors)| worker.is("idle") && queue == 0 && errors == 0)
    };
    seen.workers.values().all(idle) && seen.block_errors.values().all(|errors| *errors == 0)
}

#[cfg(test)]
#[path = "drain_proof_tests.rs"]
mod tests;
