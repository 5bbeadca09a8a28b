//! One version of the layout: who has which role, and who holds which partition.

use std::collections::{BTreeMap, BTreeSet};

use super::assignment::{self, NodeNumber, Sets, ZoneRoom};
use super::digest::{Digest, Digester};
use super::partition_size::{self, Demand};
use super::reassignment;
use super::role::Role;
use super::staging::{Staging, put_parameters, put_role};
use super::{NodeId, Parameters, Register, ZoneRedundancy};

/// Number of partitions of every layout.
pub const PARTITIONS: usize = 256;

/// Most storage nodes that a version may have.
pub const MAX_STORAGE_NODES: usize = 256;

/// A version that cannot be computed. The message is the one Garage sends, without its prefix (Garage admin
/// reference §6, Apply).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// Fewer storage nodes than copies.
    #[error(
        "The number of nodes with positive capacity ({nodes}) is smaller than the replication factor ({factor})."
    )]
    TooFewNodes {
        /// Storage nodes of the version.
        nodes: usize,
        /// The replication factor.
        factor: usize,
    },
    /// More than [`MAX_STORAGE_NODES`].
    #[error("There are more than 256 non-gateway nodes in the new layout. This is not allowed.")]
    TooManyNodes,
    /// Fewer zones with storage nodes than the redundancy demands.
    #[error(
        "The number of zones with non-gateway nodes ({zones}) is smaller than the redundancy parameter ({required})"
    )]
    TooFewZones {
        /// Zones with storage nodes.
        zones: usize,
        /// Zones that each partition must have a copy in.
        required: usize,
    },
    /// Not even partitions of one byte fit.
    #[error(
        "The storage capacity of the cluster is too small. It is impossible to store partitions of size 1."
    )]
    TooSmall,
}

/// One version of the layout.
///
/// Two versions are the same if their content is: number, roles *with the times they were staged*, parameters and
/// assignment.
#[derive(Debug, Clone)]
pub struct Version {
    /// Number of the version, from 1; 0 before the first one.
    pub number: u64,
    /// Roles with the time they were staged.
    pub roles: BTreeMap<NodeId, Register<Role>>,
    /// The parameters it was computed with.
    pub parameters: Parameters,
    /// Copies of each partition.
    pub factor: usize,
    /// Size of a partition in bytes.
    pub partition_size: u64,
    storage: Vec<NodeId>,
    sets: Sets,
    consistent: bool,
    digest: Digest,
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Version {}

impl Version {
    /// Version 0: no roles, nothing assigned.
    #[must_use]
    pub fn empty(factor: usize) -> Self {
        Self::sealed(0, BTreeMap::new(), Parameters::default(), factor, 0, Vec::new())
    }

    fn sealed(
        number: u64,
        roles: BTreeMap<NodeId, Register<Role>>,
        parameters: Parameters,
        factor: usize,
        partition_size: u64,
        sets: Sets,
    ) -> Self {
        let storage = roles.iter().filter(|(_, role)| role.value.stores()).map(|(id, _)| *id).collect();
        let digest = Digester::default().finish();
        let consistent = sets.len() == PARTITIONS && sets.iter().all(|set| set.len() == factor);
        let mut version =
            Self { number, roles, parameters, factor, partition_size, storage, sets, consistent, digest };
        version.digest = version.content_digest();
        version
    }

    /// The version after this one: its roles with the staged ones, assigned with as few moves as possible.
    pub fn next(&self, staging: &Staging) -> Result<Self, ComputeError> {
        let roles = self.roles_with(staging);
        let parameters = staging.parameters.value;
        let draft = Draft::new(&roles, parameters, self.factor)?;
        let capacities: Vec<_> =
            draft.zones.values().map(|nodes| nodes.iter().map(|(_, capacity)| *capacity).collect()).collect();
        let size = partition_size::largest(&capacities, draft.demand).ok_or(ComputeError::TooSmall)?;
        let sets = self.assign(&draft, size).ok_or(ComputeError::TooSmall)?;
        Ok(Self::sealed(self.number + 1, roles, parameters, self.factor, size, sets))
    }

    /// The roles of the next version: per node the later one, removals gone without a trace.
    fn roles_with(&self, staging: &Staging) -> BTreeMap<NodeId, Register<Role>> {
        let mut roles = self.roles.clone();
        for (id, change) in &staging.roles {
            let mut merged = roles.remove(id).map(|role| Register::new(role.at, Some(role.value)));
            match &mut merged {
                Some(present) => {
                    present.join(change);
                }
                None => merged = Some(change.clone()),
            }
            if let Some(Register { at, value: Some(role) }) = merged {
                roles.insert(*id, Register::new(at, role));
            }
        }
        roles
    }

