//! Doing what is asked for.

use std::sync::Arc;

use serde_json::Value;

use super::active::{ActiveFault, Effect, Why, heal, heal_now, hold, set_clock};
use super::request::{FaultRequest, held, slowness};
use crate::hub::actor::MeshActor;
use crate::hub::journal::fault_event;
use crate::hub::registry::{ControlError, Place, Registry};
use crate::mesh::{Loss, NodeIndex};

/// Does what is asked for, and records it. The answer is the number of a fault that lasts, to heal it by.
pub async fn inject(registry: &Arc<Registry>, fault: FaultRequest) -> Result<Option<u64>, ControlError> {
    if let Some(problem) = fault.problem() {
        return Err(ControlError::Invalid(problem));
    }
    match &fault {
        FaultRequest::Kill { node, lose, .. } => {
            let place = registry.node(node)?;
            let id = begin(registry, &fault, &place.actor, node, Effect::Killed(place.node), |mesh| {
                mesh.kill(place.node);
                mesh.lose_files(place.node, (*lose).into());
            });
            place.actor.port_closed(place.node).await;
            Ok(Some(id))
        }
        FaultRequest::Freeze { node, .. } => {
            let Place { actor, node: at } = registry.node(node)?;
            Ok(Some(begin(registry, &fault, &actor, node, Effect::Frozen(at), |mesh| mesh.freeze(at))))
        }
        FaultRequest::Partition { mesh, between: [one, other], kind, .. } => {
            let actor = registry.mesh(mesh)?;
            let (one, other) = (nodes_of(&actor, one)?, nodes_of(&actor, other)?);
            if one.len() == 1 && one == other {
                return Err(ControlError::Invalid(
                    "both sides are the same node: nothing is between them".to_owned(),
                ));
            }
            let cut = (*kind).into();
            Ok(Some(begin_on_links(registry, &fault, &actor, |mesh| mesh.partition(&one, &other, cut))))
        }
        FaultRequest::Slow { mesh, from, to, latency_ms, jitter_ms, loss_per_mille, .. } => {
            let actor = registry.mesh(mesh)?;
            let (from, to) = (nodes_of(&actor, from)?, nodes_of(&actor, to)?);
            let slow = slowness(*latency_ms, *jitter_ms, *loss_per_mille);
            Ok(Some(begin_on_links(registry, &fault, &actor, |mesh| mesh.slow_down(&from, &to, slow))))
        }
        FaultRequest::HoldTrackers { node, trackers, .. } => {
            let Place { actor, node: at } = registry.node(node)?;
            let id = begin(registry, &fault, &actor, node, Effect::Held(at, held(trackers)), |_| {});
            hold(registry, &actor, at);
            Ok(Some(id))
        }
        FaultRequest::Clock { node, offset_ms, .. } => {
            let Place { actor, node: at } = registry.node(node)?;
            let id = begin(registry, &fault, &actor, node, Effect::Clock(at, *offset_ms), |_| {});
            set_clock(registry, &actor, at);
            Ok(Some(id))
        }
        _ => at_once(registry, &fault).await.map(|()| None),
    }
}

/// What does not last.
async fn at_once(registry: &Arc<Registry>, fault: &FaultRequest) -> Result<(), ControlError> {
    match fault {
        FaultRequest::Resume { node } => {
            let Place { actor, node: at } = registry.node(node)?;
            record(registry, fault, &actor, node, None);
            for (id, _) in registry.faults().of(&actor, |effect| effect == Effect::Frozen(at)) {
                heal(registry, id, Why::Asked).await?;
            }
            Ok(())
        }
        FaultRequest::Restart { node, lose } => restart(registry, fault, node, (*lose).into()).await,
        FaultRequest::Wipe { node } => restart(registry, fault, node, Loss::AllMetadata).await,
        FaultRequest::Purge { mesh } => purge(registry, fault, mesh).await,
        FaultRequest::Heal { mesh } => {
            let actor = registry.mesh(mesh)?;
            record(registry, fault, &actor, mesh, None);
            for (id, _) in registry.faults().of(&actor, |effect| matches!(effect, Effect::Links(_))) {
                heal_now(registry, id, Why::Asked)?;
            }
            Ok(())
        }
        // What lasts begins in `inject`.
        _ => Ok(()),
    }
}

