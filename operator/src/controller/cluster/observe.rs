//! What a reconcile learns about a cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::{ReconcileError, chain};
use super::super::scope::{self, is_ready};
use super::federation::Sites;
use super::{mesh, rollout};
use crate::api::condition::{DRAIN_PREPARED, READY, find};
use crate::api::layout::LayoutSiteRole;
use crate::api::naming::PURGE_CLUSTER_LAYOUT;
use crate::api::observed::{GatewayTombstone, StorageDrainStatus};
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::{
    WantedRole, drains, identity, intent, is_managed, leaves, wanted_parameters,
};
use crate::decision::awaiting::WriterWork;
use crate::decision::cluster_state::ClusterFacts;
use crate::decision::factor_migration::{factor, hold, in_flight};
use crate::decision::foreign_writer::Elsewhere;
use crate::decision::mutation::Intent;
use crate::decision::tombstones::stale_gateways;
use crate::garage::{
    AdminError, ClusterHealth, ClusterLayout, ClusterStatus, LayoutParameters, ZoneRedundancy,
};
use crate::guard::RoleDecision;
use crate::mutant::{self, Mutant};
use crate::resources::auto_nodes::{gateway_replicas, storage_replicas};

/// Everything the status is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Picture {
    /// What phase and conditions follow from.
    pub(super) facts: ClusterFacts,
    /// Managed storage nodes.
    pub(super) storage: usize,
    /// Those whose pod is ready.
    pub(super) storage_ready: usize,
    /// The storage drain that this site carries out.
    pub(super) storage_drain: Option<StorageDrainStatus>,
    /// Stale gateway roles.
    pub(super) tombstones: Vec<GatewayTombstone>,
    /// How the zone redundancy of the spec differs from the layout's.
    pub(super) replication_drift: Option<String>,
    /// Addresses of the pods through which the layout can be changed.
    pub(super) steady: Vec<String>,
    /// The layouts of other sites.
    pub(super) elsewhere: Vec<Elsewhere>,
    /// Roles to import from other sites.
    pub(super) imports: Vec<WantedRole>,
    /// What this cluster wants of the layout for its own nodes.
    pub(super) intent: Intent,
    /// The rollout of changed workloads.
    pub(super) rollout: rollout::Step,
    /// The pods by the name of their node.
    pub(super) pods: BTreeMap<String, Pod>,
    /// What Garage said; `None` when it could not be asked.
    pub(super) garage: Option<GarageView>,
}

/// What Garage said about the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GarageView {
    /// Its view of the nodes.
    pub(super) status: ClusterStatus,
    /// Its layout.
    pub(super) layout: ClusterLayout,
    /// Its health.
    pub(super) health: ClusterHealth,
}

