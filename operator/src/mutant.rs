//! Deliberate defects, one of which a build with the feature `mutants` can be given at start: they prove that the harness
//! notices them. Without the feature every question here is answered "no" when the program is compiled.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::api::layout::LayoutSiteRole;
use crate::guard::LayoutOperation;

/// A defect by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mutant {
    /// `UpdateClusterLayout`: the permit is given to a Follower, too.
    NoAskUpdateClusterLayout,
    /// `UpdateClusterLayoutWithParams`: the permit is given to a Follower, too.
    NoAskUpdateClusterLayoutWithParams,
    /// `ApplyClusterLayout`: the permit is given to a Follower, too.
    NoAskApplyClusterLayout,
    /// `ApplyStagedLayoutChanges`: the permit is given to a Follower, too.
    NoAskApplyStagedLayoutChanges,
    /// `RevertClusterLayout`: the permit is given to a Follower, too.
    NoAskRevertClusterLayout,
    /// `ClusterLayoutSkipDeadNodes`: the permit is given to a Follower, too.
    NoAskClusterLayoutSkipDeadNodes,
    /// `UpdateClusterLayout`: the permit is not checked again at the call.
    NoCheckUpdateClusterLayout,
    /// `UpdateClusterLayoutWithParams`: the permit is not checked again at the call.
    NoCheckUpdateClusterLayoutWithParams,
    /// `ApplyClusterLayout`: the permit is not checked again at the call.
    NoCheckApplyClusterLayout,
    /// `ApplyStagedLayoutChanges`: the permit is not checked again at the call.
    NoCheckApplyStagedLayoutChanges,
    /// `RevertClusterLayout`: the permit is not checked again at the call.
    NoCheckRevertClusterLayout,
    /// `ClusterLayoutSkipDeadNodes`: the permit is not checked again at the call.
    NoCheckClusterLayoutSkipDeadNodes,
    /// `UpdateClusterLayout`: a path does not look at the role before it does anything.
    NoLookUpdateClusterLayout,
    /// `UpdateClusterLayoutWithParams`: a path does not look at the role before it does anything.
    NoLookUpdateClusterLayoutWithParams,
    /// `RevertClusterLayout`: a path does not look at the role before it does anything.
    NoLookRevertClusterLayout,
    /// `ClusterLayoutSkipDeadNodes`: a path does not look at the role before it does anything.
    NoLookClusterLayoutSkipDeadNodes,
    /// `UpdateClusterLayout`: no layer of the guard stands in the way.
    NoGuardUpdateClusterLayout,
    /// `UpdateClusterLayoutWithParams`: no layer of the guard stands in the way.
    NoGuardUpdateClusterLayoutWithParams,
    /// `ApplyClusterLayout`: no layer of the guard stands in the way.
    NoGuardApplyClusterLayout,
    /// `ApplyStagedLayoutChanges`: no layer of the guard stands in the way.
    NoGuardApplyStagedLayoutChanges,
    /// `RevertClusterLayout`: no layer of the guard stands in the way.
    NoGuardRevertClusterLayout,
    /// `ClusterLayoutSkipDeadNodes`: no layer of the guard stands in the way.
    NoGuardClusterLayoutSkipDeadNodes,
    /// The roles of the clusters on the way to the layout owner do not count.
    OwnerChainIgnored,
    /// A Writer stages and never applies.
    StageWithoutApply,
    /// A Follower with autoApply removes stale gateway roles.
    AutoApplyOnFollower,
    /// A Follower imports the roles of other sites.
    FollowerImports,
    /// A refused annotation stays, and fires after a promotion.
    AnnotationLeft,
    /// A refused annotation is consumed, and carried out once this site is the Writer.
    AnnotationRemembered,
    /// A Follower carries out revert-layout and skip-dead-nodes.
    AnnotationExecuted,
    /// A Follower's node is released while it still has its role.
    FinalizerReleasedEarly,
    /// A Follower's node loses its pod while it still has its role.
    WorkloadReleasedEarly,
    /// A Writer releases a drained node without the proof of its blocks.
    DrainSkipsProof,
    /// A node counts as drained while an older layout version is live.
    DrainSkipsSettling,
    /// Under Destroy a Writer removes roles.
    DestroyWrites,
    /// The webhook admits a demotion while a transaction is recorded.
    DemotionAllowed,
    /// The webhook refuses every promotion.
    PromotionRefused,
    /// A promotion is admitted without its warning.
    PromotionSilent,
    /// The conversion loses siteRole.
    ConversionDropsRole,
    /// An absent siteRole is written as Writer, as a default of the schema would be.
    RoleDefaulted,
    /// A site without siteRole shows the conditions of the feature.
    AbsentShowsRole,
    /// `AwaitingLayoutWriter` stays True once it was.
    ConditionNeverCleared,
    /// A node without a role is told as `PendingTombstones`.
    WrongReason,
    /// A Follower does not tell a drift of the zone redundancy.
    ReplicationChangeSilent,
    /// A Follower does not list stale gateway roles.
    TombstonesNotListed,
    /// A removal of a stale gateway role that failed is not tried again.
    UpkeepGivenUp,
    /// Awaiting the writer makes a GarageCluster unready.
    AwaitingUnready,
    /// A refused annotation gives no event.
    NoEvent,
    /// A node that waits for a role gives an event in every pass.
    EventFlood,
    /// Refusals are not counted.
    MetricNotCounted,
    /// Refusals are not logged.
    RefusalNotLogged,
    /// The gauge of the role always says Writer.
    GaugeWrong,
    /// status.layoutWriter.role always says Writer.
    StatusRoleWrong,
    /// A refused write is a failure.
    BlockedAsFailed,
    /// A refused removal counts as done: the drain goes on.
    BlockedAdvances,
    /// siteRole is not known at all: an operator from before the field.
    RoleUnknown,
    /// The role is read once, and a demotion is not noticed.
    RoleCached,
    /// A site that was a Follower stays one.
    PromotionIgnored,
    /// A node whose cluster is gone writes whatever role was recorded.
    OrphanWrites,
    /// Foreign staged changes are reverted to make room.
    RevertForeignStaging,
    /// After a refused apply the next version is applied at once.
    BlindSecondApply,
    /// Tags of a declaration are not in the role.
    TagsLost,
    /// Every second role that is staged has another capacity.
    RoleFlaps,
    /// Everything is looked at again at once.
    RetryStorm,
    /// A settled cluster's status is written in every pass.
    IdleChurn,
    /// A second writer is never told.
    ForeignWriterSilent,
    /// A Writer takes the version that it found for a foreign one.
    ForeignWriterFalseAlarm,
    /// What is about to be applied is not recorded.
    IntentNotRecorded,
    /// A Follower starts a factor migration.
    PurgeOnFollower,
}

