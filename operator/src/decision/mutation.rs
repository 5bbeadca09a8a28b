//! What to do about the layout next: the common mutation core as a decision (operator contract §5).

use std::collections::{BTreeMap, BTreeSet};

use super::assignment::{WantedRole, same_tags};
use crate::garage::{ClusterLayout, LayoutHistory, LayoutParameters, RoleChange, StagedRole, VersionStatus};

/// Storage roles that Garage allows in one layout.
const STORAGE_ROLE_LIMIT: usize = 256;

/// What a site wants of the layout. It has no opinion about any other node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// Roles that should be there.
    pub roles: Vec<WantedRole>,
    /// Those of `roles` that are only declared here: nobody has answered to their identity yet.
    pub declared: BTreeSet<String>,
    /// Nodes (lower case) that should have no role.
    pub removals: BTreeSet<String>,
    /// Parameters that should be in force; `None` leaves them alone.
    pub parameters: Option<LayoutParameters>,
    /// Fewest storage roles with which Garage accepts an apply.
    pub factor: u32,
}

impl Intent {
    /// Declared nodes that have neither a role nor a staged one. They have to be seen before they get their first: a
    /// mistyped identity would take its share of the partitions at once, and could not be drained.
    pub fn unproven(&self, layout: &ClusterLayout) -> BTreeSet<String> {
        let staged =
            |id: &str| layout.staged_role_changes.iter().any(|staged| staged.id.eq_ignore_ascii_case(id));
        self.declared.iter().filter(|id| layout.role(id).is_none() && !staged(id)).cloned().collect()
    }

    /// The intent without the roles of `unseen`.
    #[must_use]
    pub fn without(mut self, unseen: &BTreeSet<String>) -> Self {
        self.roles.retain(|role| !unseen.contains(&role.id));
        self
    }
}

/// The next step towards the intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The layout is as intended and nothing of ours is staged.
    Nothing,
    /// Stage exactly this.
    Stage {
        /// Roles to stage.
        roles: Vec<RoleChange>,
        /// Parameters to stage.
        parameters: Option<LayoutParameters>,
    },
    /// What is staged equals the intent: apply it under this number.
    Apply {
        /// Current version + 1.
        version: i64,
    },
    /// Somebody else has to move first.
    Wait(Waiting),
}

/// What a mutation waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// An older version is still draining.
    Unsettled,
    /// Another node of the site knows of a change that has not reached the one through which the layout is changed.
    Unheard,
    /// Changes of other nodes are staged; applying them is not ours to decide.
    Foreign(Vec<String>),
    /// Too few storage roles for the replication factor.
    TooFewNodes {
        /// Storage roles after the apply.
        storage: usize,
        /// Replication factor.
        factor: u32,
    },
    /// Too many storage roles for Garage.
    TooManyNodes(usize),
    /// The last storage node of the layout is not removed.
    LastStorageNode,
}

impl Waiting {
    /// What a person should know.
    pub fn message(&self) -> String {
        match self {
            Self::Unsettled => "an older layout version is still draining".to_owned(),
            Self::Unheard => "a layout change has not reached all nodes of this site yet".to_owned(),
            Self::Foreign(ids) => format!(
                "changes that this operator did not stage are in the way (nodes {}); apply or revert them",
                ids.join(", ")
            ),
            Self::TooFewNodes { storage, factor } => {
                format!("{storage} storage nodes are fewer than the replication factor {factor}")
            }
            Self::TooManyNodes(storage) => {
                format!("{storage} storage nodes are more than the {STORAGE_ROLE_LIMIT} that Garage allows")
            }
            Self::LastStorageNode => "the last storage node is never removed from the layout".to_owned(),
        }
    }
}

/// Whether no older version is live any more, or every node has synced the current one.
///
/// Draining without trackers is unsettled (operator contract §1.3).
pub fn is_settled(history: &LayoutHistory) -> bool {
    if history.versions.iter().all(|version| version.status != VersionStatus::Draining) {
        return true;
    }
    let synced = |trackers: &BTreeMap<_, crate::garage::Trackers>| {
        !trackers.is_empty() && trackers.values().all(|tracker| tracker.sync >= history.current_version)
    };
    history.update_trackers.as_ref().is_some_and(synced)
}

/// Whether `version`, or a newer one, [is settled](is_settled).
///
/// Two questions to one Service may reach two nodes, and one that has not heard of `version` yet finds the one before it
/// settled.
pub fn has_settled(history: &LayoutHistory, version: i64) -> bool {
    history.current_version >= version && is_settled(history)
}

/// Whether `other` shows a newer version, or staged changes, that `own` does not show.
///
/// What one node was told reaches the others by gossip: whoever changes the layout through a node that has not heard of
/// its last change would make that change again. A staged change that equals a role is hidden where that role is.
pub fn is_ahead(other: &ClusterLayout, own: &ClusterLayout) -> bool {
    let known = |change: &StagedRole| {
        let staged = own.staged_role_changes.iter().find(|staged| staged.id.eq_ignore_ascii_case(&change.id));
        staged.map_or_else(|| is_role(own, change), |staged| same_change(staged, change))
    };
    other.version > own.version
        || (other.version == own.version && !other.staged_role_changes.iter().all(known))
}