/// Reads everything, heals connections, and puts the facts together.
pub(super) async fn observe(
    context: &Context,
    cluster: &GarageCluster,
    decision: &RoleDecision,
    fault: Option<String>,
) -> Result<Picture, ReconcileError> {
    let nodes = scope::nodes(context, cluster).await?;
    let pods = scope::pods(&context.client, cluster).await?;
    let mut picture = count(cluster, &nodes, &pods);
    picture.facts.fault = fault;
    // A Follower records no drain, which would keep its site from being promoted (design record D3), but keeps the one that
    // was recorded before a demotion.
    let recorded = cluster.status.as_ref().and_then(|status| status.storage_drain.as_ref());
    let drain = nodes.iter().find_map(|node| storage_drain(cluster, node));
    picture.storage_drain = drain.filter(|drain| {
        decision.effective() == LayoutSiteRole::Writer
            || recorded.is_some_and(|recorded| recorded.node == drain.node)
    });
    picture.facts.drained = drained(cluster, &nodes);
    let shown = mutant::is(Mutant::AbsentShowsRole).then_some(LayoutSiteRole::Writer);
    picture.facts.declared = decision.declared().or(shown);
    picture.facts.follows = decision.effective() == LayoutSiteRole::Follower;
    if picture.facts.wanted > 0 || cluster.spec.storage.is_none() {
        ask_garage(context, cluster, &nodes, &pods, &mut picture).await?;
    }
    let running: Vec<&GarageNode> = staying(&nodes).collect();
    picture.facts.migrating = hold(cluster);
    if picture.facts.migrating.is_none() {
        picture.rollout = rollout::plan(context, cluster, &running, &pods, picture.garage.as_ref()).await?;
    }
    picture.facts.rolling = picture.rollout.pending;
    picture.steady = scope::steady(&nodes, &pods).into_iter().map(str::to_owned).collect();
    picture.pods = pods;
    let layout = picture.garage.as_ref().map(|garage| &garage.layout);
    picture.facts.without_role = without_role(cluster, &nodes, layout);
    picture.replication_drift = layout.and_then(|layout| replication_drift(cluster, layout));
    picture.tombstones = match &picture.garage {
        Some(view) => stale_gateways(cluster, &nodes, &view.status, context.settings.tombstone_age.as_secs()),
        None => cluster
            .status
            .as_ref()
            .map(|status| status.pending_gateway_tombstones.clone())
            .unwrap_or_default(),
    };
    if picture.facts.follows && mutant::is(Mutant::TombstonesNotListed) {
        picture.tombstones.clear();
    }
    picture.facts.tombstones = picture.tombstones.iter().map(|tombstone| tombstone.node_id.clone()).collect();
    picture.facts.factor_drift = factor_drift(cluster, layout);
    if picture.facts.follows {
        // A migration that was begun before a demotion waits for a writer.
        let drift = picture.replication_drift.clone();
        let drift = drift.filter(|_| !mutant::is(Mutant::ReplicationChangeSilent));
        let unfinished = picture.facts.migrating.clone();
        picture.facts.work = WriterWork {
            without_role: picture.facts.without_role.clone(),
            role_removals: role_removals(cluster, &nodes, layout),
            tombstones: picture.facts.tombstones.clone(),
            replication_drift: drift.or(unfinished),
        };
    }
    Ok(picture)
}

/// The drain of a node, as the status of its cluster tells it.
fn storage_drain(cluster: &GarageCluster, node: &GarageNode) -> Option<StorageDrainStatus> {
    let status = node.status.as_ref()?;
    let proof = status.drain.as_ref().filter(|_| leaves(cluster, node))?;
    let message = find(&status.conditions, DRAIN_PREPARED).map(|condition| condition.message.clone());
    Some(StorageDrainStatus {
        node: node.name_any(),
        node_id: status.node_id.clone().unwrap_or_default(),
        started_at: proof.started_at.clone(),
        quiet_since: proof.quiet_since.clone(),
        completed_at: proof.completed_at.clone(),
        message: message.unwrap_or_default(),
    })
}

/// For a cluster that was asked to drain: whether all its nodes are prepared.
fn drained(cluster: &GarageCluster, nodes: &[GarageNode]) -> Option<bool> {
    let prepared = |node: &GarageNode| {
        let conditions = node.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        find(conditions, DRAIN_PREPARED).is_some_and(|condition| condition.status == "True")
    };
    drains(cluster).then(|| nodes.iter().all(prepared))
}

/// Managed nodes that stay.
fn staying(nodes: &[GarageNode]) -> impl Iterator<Item = &GarageNode> {
    nodes.iter().filter(|node| is_managed(node) && node.metadata.deletion_timestamp.is_none())
}

fn count(cluster: &GarageCluster, nodes: &[GarageNode], pods: &BTreeMap<String, Pod>) -> Picture {
    let ready = |node: &&GarageNode| pods.get(&node.name_any()).is_some_and(is_ready);
    let storage = |node: &&GarageNode| !node.spec.gateway;
    let wanted = staying(nodes).count().max(storage_replicas(cluster) + gateway_replicas(cluster));
    // A node that still runs while its role is awaited to go stands in for the one that will replace it.
    let deleted = nodes.iter().filter(|node| is_managed(node) && node.metadata.deletion_timestamp.is_some());
    let standing_in = deleted.filter(ready).count().min(wanted - staying(nodes).count());
    let facts = ClusterFacts {
        wanted,
        ready: staying(nodes).filter(ready).count() + standing_in,
        ..ClusterFacts::default()
    };
    Picture {
        facts,
        storage: staying(nodes).filter(storage).count(),
        storage_ready: staying(nodes).filter(storage).filter(ready).count(),
        ..Picture::default()
    }
}

