//! The migration of the replication factor (operator contract §5.9): Garage cannot change the factor of a layout, so all
//! nodes stop, lose their layout file, start with the new factor, and get a new layout.
//!
//! Every step is recorded before it is done: what a node's workload looks like follows from the recorded phase alone.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::assignment::is_managed;
use crate::api::layout::LayoutPolicy;
use crate::api::observed::FactorMigrationStatus;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
use crate::mutant::{self, Mutant};
use crate::resources::auto_nodes::{is_auto, storage_replicas};

/// Checked before anything is touched.
pub const VALIDATING: &str = "Validating";
/// All nodes stop.
pub const SCALING_DOWN: &str = "ScalingDown";
/// Nodes start with the new factor and without their layout file.
pub const PURGING: &str = "Purging";
/// All nodes have to be back, without a layout.
pub const VERIFYING: &str = "Verifying";
/// All roles are staged and applied.
pub const REBUILDING: &str = "RebuildingLayout";
/// The tables are repaired.
pub const CONVERGING: &str = "Converging";
/// Over.
pub const COMPLETED: &str = "Completed";
/// Given up.
pub const FAILED: &str = "Failed";

/// A migration that is over, or has not begun, is not in flight.
pub fn is_in_flight(migration: &FactorMigrationStatus) -> bool {
    !matches!(migration.phase.as_str(), "" | COMPLETED | FAILED)
}

/// The migration of this cluster that is in flight and was recorded by this operator.
pub fn in_flight(cluster: &GarageCluster) -> Option<&FactorMigrationStatus> {
    let migration = cluster.status.as_ref()?.factor_migration.as_ref()?;
    (is_in_flight(migration) && migration.to_factor.is_some()).then_some(migration)
}

/// Why nothing else may change the layout or the workloads now.
pub fn hold(cluster: &GarageCluster) -> Option<String> {
    let migration = in_flight(cluster).filter(|_| cluster.metadata.deletion_timestamp.is_none())?;
    Some(format!("a factor migration is in phase {}", migration.phase))
}

/// The replication factor that the nodes are configured with: an edit of the spec takes effect while there is no
/// layout; afterwards only by a migration.
pub fn factor(cluster: &GarageCluster) -> u32 {
    let wanted = cluster.spec.replication.factor;
    let Some(status) = &cluster.status else { return wanted };
    let bound = status.layout_version.is_some_and(|version| version > 0) || in_flight(cluster).is_some();
    status.replication_factor.filter(|_| bound).unwrap_or(wanted)
}

/// What an annotation asks for: `factor=N[,force]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The factor after.
    pub factor: u32,
    /// Begin although Garage is not healthy.
    pub force: bool,
}

impl Wish {
    /// Reads the value of the annotation.
    pub fn parse(value: &str) -> Result<Self, String> {
        let wrong = || format!("{value:?} is not factor=N or factor=N,force");
        let (number, force) = match value.split_once(',') {
            None => (value, false),
            Some((number, "force")) => (number, true),
            Some(_) => return Err(wrong()),
        };
        let factor: u32 = number.strip_prefix("factor=").and_then(|n| n.parse().ok()).ok_or_else(wrong)?;
        if factor == 0 { Err(wrong()) } else { Ok(Self { factor, force }) }
    }
}

/// Why this spec cannot be migrated, whatever its nodes do (operator contract §5.9).
pub fn spec_refusal(spec: &GarageClusterSpec, replicas: usize, wish: Wish) -> Option<String> {
    if !spec.remote_clusters.is_empty() {
        return Some("a federated cluster cannot migrate its replication factor".to_owned());
    }
    if spec.connect_to.is_some() || spec.storage.is_none() {
        return Some("only a cluster with its own storage can migrate its replication factor".to_owned());
    }
    if spec.storage_policy() == LayoutPolicy::Manual {
        return Some("with layoutPolicy Manual the replication factor cannot be migrated".to_owned());
    }
    let factor = wish.factor;
    if spec.replication.factor != factor {
        let found = spec.replication.factor;
        return Some(format!(
            "spec.replication.factor is {found}: set it to {factor} in the same update as the annotation"
        ));
    }
    let few = replicas < usize::try_from(factor).unwrap_or(usize::MAX);
    few.then(|| format!("{replicas} storage nodes are fewer than the replication factor {factor}"))
}

/// Why this cluster cannot be migrated as it is.
pub fn refusal(cluster: &GarageCluster, nodes: &[GarageNode], wish: Wish) -> Option<String> {
    if let Some(migration) = in_flight(cluster) {
        return Some(format!("a factor migration is in phase {}", migration.phase));
    }
    let refused = spec_refusal(&cluster.spec, storage_replicas(cluster), wish);
    if let Some(why) = refused.filter(|_| !mutant::is(Mutant::PurgeOnFollower)) {
        return Some(why);
    }
    if let Some(foreign) = nodes.iter().find(|node| !is_managed(node) || !is_auto(node)) {
        let name = foreign.name_any();
        return Some(format!(
            "GarageNode {name} is not one of the operator's own; its layout file would stay"
        ));
    }
    (factor(cluster) == wish.factor)
        .then(|| format!("the nodes have the replication factor {} already", wish.factor))
}