fn same_change(left: &StagedRole, right: &StagedRole) -> bool {
    (left.remove, &left.zone, left.capacity) == (right.remove, &right.zone, right.capacity)
        && same_tags(&left.tags, &right.tags)
}

fn is_role(layout: &ClusterLayout, change: &StagedRole) -> bool {
    match layout.role(&change.id) {
        None => change.remove,
        Some(role) => {
            !change.remove
                && change.zone.as_ref() == Some(&role.zone)
                && change.capacity == role.capacity
                && same_tags(&change.tags, &role.tags)
        }
    }
}

/// The next step from this layout towards the intent.
///
/// A removal that would leave too few nodes is not even staged; a role that comes too early for the factor stays
/// staged and waits for the others. Asked again after staging it is the verification: only if what is staged equals the intent exactly does it answer
/// [`Step::Apply`].
pub fn next_step(layout: &ClusterLayout, intent: &Intent) -> Step {
    let targets = targets(intent);
    let staged: BTreeMap<String, &StagedRole> =
        layout.staged_role_changes.iter().map(|change| (change.id.to_ascii_lowercase(), change)).collect();
    let foreign: Vec<String> = staged.keys().filter(|id| !targets.contains_key(*id)).cloned().collect();
    if !foreign.is_empty() {
        return Step::Wait(Waiting::Foreign(foreign));
    }
    let pending: BTreeMap<&String, &RoleChange> =
        targets.iter().filter(|(_, change)| !is_committed(layout, change)).collect();
    let roles: Vec<RoleChange> = targets
        .iter()
        .filter(|(id, change)| match (staged.get(*id), pending.contains_key(id)) {
            (Some(found), true) => !is_staged(found, change),
            (Some(_), false) | (None, true) => true,
            (None, false) => false,
        })
        .map(|(_, change)| change.clone())
        .collect();
    let removes = pending.values().any(|change| matches!(change, RoleChange::Remove { .. }));
    let verdict = apply_or_wait(layout, &pending, intent.factor);
    if removes && matches!(verdict, Step::Wait(_)) {
        return verdict;
    }
    let parameters = parameters_to_stage(layout, intent);
    if !roles.is_empty() || parameters.is_some() {
        return Step::Stage { roles, parameters };
    }
    if pending.is_empty() && layout.staged_parameters.is_none() {
        return Step::Nothing;
    }
    verdict
}

fn targets(intent: &Intent) -> BTreeMap<String, RoleChange> {
    let removals = intent.removals.iter().map(|id| (id.clone(), RoleChange::Remove { id: id.clone() }));
    let roles = intent.roles.iter().map(|role| (role.id.clone(), role.change()));
    roles.chain(removals).collect()
}

fn is_committed(layout: &ClusterLayout, change: &RoleChange) -> bool {
    match (layout.role(change.id()), change) {
        (None, RoleChange::Remove { .. }) => true,
        (Some(role), RoleChange::Assign { zone, capacity, tags, .. }) => {
            role.zone == *zone && role.capacity == *capacity && same_tags(&role.tags, tags)
        }
        _ => false,
    }
}

fn is_staged(staged: &StagedRole, change: &RoleChange) -> bool {
    match change {
        RoleChange::Remove { .. } => staged.remove,
        RoleChange::Assign { zone, capacity, tags, .. } => {
            !staged.remove
                && staged.zone.as_ref() == Some(zone)
                && staged.capacity == *capacity
                && same_tags(&staged.tags, tags)
        }
    }
}

/// Garage hides staged parameters that equal the current ones.
fn parameters_to_stage(layout: &ClusterLayout, intent: &Intent) -> Option<LayoutParameters> {
    let wanted = intent.parameters?;
    let next = layout.staged_parameters.or(layout.parameters);
    (next != Some(wanted)).then_some(wanted)
}

fn apply_or_wait(layout: &ClusterLayout, pending: &BTreeMap<&String, &RoleChange>, factor: u32) -> Step {
    let (before, storage) = (storage_roles(layout, &BTreeMap::new()), storage_roles(layout, pending));
    if before > 0 && storage == 0 {
        return Step::Wait(Waiting::LastStorageNode);
    }
    if storage < usize::try_from(factor).unwrap_or(usize::MAX) {
        return Step::Wait(Waiting::TooFewNodes { storage, factor });
    }
    if storage > STORAGE_ROLE_LIMIT {
        return Step::Wait(Waiting::TooManyNodes(storage));
    }
    Step::Apply { version: layout.version + 1 }
}

fn storage_roles(layout: &ClusterLayout, pending: &BTreeMap<&String, &RoleChange>) -> usize {
    let kept = layout
        .roles
        .iter()
        .filter(|role| role.capacity.is_some() && !pending.contains_key(&role.id.to_ascii_lowercase()));
    let added =
        pending.values().filter(|change| matches!(change, RoleChange::Assign { capacity: Some(_), .. }));
    kept.count() + added.count()
}

#[cfg(test)]
#[path = "mutation_tests.rs"]
mod tests;