/// A layer of the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A permit is asked for.
    Asking,
    /// The permit is checked again at the call.
    Call,
    /// A path looks at the role before it does anything.
    Before,
}

impl Mutant {
    /// The layers that it takes away, and of which write.
    fn takes_away(self) -> Option<(&'static [Layer], LayoutOperation)> {
        const LOOK: &[Layer] = &[Layer::Before];
        const ASKING: &[Layer] = &[Layer::Asking];
        const CALL: &[Layer] = &[Layer::Call];
        const ALL: &[Layer] = &[Layer::Asking, Layer::Call, Layer::Before];
        let taken = match self {
            Self::NoAskUpdateClusterLayout => (ASKING, LayoutOperation::UpdateClusterLayout),
            Self::NoAskUpdateClusterLayoutWithParams => {
                (ASKING, LayoutOperation::UpdateClusterLayoutWithParams)
            }
            Self::NoAskApplyClusterLayout => (ASKING, LayoutOperation::ApplyClusterLayout),
            Self::NoAskApplyStagedLayoutChanges => (ASKING, LayoutOperation::ApplyStagedLayoutChanges),
            Self::NoAskRevertClusterLayout => (ASKING, LayoutOperation::RevertClusterLayout),
            Self::NoAskClusterLayoutSkipDeadNodes => (ASKING, LayoutOperation::ClusterLayoutSkipDeadNodes),
            Self::NoCheckUpdateClusterLayout => (CALL, LayoutOperation::UpdateClusterLayout),
            Self::NoCheckUpdateClusterLayoutWithParams => {
                (CALL, LayoutOperation::UpdateClusterLayoutWithParams)
            }
            Self::NoCheckApplyClusterLayout => (CALL, LayoutOperation::ApplyClusterLayout),
            Self::NoCheckApplyStagedLayoutChanges => (CALL, LayoutOperation::ApplyStagedLayoutChanges),
            Self::NoCheckRevertClusterLayout => (CALL, LayoutOperation::RevertClusterLayout),
            Self::NoCheckClusterLayoutSkipDeadNodes => (CALL, LayoutOperation::ClusterLayoutSkipDeadNodes),
            Self::NoLookUpdateClusterLayout => (LOOK, LayoutOperation::UpdateClusterLayout),
            Self::NoLookUpdateClusterLayoutWithParams => {
                (LOOK, LayoutOperation::UpdateClusterLayoutWithParams)
            }
            Self::NoLookRevertClusterLayout => (LOOK, LayoutOperation::RevertClusterLayout),
            Self::NoLookClusterLayoutSkipDeadNodes => (LOOK, LayoutOperation::ClusterLayoutSkipDeadNodes),
            Self::NoGuardUpdateClusterLayout => (ALL, LayoutOperation::UpdateClusterLayout),
            Self::NoGuardUpdateClusterLayoutWithParams => {
                (ALL, LayoutOperation::UpdateClusterLayoutWithParams)
            }
            Self::NoGuardApplyClusterLayout => (ALL, LayoutOperation::ApplyClusterLayout),
            Self::NoGuardApplyStagedLayoutChanges => (ALL, LayoutOperation::ApplyStagedLayoutChanges),
            Self::NoGuardRevertClusterLayout => (ALL, LayoutOperation::RevertClusterLayout),
            Self::NoGuardClusterLayoutSkipDeadNodes => (ALL, LayoutOperation::ClusterLayoutSkipDeadNodes),
            _ => return None,
        };
        Some(taken)
    }
}