/// Records a fault and does it; `act` and what is recorded come in that order.
fn begin(
    registry: &Arc<Registry>,
    fault: &FaultRequest,
    actor: &Arc<MeshActor>,
    target: &str,
    effect: Effect,
    act: impl FnOnce(&mut crate::mesh::Mesh),
) -> u64 {
    let id = registry.faults().next();
    record(registry, fault, actor, target, Some(id));
    actor.alter(act);
    keep(
        registry,
        id,
        ActiveFault { actor: Arc::clone(actor), target: target.to_owned(), request: fault.clone(), effect },
    );
    id
}

fn begin_on_links(
    registry: &Arc<Registry>,
    fault: &FaultRequest,
    actor: &Arc<MeshActor>,
    act: impl FnOnce(&mut crate::mesh::Mesh) -> crate::mesh::LinkFault,
) -> u64 {
    let id = registry.faults().next();
    record(registry, fault, actor, &actor.name, Some(id));
    let effect = Effect::Links(actor.alter(act));
    let target = actor.name.clone();
    keep(registry, id, ActiveFault { actor: Arc::clone(actor), target, request: fault.clone(), effect });
    id
}

/// Keeps a fault until it is healed, by itself if it has a time.
fn keep(registry: &Arc<Registry>, id: u64, fault: ActiveFault) {
    let expires = fault.request.expires();
    registry.faults().add(id, fault);
    let Some(after) = expires else { return };
    let registry = Arc::downgrade(registry);
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        let Some(registry) = registry.upgrade() else { return };
        match heal(&registry, id, Why::Expired).await {
            // It was healed before.
            Ok(()) | Err(ControlError::NoFault(_)) => {}
            Err(error) => tracing::error!(fault = id, %error, "a fault that expired is not healed"),
        }
    });
}

fn record(registry: &Registry, fault: &FaultRequest, actor: &MeshActor, target: &str, id: Option<u64>) {
    let mut detail = serde_json::to_value(fault).unwrap_or_default();
    if let Value::Object(detail) = &mut detail {
        for told in ["action", "mesh", "node"] {
            detail.remove(told);
        }
        if let Some(id) = id {
            detail.insert("fault".to_owned(), id.into());
        }
    }
    let detail = detail.as_object().is_some_and(|detail| !detail.is_empty()).then_some(detail);
    registry.shared().recorder.record(fault_event(&actor.name, fault.action(), target, detail));
}

async fn restart(
    registry: &Registry,
    fault: &FaultRequest,
    name: &str,
    loss: Loss,
) -> Result<(), ControlError> {
    let place = registry.node(name)?;
    record(registry, fault, &place.actor, name, None);
    registry.restart_node(name, loss).await
}

async fn purge(registry: &Registry, fault: &FaultRequest, mesh: &str) -> Result<(), ControlError> {
    let actor = registry.mesh(mesh)?;
    record(registry, fault, &actor, mesh, None);
    let nodes: Vec<_> = actor.read(|cluster| {
        let nodes = cluster.mesh().nodes();
        nodes.map(|(index, node)| (index, node.config().name.clone(), node.is_running())).collect()
    });
    actor.alter(|mesh| {
        for (node, _, _) in &nodes {
            mesh.kill(*node);
            mesh.lose_files(*node, Loss::LayoutFile);
        }
    });
    for (_, name, _) in nodes.iter().filter(|(_, _, ran)| *ran) {
        registry.restart_node(name, Loss::Nothing).await?;
    }
    Ok(())
}

/// The nodes of the named sites, and the named nodes.
fn nodes_of(actor: &MeshActor, names: &[String]) -> Result<Vec<NodeIndex>, ControlError> {
    let nodes: Vec<_> = actor.read(|cluster| {
        let meant = cluster
            .mesh()
            .nodes()
            .filter(|(_, node)| names.contains(&node.config().site) || names.contains(&node.config().name));
        meant.map(|(index, _)| index).collect()
    });
    if nodes.is_empty() {
        return Err(ControlError::Invalid(format!(
            "{names:?} has no node in mesh `{}`; name sites or nodes (site/namespace/pod) of that mesh",
            actor.name
        )));
    }
    Ok(nodes)
}
