//! Carries a factor migration through: what comes next is recorded, and follows from the record.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tracing::info;

use super::super::context::Context;
use super::super::endpoints::{Endpoints, LayoutAccess};
use super::super::error::{ReconcileError, chain};
use super::super::layout::{Outcome, converge};
use super::super::scope::{self, address, is_ready};
use crate::api::observed::FactorMigrationStatus;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{identity, intent, is_leaving, is_managed};
use crate::decision::factor_migration::{
    CONVERGING, PURGING, REBUILDING, Scene, VALIDATING, VERIFYING, Wish, abort, advance, begin, in_flight,
    refusal,
};
use crate::decision::foreign_writer::forget_versions;
use crate::decision::mutation::is_settled;
use crate::garage::{AdminError, ClusterHealth};
use crate::guard::{LayoutAuthority, LayoutOperation};
use crate::mutant::{self, Mutant};

/// The first write of a migration.
const OPERATION: LayoutOperation = LayoutOperation::UpdateClusterLayout;

/// Records a migration that an annotation asks for, or answers why it cannot be.
pub(super) async fn start(
    context: &Context,
    cluster: &mut GarageCluster,
    value: &str,
) -> Result<Result<(), String>, ReconcileError> {
    let wish = match Wish::parse(value) {
        Ok(wish) => wish,
        Err(why) => return Ok(Err(why)),
    };
    let nodes = scope::nodes(context, cluster).await?;
    if let Some(why) = refusal(cluster, &nodes, wish) {
        return Ok(Err(why));
    }
    let migration = begin(cluster, wish, &Time(Timestamp::now()));
    record(context, cluster, migration).await?;
    Ok(Ok(()))
}

/// Stops the migration in flight, or answers why it cannot be.
pub(super) async fn stop(
    context: &Context,
    cluster: &mut GarageCluster,
) -> Result<Result<(), String>, ReconcileError> {
    let Some(migration) = in_flight(cluster) else {
        return Ok(Err("no factor migration is in flight".to_owned()));
    };
    match abort(migration, &Time(Timestamp::now())) {
        Ok(aborted) => record(context, cluster, aborted).await.map(Ok),
        Err(why) => Ok(Err(why)),
    }
}

/// Takes the migration in flight one step further. On a Follower it stays where it is.
pub(super) async fn keep(
    context: &Context,
    cluster: &mut GarageCluster,
    authority: &LayoutAuthority,
) -> Result<(), ReconcileError> {
    let Some(migration) = in_flight(cluster).cloned() else { return Ok(()) };
    if !mutant::is(Mutant::PurgeOnFollower) && authority.before(OPERATION).is_err() {
        // The refusal is counted and logged where it is made.
        return Ok(());
    }
    let scene = look(context, cluster, &migration, authority).await?;
    let next = advance(&migration, &scene, &Time(Timestamp::now()), context.settings.migration_patience);
    if next == migration { Ok(()) } else { record(context, cluster, next).await }
}

/// Writes the record, and the factor that the nodes have from then on.
async fn record(
    context: &Context,
    cluster: &mut GarageCluster,
    migration: FactorMigrationStatus,
) -> Result<(), ReconcileError> {
    let mut status = cluster.status.clone().unwrap_or_default();
    let before = status.factor_migration.as_ref().map(|before| before.phase.as_str()).unwrap_or_default();
    if before != migration.phase {
        let (name, phase) = (cluster.name_any(), migration.phase.as_str());
        info!(cluster = %name, phase, message = %migration.message, "factor migration enters a phase");
    }
    let factor = if migration.phase == PURGING { migration.to_factor } else { None };
    let unset = migration.from_factor.filter(|_| status.replication_factor.is_none());
    status.replication_factor = factor.or(unset).or(status.replication_factor);
    status.factor_migration = Some(migration);
    if factor.is_some() {
        // The versions of the purged layout are over.
        let mut page = context.ledger.open(cluster).await;
        page.record = page.record.as_ref().map(forget_versions);
    }
    cluster.status = Some(context.ledger.write(&context.client, cluster, status).await?);
    Ok(())
}