/// Whether this build has this defect now.
#[inline]
pub fn is(mutant: Mutant) -> bool {
    active() == Some(mutant)
}

/// Whether this layer is missing for this write.
#[inline]
pub fn lacks(layer: Layer, operation: LayoutOperation) -> bool {
    let Some((layers, of)) = active().and_then(Mutant::takes_away) else { return false };
    let unguarded = layers.len() > 1;
    layers.contains(&layer) && (of == operation || (unguarded && meets(of, layer, operation)))
}

/// Whether who makes the write `of` meets this layer of another one on the way: a path looks at the role for its first
/// write, and what is applied without its version is applied with it in the end.
fn meets(of: LayoutOperation, layer: Layer, operation: LayoutOperation) -> bool {
    match layer {
        Layer::Before => true,
        Layer::Asking => false,
        Layer::Call => {
            let applies = (LayoutOperation::ApplyStagedLayoutChanges, LayoutOperation::ApplyClusterLayout);
            (of, operation) == applies
        }
    }
}

/// Whether a Follower goes about this write like a Writer: no layer of its guard is left.
#[inline]
pub fn is_unguarded(operation: LayoutOperation) -> bool {
    [Layer::Before, Layer::Asking, Layer::Call].into_iter().all(|layer| lacks(layer, operation))
}

/// Whether the guard is out of force for a defect that does as a Follower what only a Writer may.
#[inline]
pub fn overrides_guard() -> bool {
    matches!(
        active(),
        Some(
            Mutant::AutoApplyOnFollower
                | Mutant::FollowerImports
                | Mutant::AnnotationExecuted
                | Mutant::OrphanWrites
                | Mutant::PurgeOnFollower
        )
    )
}

/// The role of a cluster, or the one that a defect remembers from earlier.
#[cfg(not(feature = "mutants"))]
#[inline]
pub fn remembered(_: &str, role: Option<LayoutSiteRole>) -> Option<LayoutSiteRole> {
    role
}

/// The role of a cluster, or the one that a defect remembers from earlier.
#[cfg(feature = "mutants")]
pub fn remembered(cluster: &str, role: Option<LayoutSiteRole>) -> Option<LayoutSiteRole> {
    use std::sync::{Mutex, PoisonError};
    static ROLES: Mutex<BTreeMap<String, Option<LayoutSiteRole>>> = Mutex::new(BTreeMap::new());
    let follows = role == Some(LayoutSiteRole::Follower);
    let keeps = match active() {
        Some(Mutant::RoleCached) => !follows,
        Some(Mutant::PromotionIgnored) => follows,
        _ => return role,
    };
    let mut roles = ROLES.lock().unwrap_or_else(PoisonError::into_inner);
    if keeps {
        return *roles.entry(cluster.to_owned()).or_insert(role);
    }
    roles.get(cluster).copied().unwrap_or(role)
}