    fn assign(&self, draft: &Draft, size: u64) -> Option<Sets> {
        let zones: Vec<_> = draft
            .zones
            .values()
            .map(|nodes| ZoneRoom {
                nodes: nodes
                    .iter()
                    .map(|(node, capacity)| (*node, partition_size::room(*capacity, size)))
                    .collect(),
            })
            .collect();
        if self.sets.is_empty() {
            return assignment::assign(&zones, draft.demand);
        }
        let renumber = |node: &NodeNumber| {
            let id = self.storage[usize::from(*node)];
            draft.storage.binary_search(&id).ok().and_then(|number| NodeNumber::try_from(number).ok())
        };
        let previous = self.sets.iter().map(|set| set.iter().filter_map(renumber).collect()).collect();
        reassignment::reassign(&zones, draft.demand, &previous)
    }

    /// Whether the version can be worked with: every partition has its copies. Version 0 cannot.
    #[must_use]
    pub const fn is_consistent(&self) -> bool {
        self.consistent
    }

    /// Nodes with a role, gateways included.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.roles.keys().copied()
    }

    /// Nodes that store data, by identity.
    #[must_use]
    pub fn storage_nodes(&self) -> &[NodeId] {
        &self.storage
    }

    /// Number of nodes with a role that store no data.
    #[must_use]
    pub fn gateways(&self) -> usize {
        self.roles.len() - self.storage.len()
    }

    /// The role of `id`.
    #[must_use]
    pub fn role(&self, id: NodeId) -> Option<&Role> {
        self.roles.get(&id).map(|role| &role.value)
    }

    /// The nodes of each partition; empty before the first version.
    pub fn replica_sets(&self) -> impl Iterator<Item = Vec<NodeId>> + '_ {
        self.sets.iter().map(|set| set.iter().map(|node| self.storage[usize::from(*node)]).collect())
    }

    /// How many partitions each storage node holds, in the order of [`Version::storage_nodes`].
    #[must_use]
    pub fn stored_partitions(&self) -> Vec<u64> {
        let mut counts = vec![0; self.storage.len()];
        for node in self.sets.iter().flatten() {
            counts[usize::from(*node)] += 1;
        }
        counts
    }

    /// In how many zones each partition has a copy at least: what the parameters come to with these roles.
    #[must_use]
    pub fn effective_zone_redundancy(&self) -> usize {
        required_zones(&self.roles, self.parameters, self.factor)
    }

    /// Digest of the whole content.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    fn content_digest(&self) -> Digest {
        let mut digester = Digester::default();
        digester.number(self.number).count(self.factor).number(self.partition_size);
        put_parameters(&mut digester, &self.parameters);
        digester.count(self.roles.len());
        for (id, role) in &self.roles {
            put_role(digester.bytes(id.as_bytes()).number(role.at), &role.value);
        }
        for set in &self.sets {
            digester.count(set.len());
            for node in set {
                digester.number(u64::from(*node));
            }
        }
        digester.finish()
    }
}

/// The zones that each partition must have a copy in. A zone of gateways only counts under `maximum` (capture 04).
fn required_zones(roles: &BTreeMap<NodeId, Register<Role>>, parameters: Parameters, factor: usize) -> usize {
    match parameters.zone_redundancy {
        ZoneRedundancy::AtLeast(zones) => zones,
        ZoneRedundancy::Maximum => {
            roles.values().map(|role| &role.value.zone).collect::<BTreeSet<_>>().len().min(factor)
        }
    }
}

/// What a version is computed from, checked.
struct Draft {
    storage: Vec<NodeId>,
    /// Per zone the storage nodes with their capacity.
    zones: BTreeMap<String, Vec<(NodeNumber, u64)>>,
    demand: Demand,
}

impl Draft {
    fn new(
        roles: &BTreeMap<NodeId, Register<Role>>,
        parameters: Parameters,
        factor: usize,
    ) -> Result<Self, ComputeError> {
        let storing =
            roles.iter().filter_map(|(id, role)| Some((*id, &role.value.zone, role.value.capacity?)));
        let storing: Vec<_> = storing.collect();
        if storing.len() < factor {
            return Err(ComputeError::TooFewNodes { nodes: storing.len(), factor });
        }
        if storing.len() > MAX_STORAGE_NODES {
            return Err(ComputeError::TooManyNodes);
        }
        let mut zones = BTreeMap::<String, Vec<_>>::new();
        for ((_, zone, capacity), number) in storing.iter().zip(0..) {
            zones.entry((*zone).clone()).or_default().push((number, *capacity));
        }
        let required = required_zones(roles, parameters, factor);
        if zones.len() < required {
            return Err(ComputeError::TooFewZones { zones: zones.len(), required });
        }
        let storage = storing.into_iter().map(|(id, _, _)| id).collect();
        Ok(Self { storage, zones, demand: Demand { factor, zones: required.min(factor) } })
    }
}