/// What the phase needs to know. What it has to do with Garage is done here, too.
async fn look(
    context: &Context,
    cluster: &GarageCluster,
    migration: &FactorMigrationStatus,
    authority: &LayoutAuthority,
) -> Result<Scene, ReconcileError> {
    let nodes = scope::nodes(context, cluster).await?;
    let pods = scope::pods(&context.client, cluster).await?;
    let managed: Vec<&GarageNode> = nodes.iter().filter(|node| is_managed(node)).collect();
    let scene = Scene {
        nodes: managed.len(),
        pods: pods.len(),
        ready: pods.values().filter(|pod| is_ready(pod)).count(),
        ..Scene::default()
    };
    let endpoints = match Endpoints::of(context, cluster).await? {
        Ok(endpoints) => endpoints,
        Err(missing) => return Ok(stalled(scene, &missing.to_string())),
    };
    let addresses: Vec<(Option<String>, &str)> = managed
        .iter()
        .filter_map(|node| Some((identity(node), address(pods.get(&node.name_any())?)?)))
        .collect();
    let site = Site { context, cluster, authority, nodes: &nodes, endpoints: &endpoints, addresses };
    let seen = match migration.phase.as_str() {
        VALIDATING => site.validate(scene.clone()).await,
        VERIFYING => Ok(Scene { unpurged: site.unpurged().await, ..scene.clone() }),
        REBUILDING => Ok(Scene { unbuilt: site.rebuild().await, ..scene.clone() }),
        CONVERGING => site.repair().await.map(|()| scene.clone()),
        _ => Ok(scene.clone()),
    };
    Ok(seen.unwrap_or_else(|error| stalled(scene, &chain(&error))))
}

/// Garage cannot be asked: only the phases that do not need it go on.
fn stalled(scene: Scene, why: &str) -> Scene {
    let why = || Some(why.to_owned());
    Scene { busy: why(), unpurged: why(), unbuilt: why(), unrepaired: why(), ..scene }
}

/// A cluster in migration, with its way to Garage.
struct Site<'a> {
    context: &'a Context,
    cluster: &'a GarageCluster,
    authority: &'a LayoutAuthority,
    nodes: &'a [GarageNode],
    endpoints: &'a Endpoints,
    /// Identities and addresses of the pods.
    addresses: Vec<(Option<String>, &'a str)>,
}

impl Site<'_> {
    async fn validate(&self, scene: Scene) -> Result<Scene, AdminError> {
        let admin = self.endpoints.service();
        let (health, history) = tokio::try_join!(admin.cluster_health(), admin.layout_history())?;
        let rollout = self.cluster.status.as_ref().and_then(|status| status.storage_rollout.as_ref());
        let leaving = self.nodes.iter().find(|node| is_leaving(node));
        let busy = leaving
            .map(|node| format!("GarageNode {} is on its way out", node.name_any()))
            .or_else(|| rollout.map(|rollout| format!("the pod of {} is being replaced", rollout.node)))
            .or_else(|| (scene.ready < scene.nodes).then(|| "not all nodes are ready".to_owned()))
            .or_else(|| (!is_settled(&history)).then(|| "an older layout version is draining".to_owned()));
        Ok(Scene { busy, ailing: ailing(&health), ..scene })
    }

    /// Every node has to say itself that it has no layout: one that kept its file would give the old layout back to
    /// all others.
    async fn unpurged(&self) -> Option<String> {
        for (id, address) in &self.addresses {
            let node = id.as_deref().unwrap_or(address);
            match self.endpoints.pod(address).cluster_layout().await {
                Ok(layout) if layout.version == 0 && layout.roles.is_empty() => {}
                Ok(layout) => {
                    return Some(format!("node {node} still has layout version {}", layout.version));
                }
                Err(error) => return Some(chain(&error)),
            }
        }
        None
    }

    /// All roles in one version, as for a new cluster.
    async fn rebuild(&self) -> Option<String> {
        let Some((_, first)) = self.addresses.first() else { return Some("there is no pod".to_owned()) };
        let admin = self.endpoints.pod(first);
        if let Err(why) = self.connected().await {
            return Some(why);
        }
        let intent = match intent(self.cluster, self.nodes) {
            Ok(intent) => intent,
            Err(invalid) => return Some(invalid.to_string()),
        };
        match converge(self.context, &LayoutAccess::through(admin), self.authority, &intent).await {
            Outcome::Settled | Outcome::Applied(_) => None,
            Outcome::Pending(why) => Some(why),
        }
    }

    /// The nodes have to see each other first: a role for one that is not there would not hold.
    async fn connected(&self) -> Result<(), String> {
        let Some((_, first)) = self.addresses.first() else { return Err("there is no pod".to_owned()) };
        let admin = self.endpoints.pod(first);
        let port = self.cluster.spec.network.rpc_port();
        let seen = admin.cluster_status().await.map_err(|error| chain(&error))?;
        for (id, address) in &self.addresses {
            let id = id.as_deref().ok_or("a node has not told its identity yet")?;
            if !seen.is_up(id) {
                let connected = admin.connect(&format!("{id}@{address}:{port}")).await;
                connected.map_err(|error| chain(&error))?;
                return Err(format!("node {id} is not connected yet"));
            }
        }
        Ok(())
    }

    async fn repair(&self) -> Result<(), AdminError> {
        self.endpoints.service().launch_repair("*", "tables").await
    }
}

fn ailing(health: &ClusterHealth) -> Option<String> {
    (health.status != "healthy").then(|| format!("Garage says that it is {}", health.status))
}