/// The annotations that a defect remembers of a cluster that was a Follower when they were refused.
#[cfg(not(feature = "mutants"))]
#[inline]
pub fn recalled(_: &str, _follows: bool, _: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    BTreeMap::new()
}

/// The annotations that a defect remembers of a cluster that was a Follower when they were refused.
#[cfg(feature = "mutants")]
pub fn recalled(
    cluster: &str,
    follows: bool,
    present: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    use std::sync::{Mutex, PoisonError};
    static REFUSED: Mutex<BTreeMap<String, BTreeMap<String, String>>> = Mutex::new(BTreeMap::new());
    if !is(Mutant::AnnotationRemembered) {
        return BTreeMap::new();
    }
    let mut refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    if follows {
        refused.entry(cluster.to_owned()).or_default().extend(present.clone());
        return BTreeMap::new();
    }
    refused.remove(cluster).unwrap_or_default()
}

static STAGINGS: AtomicU64 = AtomicU64::new(0);
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// A role was staged.
#[inline]
pub fn staged() {
    if is(Mutant::RoleFlaps) {
        STAGINGS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Layout upkeep failed.
#[inline]
pub fn failed() {
    if is(Mutant::UpkeepGivenUp) {
        GIVEN_UP.store(true, Ordering::Relaxed);
    }
}

/// Whether layout upkeep that failed once is not tried again.
#[inline]
pub fn has_given_up() -> bool {
    is(Mutant::UpkeepGivenUp) && GIVEN_UP.load(Ordering::Relaxed)
}

/// Changes with every staging.
pub fn turn() -> u64 {
    STAGINGS.load(Ordering::Relaxed) % 2
}

/// Whether this build applies by the method that names no version, so that its guard has something to guard.
#[inline]
pub fn applies_unversioned() -> bool {
    let taken = active().and_then(Mutant::takes_away);
    taken.is_some_and(|(_, of)| of == LayoutOperation::ApplyStagedLayoutChanges)
}

#[cfg(not(feature = "mutants"))]
const fn active() -> Option<Mutant> {
    None
}

#[cfg(feature = "mutants")]
static CHOSEN: std::sync::OnceLock<Mutant> = std::sync::OnceLock::new();

/// Gives this process a defect. Only the first call counts.
#[cfg(feature = "mutants")]
pub fn choose(mutant: Mutant) {
    let _chosen = CHOSEN.set(mutant);
}

#[cfg(feature = "mutants")]
fn active() -> Option<Mutant> {
    const BUILT_IN: Option<Mutant> = if cfg!(feature = "defect-follower-stages") {
        Some(Mutant::NoGuardUpdateClusterLayout)
    } else {
        None
    };
    CHOSEN.get().copied().or(BUILT_IN)
}

#[cfg(test)]
mod tests {
    use super::Mutant;
    use clap::ValueEnum;
    use std::collections::BTreeSet;

    #[test]
    fn defects_have_names_of_their_own_and_there_are_enough_of_them() {
        let names: BTreeSet<String> = Mutant::value_variants()
            .iter()
            .filter_map(|mutant| Some(mutant.to_possible_value()?.get_name().to_owned()))
            .collect();
        assert_eq!(names.len(), Mutant::value_variants().len());
        assert!(names.len() >= 30 && names.contains("no-guard-apply-cluster-layout"), "{names:?}");
    }

    #[test]
    fn every_defect_is_in_the_table_of_those_who_must_notice_it() {
        let table = include_str!("../../suites/teeth.toml");
        for mutant in Mutant::value_variants() {
            let name = mutant.to_possible_value().map(|value| value.get_name().to_owned());
            let entry = format!("name = \"{}\"", name.unwrap_or_default());
            assert!(table.lines().any(|line| line == entry), "{entry} is not in teeth.toml");
        }
    }

    #[test]
    fn every_layer_of_every_write_can_be_taken_away() {
        let taken: BTreeSet<String> = Mutant::value_variants()
            .iter()
            .filter_map(|mutant| mutant.takes_away())
            .map(|(layers, operation)| format!("{layers:?} {operation}"))
            .collect();
        assert_eq!(taken.len(), 22);
    }
}
