//! The permit and the guard that hands it out.

use std::fmt;
use std::sync::Arc;

use tracing::info;

use super::operation::LayoutOperation;
use super::refusal::LayoutWritesDisabled;
use super::roles::{ClusterKey, RoleDecision, RoleSource, follower_reason};
use crate::api::layout::LayoutSiteRole;
use crate::metrics::Metrics;
use crate::mutant::{self, Layer, Mutant};

/// Hands out permits, counts and logs refusals.
#[derive(Clone)]
pub struct LayoutGuard {
    roles: Arc<dyn RoleSource>,
    metrics: Arc<Metrics>,
}

impl LayoutGuard {
    /// A guard that checks permits against these roles at the call.
    pub fn new(roles: Arc<dyn RoleSource>, metrics: Arc<Metrics>) -> Self {
        Self { roles, metrics }
    }

    /// The authority of one reconcile: its role decision together with this guard.
    pub fn authority(&self, decision: RoleDecision) -> LayoutAuthority {
        LayoutAuthority { guard: self.clone(), decision: Arc::new(decision) }
    }

    fn refuse(
        &self,
        cluster: &ClusterKey,
        operation: LayoutOperation,
        reason: String,
    ) -> LayoutWritesDisabled {
        if !mutant::is(Mutant::MetricNotCounted) {
            self.metrics.layout_write_blocked(&cluster.to_string(), operation.name());
        }
        if !mutant::is(Mutant::RefusalNotLogged) {
            info!(
                cluster = %cluster,
                operation = operation.name(),
                reason = %reason,
                "layout write blocked"
            );
        }
        LayoutWritesDisabled { cluster: cluster.clone(), operation, reason }
    }
}

/// The role decision of one reconcile, able to ask for permits.
#[derive(Clone)]
pub struct LayoutAuthority {
    guard: LayoutGuard,
    decision: Arc<RoleDecision>,
}

impl LayoutAuthority {
    /// The role decision behind it.
    pub fn decision(&self) -> &RoleDecision {
        &self.decision
    }

    /// What a path asks before it does anything: a Follower is refused here already, so that nothing is left half done.
    pub fn before(&self, operation: LayoutOperation) -> Result<(), LayoutWritesDisabled> {
        match self.decision.forbidden() {
            Some(reason) if !mutant::lacks(Layer::Before, operation) => {
                Err(self.guard.refuse(self.decision.cluster(), operation, reason))
            }
            _ => Ok(()),
        }
    }

    /// Asks for a permit. For a Follower this is the refusal: counted, logged, typed.
    pub fn permit(&self, operation: LayoutOperation) -> Result<LayoutWritePermit, LayoutWritesDisabled> {
        match self.decision.forbidden() {
            Some(reason) if !lacks(Layer::Asking, operation) => {
                Err(self.guard.refuse(self.decision.cluster(), operation, reason))
            }
            _ => Ok(LayoutWritePermit { authority: self.clone() }),
        }
    }
}

/// Leave to write to the layout. Only [`LayoutAuthority::permit`] makes one, and only for a Writer.
#[derive(Clone)]
pub struct LayoutWritePermit {
    authority: LayoutAuthority,
}

impl LayoutWritePermit {
    /// Checks once more, against the roles as they are now: a site demoted since the permit was given does not write.
    pub fn check(&self, operation: LayoutOperation) -> Result<(), LayoutWritesDisabled> {
        if lacks(Layer::Call, operation) {
            return Ok(());
        }
        let LayoutAuthority { guard, decision } = &self.authority;
        let considered = if mutant::is(Mutant::OwnerChainIgnored) { 1 } else { usize::MAX };
        let follower = decision
            .chain()
            .take(considered)
            .find(|key| guard.roles.declared(key).flatten() == Some(LayoutSiteRole::Follower))
            .map(|key| follower_reason(decision.cluster(), key));
        match decision.forbidden().or(follower) {
            Some(reason) => Err(guard.refuse(decision.cluster(), operation, reason)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for LayoutWritePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LayoutWritePermit").field(self.authority.decision.cluster()).finish()
    }
}

/// Whether a deliberate defect takes this layer away; never in a shipped build.
fn lacks(layer: Layer, operation: LayoutOperation) -> bool {
    mutant::lacks(layer, operation) || mutant::overrides_guard()
}
