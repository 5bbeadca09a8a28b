//! Changes that wait for the next version.

use std::collections::BTreeMap;

use super::digest::{Digest, Digester};
use super::parameters::{Parameters, ZoneRedundancy};
use super::role::{Change, Role};
use super::{NodeId, Register};

/// Smallest capacity that can be staged, in bytes.
pub const MIN_CAPACITY: u64 = 1024;

/// A change that cannot be staged. The message is the one Garage sends (Garage admin reference §6).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// A capacity below [`MIN_CAPACITY`].
    #[error("Capacity should be at least 1K (1024)")]
    CapacityTooSmall,
    /// More zones than copies.
    #[error("The zone redundancy must be smaller or equal to the replication factor ({factor}).")]
    RedundancyAboveFactor {
        /// The replication factor.
        factor: usize,
    },
    /// No zone at all.
    #[error("The zone redundancy must be at least 1.")]
    RedundancyZero,
}

/// The staging area: a last-writer-wins register over parameters and roles, each of which is one in turn.
///
/// `moved` is the register's own time T. Staging a change does **not** move it; applying and reverting do. Where
/// two areas meet, the one with the later T replaces the other as a whole, and areas of the same T are joined entry
/// by entry (Garage admin reference §8, rule 4). Hence staging alone wipes nothing, while an apply or a revert wipes
/// what others have staged and it has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staging {
    /// T: when the area was last emptied, in milliseconds.
    pub moved: u64,
    /// Parameters for the next version.
    pub parameters: Register<Parameters>,
    /// Role changes for the next version.
    pub roles: BTreeMap<NodeId, Register<Change>>,
}

impl Staging {
    /// The staging area of a node that starts for the first time at `now`.
    #[must_use]
    pub fn fresh(now: u64) -> Self {
        Self { moved: 0, parameters: Register::new(now, Parameters::default()), roles: BTreeMap::new() }
    }

    /// The area after an apply or a revert at `now`: no roles, `parameters`, and a later T.
    #[must_use]
    pub fn emptied(&self, now: u64, parameters: Register<Parameters>) -> Self {
        Self { moved: now.max(self.moved.saturating_add(1)), parameters, roles: BTreeMap::new() }
    }

    /// Takes over another area. Returns whether anything changed.
    pub fn join(&mut self, other: &Self) -> bool {
        match other.moved.cmp(&self.moved) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => {
                self.clone_from(other);
                true
            }
            std::cmp::Ordering::Equal => {
                let mut changed = self.parameters.join(&other.parameters);
                for (id, change) in &other.roles {
                    changed |= self.stage_role(*id, change.clone());
                }
                changed
            }
        }
    }

    /// Adds a change of one role unless a later one is there. Returns whether anything changed.
    pub fn stage_role(&mut self, id: NodeId, change: Register<Change>) -> bool {
        match self.roles.get_mut(&id) {
            Some(present) => present.join(&change),
            None => self.roles.insert(id, change).is_none(),
        }
    }

    /// The digest that nodes exchange to see whether their staging areas differ.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut digester = Digester::default();
        digester.number(self.moved).number(self.parameters.at);
        put_parameters(&mut digester, &self.parameters.value);
        for (id, change) in &self.roles {
            digester.bytes(id.as_bytes()).number(change.at);
            match &change.value {
                Some(role) => put_role(digester.count(1), role),
                None => digester.count(0),
            };
        }
        digester.finish()
    }
}

/// Checks a role before it is staged.
pub fn check_role(role: &Role) -> Result<(), StageError> {
    match role.capacity {
        Some(capacity) if capacity < MIN_CAPACITY => Err(StageError::CapacityTooSmall),
        _ => Ok(()),
    }
}

/// Checks parameters before they are staged on a cluster of replication factor `factor`.
pub fn check_parameters(parameters: Parameters, factor: usize) -> Result<(), StageError> {
    match parameters.zone_redundancy {
        ZoneRedundancy::AtLeast(0) => Err(StageError::RedundancyZero),
        ZoneRedundancy::AtLeast(zones) if zones > factor => Err(StageError::RedundancyAboveFactor { factor }),
        _ => Ok(()),
    }
}

pub(super) fn put_role<'a>(digester: &'a mut Digester, role: &Role) -> &'a mut Digester {
    digester.text(&role.zone);
    match role.capacity {
        Some(capacity) => digester.count(1).number(capacity),
        None => digester.count(0),
    };
    digester.count(role.tags.len());
    role.tags.iter().fold(digester, |digester, tag| digester.text(tag))
}

pub(super) fn put_parameters(digester: &mut Digester, parameters: &Parameters) {
    match parameters.zone_redundancy {
        ZoneRedundancy::AtLeast(zones) => digester.count(1).count(zones),
        ZoneRedundancy::Maximum => digester.count(0),
    };
}