/// The record of a migration that begins.
pub fn begin(cluster: &GarageCluster, wish: Wish, now: &Time) -> FactorMigrationStatus {
    let before =
        cluster.status.as_ref().and_then(|status| status.factor_migration.clone()).unwrap_or_default();
    FactorMigrationStatus {
        phase: VALIDATING.to_owned(),
        message: String::new(),
        from_factor: Some(factor(cluster)),
        to_factor: Some(wish.factor),
        force: wish.force,
        purge: before.purge,
        started_at: Some(now.clone()),
        phase_started_at: Some(now.clone()),
    }
}

/// The record of a migration that is stopped, or why it cannot be any more.
pub fn abort(migration: &FactorMigrationStatus, now: &Time) -> Result<FactorMigrationStatus, String> {
    match migration.phase.as_str() {
        VALIDATING | SCALING_DOWN => Ok(enter(migration, FAILED, "aborted by annotation", now)),
        phase => Err(format!("phase {phase} cannot be aborted: layout files are being purged")),
    }
}

/// What a pass sees of a cluster in migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// Managed nodes.
    pub nodes: usize,
    /// Pods of them, those on their way out included.
    pub pods: usize,
    /// Ready pods.
    pub ready: usize,
    /// What speaks against the beginning.
    pub busy: Option<String>,
    /// Garage is not healthy; says how. It speaks against the beginning, too, unless that is forced.
    pub ailing: Option<String>,
    /// Why the nodes are not all back without a layout; `None` once they are.
    pub unpurged: Option<String>,
    /// Why the new layout is not there; `None` once it is.
    pub unbuilt: Option<String>,
    /// Why the repair of the tables was not launched; `None` once it was.
    pub unrepaired: Option<String>,
}

/// How long a migration may wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// In the phase `Validating`.
    pub validating: Duration,
    /// In any other phase.
    pub stuck: Duration,
}

/// The record after a pass: the next phase, or what the present one waits for, or that it waited too long.
pub fn advance(
    migration: &FactorMigrationStatus,
    scene: &Scene,
    now: &Time,
    patience: Patience,
) -> FactorMigrationStatus {
    let (next, waiting) = outlook(migration, scene);
    let Some(waiting) = waiting else { return enter(migration, next, "", now) };
    let limit = if migration.phase == VALIDATING { patience.validating } else { patience.stuck };
    if elapsed(migration, now) >= limit {
        let message = format!("given up in phase {}: {waiting}", migration.phase);
        return enter(migration, FAILED, &message, now);
    }
    FactorMigrationStatus { message: waiting, ..migration.clone() }
}

/// The phase after the present one, and what the present one waits for.
fn outlook(migration: &FactorMigrationStatus, scene: &Scene) -> (&'static str, Option<String>) {
    let Scene { nodes, pods, ready, .. } = *scene;
    match migration.phase.as_str() {
        VALIDATING => {
            let ailing = scene.ailing.clone().filter(|_| !migration.force);
            (SCALING_DOWN, scene.busy.clone().or(ailing))
        }
        SCALING_DOWN => (PURGING, (pods > 0).then(|| format!("{pods} pods have not ended yet"))),
        PURGING => (VERIFYING, (pods < nodes).then(|| format!("{pods} of {nodes} pods are made"))),
        VERIFYING if ready < nodes => (REBUILDING, Some(format!("{ready} of {nodes} pods are ready"))),
        VERIFYING => (REBUILDING, scene.unpurged.clone()),
        REBUILDING => (CONVERGING, scene.unbuilt.clone()),
        CONVERGING => (COMPLETED, scene.unrepaired.clone()),
        phase => (FAILED, Some(format!("{phase:?} is not a phase"))),
    }
}

fn enter(migration: &FactorMigrationStatus, phase: &str, message: &str, now: &Time) -> FactorMigrationStatus {
    let mut next = FactorMigrationStatus {
        phase: phase.to_owned(),
        message: message.to_owned(),
        phase_started_at: Some(now.clone()),
        ..migration.clone()
    };
    if phase == PURGING {
        next.purge = Some(purge_name(migration));
    }
    next
}

/// A name that no other migration of the cluster has.
fn purge_name(migration: &FactorMigrationStatus) -> String {
    let started = migration.started_at.as_ref().map_or(0, |Time(at)| at.as_second());
    format!("factor-{}-{started}", migration.to_factor.unwrap_or(0))
}

fn elapsed(migration: &FactorMigrationStatus, now: &Time) -> Duration {
    let Some(Time(began)) = &migration.phase_started_at else { return Duration::ZERO };
    Duration::try_from(now.0.duration_since(*began)).unwrap_or_default()
}

#[cfg(test)]
#[path = "factor_migration_tests.rs"]
mod tests;
