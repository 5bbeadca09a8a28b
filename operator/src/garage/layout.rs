//! Layout requests and answers (operator contract §1.2, §1.3; Garage admin reference §6).

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// Answer of `GetClusterLayout`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterLayout {
    /// Current version; 0 before the first apply.
    pub version: i64,
    /// Roles of the current version.
    pub roles: Vec<LayoutRole>,
    /// Parameters of the current version.
    #[serde(default)]
    pub parameters: Option<LayoutParameters>,
    /// Staged changes; one that equals the current role is hidden by Garage.
    #[serde(default)]
    pub staged_role_changes: Vec<StagedRole>,
    /// Staged parameters; absent when equal to the current ones.
    #[serde(default)]
    pub staged_parameters: Option<LayoutParameters>,
}

impl ClusterLayout {
    /// The role of this node in the current version.
    pub fn role(&self, id: &str) -> Option<&LayoutRole> {
        self.roles.iter().find(|role| role.id.eq_ignore_ascii_case(id))
    }
}

/// A role in the current version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayoutRole {
    /// Node ID.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Bytes; `None` for a gateway.
    #[serde(default)]
    pub capacity: Option<u64>,
}

/// A staged change as Garage shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StagedRole {
    /// Node ID.
    pub id: String,
    /// The role is to be removed.
    #[serde(default)]
    pub remove: bool,
    /// Zone of the new role.
    #[serde(default)]
    pub zone: Option<String>,
    /// Bytes of the new role; `None` for a gateway.
    #[serde(default)]
    pub capacity: Option<u64>,
    /// Tags of the new role.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Layout parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayoutParameters {
    /// How many zones each partition must be in.
    pub zone_redundancy: ZoneRedundancy,
}

/// How many zones each partition must be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ZoneRedundancy {
    /// As many as there are, up to the factor.
    Maximum,
    /// At least this many.
    AtLeast(u32),
}

/// One entry of `UpdateClusterLayout`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleChange {
    /// The node gets this role.
    Assign {
        /// Node ID in lower case.
        id: String,
        /// Zone.
        zone: String,
        /// Bytes; `None` makes it a gateway.
        capacity: Option<u64>,
        /// Tags.
        tags: Vec<String>,
    },
    /// The node loses its role.
    Remove {
        /// Node ID in lower case.
        id: String,
    },
}

impl RoleChange {
    /// Which node it is about.
    pub fn id(&self) -> &str {
        match self {
            Self::Assign { id, .. } | Self::Remove { id } => id,
        }
    }
}

impl Serialize for RoleChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", self.id())?;
        match self {
            Self::Assign { zone, capacity, tags, .. } => {
                map.serialize_entry("zone", zone)?;
                if let Some(bytes) = capacity {
                    map.serialize_entry("capacity", bytes)?;
                }
                map.serialize_entry("tags", tags)?;
            }
            Self::Remove { .. } => map.serialize_entry("remove", &true)?,
        }
        map.end()
    }
}

/// Answer of `GetClusterLayoutHistory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayoutHistory {
    /// Current version.
    pub current_version: i64,
    /// The oldest version some node still works with.
    #[serde(default)]
    pub min_ack: i64,
    /// Newest first.
    pub versions: Vec<LayoutVersion>,
    /// By node ID; absent exactly when only one version is live.
    #[serde(default)]
    pub update_trackers: Option<BTreeMap<String, Trackers>>,
}

/// One version of the history.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayoutVersion {
    /// Its number.
    pub version: i64,
    /// Whether it is live.
    pub status: VersionStatus,
}

/// Whether a version is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum VersionStatus {
    /// The newest one.
    Current,
    /// Live, but data moves away from it.
    Draining,
    /// Retired.
    Historical,
}

/// How far one node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trackers {
    /// Newest version it acknowledged.
    pub ack: i64,
    /// Newest version it synced.
    pub sync: i64,
    /// Newest version it saw everyone synced to.
    pub sync_ack: i64,
}

/// Answer of `ClusterLayoutSkipDeadNodes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedNodes {
    /// Nodes whose `ack` was forced.
    pub ack_updated: Vec<String>,
    /// Nodes whose `sync` was forced.
    pub sync_updated: Vec<String>,
}
