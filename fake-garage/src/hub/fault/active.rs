//! Faults that last, until they are healed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::json;

use super::request::FaultRequest;
use crate::hub::actor::MeshActor;
use crate::hub::journal::fault_event;
use crate::hub::registry::{ControlError, Registry};
use crate::layout::Held;
use crate::mesh::{LinkFault, NodeIndex};

/// Faults of a hub that last.
#[derive(Debug, Default)]
pub struct Faults {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    active: BTreeMap<u64, ActiveFault>,
}

/// A fault that lasts.
#[derive(Debug, Clone)]
pub(super) struct ActiveFault {
    pub(super) actor: Arc<MeshActor>,
    pub(super) target: String,
    pub(super) request: FaultRequest,
    pub(super) effect: Effect,
}

/// What it does to the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Links(LinkFault),
    Killed(NodeIndex),
    Frozen(NodeIndex),
    Held(NodeIndex, Held),
    Clock(NodeIndex, i64),
}

/// A fault as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultState {
    id: u64,
    fault: FaultRequest,
}

/// Why a fault is healed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It was asked for.
    Asked,
    /// Its time was over.
    Expired,
    /// Its guard was dropped.
    Dropped,
    /// The killed node was started by other means.
    Started,
}

impl Why {
    /// The word for it in histories.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Expired => "expired",
            Self::Dropped => "dropped",
            Self::Started => "started",
        }
    }
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next fault that lasts.
    pub(super) fn next(&self) -> u64 {
        let mut inner = self.lock();
        inner.last += 1;
        inner.last
    }

    pub(super) fn add(&self, id: u64, fault: ActiveFault) {
        self.lock().active.insert(id, fault);
    }

    fn take(&self, id: u64) -> Option<ActiveFault> {
        self.lock().active.remove(&id)
    }

    /// The faults of a mesh that last, those with an effect as `meant`.
    pub(super) fn of(&self, actor: &Arc<MeshActor>, meant: impl Fn(Effect) -> bool) -> Vec<(u64, Effect)> {
        let inner = self.lock();
        let of_mesh = inner.active.iter().filter(|(_, fault)| Arc::ptr_eq(&fault.actor, actor));
        of_mesh.map(|(id, fault)| (*id, fault.effect)).filter(|(_, effect)| meant(*effect)).collect()
    }

    /// Forgets the faults of a mesh that is gone.
    pub fn forget(&self, actor: &Arc<MeshActor>) {
        self.lock().active.retain(|_, fault| !Arc::ptr_eq(&fault.actor, actor));
    }

    /// All faults that last.
    #[must_use]
    pub fn list(&self) -> Vec<FaultState> {
        let state = |(id, fault): (&u64, &ActiveFault)| FaultState { id: *id, fault: fault.request.clone() };
        self.lock().active.iter().map(state).collect()
    }
}

/// A killed node runs again: whatever killed it is over.
pub(in crate::hub) fn end_kills(registry: &Registry, actor: &Arc<MeshActor>, node: NodeIndex) {
    for (id, _) in registry.faults().of(actor, |effect| effect == Effect::Killed(node)) {
        // One that was healed meanwhile is over, too.
        drop(heal_now(registry, id, Why::Started));
    }
}

/// Heals a fault that lasts. A killed node is started by [`revive`], which the answer is the name for.
pub(super) fn heal_now(registry: &Registry, id: u64, why: Why) -> Result<Option<String>, ControlError> {
    let fault = registry.faults().take(id).ok_or(ControlError::NoFault(id))?;
    let ActiveFault { actor, target, request, effect } = fault;
    let detail = json!({"fault": id, "healed": request.action(), "why": why.name()});
    registry.shared().recorder.record(fault_event(&actor.name, "heal", &target, Some(detail)));
    let others = |meant: &dyn Fn(Effect) -> bool| registry.faults().of(&actor, meant);
    match effect {
        Effect::Links(links) => actor.alter(|mesh| mesh.mend(links)),
        Effect::Killed(_) => return Ok(Some(target)),
        Effect::Frozen(node) => {
            if others(&|other| other == Effect::Frozen(node)).is_empty() {
                actor.alter(|mesh| mesh.resume(node));
            }
        }
        Effect::Held(node, _) => hold(registry, &actor, node),
        Effect::Clock(node, _) => set_clock(registry, &actor, node),
    }
    Ok(None)
}

/// Heals a fault that lasts.
pub async fn heal(registry: &Registry, id: u64, why: Why) -> Result<(), ControlError> {
    match heal_now(registry, id, why)? {
        Some(node) => revive(registry, &node).await,
        None => Ok(()),
    }
}

/// Starts a killed node; one that was started meanwhile stays as it is.
pub(super) async fn revive(registry: &Registry, node: &str) -> Result<(), ControlError> {
    let place = registry.node(node)?;
    if place.actor.read(|cluster| cluster.mesh().node(place.node).has_ended()) {
        registry.restart_node(node, crate::mesh::Loss::Nothing).await?;
    }
    Ok(())
}

/// Holds on a node what all faults on it together hold.
pub(super) fn hold(registry: &Registry, actor: &Arc<MeshActor>, node: NodeIndex) {
    let all = registry.faults().of(actor, |effect| matches!(effect, Effect::Held(at, _) if at == node));
    let held = all.into_iter().fold(Held::default(), |sum, (_, effect)| match effect {
        Effect::Held(_, held) => sum.or(held),
        _ => sum,
    });
    actor.alter(|mesh| mesh.hold_trackers(node, held));
}

/// Sets a node's clock as the latest of the faults on it says.
pub(super) fn set_clock(registry: &Registry, actor: &Arc<MeshActor>, node: NodeIndex) {
    let all = registry.faults().of(actor, |effect| matches!(effect, Effect::Clock(at, _) if at == node));
    let offset = all.last().and_then(|(_, effect)| match effect {
        Effect::Clock(_, offset) => Some(*offset),
        _ => None,
    });
    actor.alter(|mesh| mesh.set_clock(node, offset));
}