async fn ask_garage(
    context: &Context,
    cluster: &GarageCluster,
    nodes: &[GarageNode],
    pods: &BTreeMap<String, Pod>,
    picture: &mut Picture,
) -> Result<(), ReconcileError> {
    let endpoints = match Endpoints::of(context, cluster).await? {
        Ok(endpoints) => endpoints,
        Err(missing) => {
            picture.facts.unreachable = Some(missing.to_string());
            return Ok(());
        }
    };
    let local = mesh::reachable(nodes, pods);
    let mut view = match read(&endpoints).await {
        Ok(view) => view,
        Err(error) => {
            if error.status() == Some(403) {
                endpoints.doubt(context).await?;
            }
            picture.facts.unreachable = Some(chain(&error));
            return Ok(());
        }
    };
    if local.iter().any(|node| !view.status.is_up(&node.id)) {
        mesh::heal(&endpoints, &local, cluster.spec.network.rpc_port()).await;
        view = read(&endpoints).await.unwrap_or(view);
    }
    let sites = Sites { context, cluster, endpoints: &endpoints, nodes, view: &view };
    let federated = sites.connect(&local).await?;
    picture.facts.unconnected = federated.missing;
    picture.imports = federated.imports;
    picture.elsewhere = federated.layouts;
    // A declaration that makes no sense is told by its own node.
    picture.intent = intent(cluster, nodes).unwrap_or_default();
    picture.facts.health = Some(view.health.status.clone());
    picture.garage = Some(view);
    Ok(())
}

/// The full status and layout read of every pass.
async fn read(endpoints: &Endpoints) -> Result<GarageView, AdminError> {
    let admin = endpoints.service();
    let (status, layout, health) =
        tokio::try_join!(admin.cluster_status(), admin.cluster_layout(), admin.cluster_health())?;
    Ok(GarageView { status, layout, health })
}

/// Whether the node has a role. While the layout cannot be read, the word of its own reconcile counts.
fn has_role(node: &GarageNode, layout: Option<&ClusterLayout>) -> bool {
    match layout {
        Some(layout) => identity(node).is_some_and(|id| layout.role(&id).is_some()),
        None => node.status.as_ref().is_some_and(|status| status.in_layout),
    }
}

/// Managed nodes that should have a role and have none.
fn without_role(
    cluster: &GarageCluster,
    nodes: &[GarageNode],
    layout: Option<&ClusterLayout>,
) -> Vec<String> {
    let staying = staying(nodes).filter(|node| !leaves(cluster, node));
    staying.filter(|node| !has_role(node, layout)).map(ResourceExt::name_any).collect()
}

/// Whether somebody else runs in the place of the identity that is recorded.
fn is_replaced(node: &GarageNode) -> bool {
    let conditions = node.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    find(conditions, READY).is_some_and(|ready| ready.reason == "IdentityChanged")
}

/// Managed nodes that should have no role and still have one; also those whose identity has changed under its role.
fn role_removals(
    cluster: &GarageCluster,
    nodes: &[GarageNode],
    layout: Option<&ClusterLayout>,
) -> Vec<String> {
    let leaving =
        nodes.iter().filter(|node| is_managed(node) && (leaves(cluster, node) || is_replaced(node)));
    leaving.filter(|node| has_role(node, layout)).map(ResourceExt::name_any).collect()
}

/// The factor of the spec that only a migration brings into the layout.
fn factor_drift(cluster: &GarageCluster, layout: Option<&ClusterLayout>) -> Option<String> {
    let (found, wanted) = (factor(cluster), cluster.spec.replication.factor);
    let bound = layout.is_some_and(|layout| layout.version > 0) && in_flight(cluster).is_none();
    (bound && found != wanted).then(|| {
        format!(
            "the nodes have the replication factor {found}, the spec says {wanted}: set {found} again, or ask for a \
             migration with the annotation {PURGE_CLUSTER_LAYOUT}: factor={wanted}"
        )
    })
}

/// How the zone redundancy of the spec differs from the layout's, once there is one.
fn replication_drift(cluster: &GarageCluster, layout: &ClusterLayout) -> Option<String> {
    let wanted = wanted_parameters(&cluster.spec.replication)?;
    let found = layout.parameters.filter(|_| layout.version > 0)?;
    (wanted != found).then(|| format!("zone redundancy is {}, the spec says {}", told(found), told(wanted)))
}

fn told(parameters: LayoutParameters) -> String {
    match parameters.zone_redundancy {
        ZoneRedundancy::Maximum => "maximum".to_owned(),
        ZoneRedundancy::AtLeast(zones) => format!("at least {zones}"),
    }
}
