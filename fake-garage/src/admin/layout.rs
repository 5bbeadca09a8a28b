//! The layout endpoints (Garage admin reference §6).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::profile::Profile;
use crate::layout::message;
use crate::layout::{
    Change, LayoutHistory, NodeId, Parameters, Role, StageRequest, Statistics, Version, ZoneRedundancy,
};

/// `GetClusterLayout`, and the layout in other answers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayoutBody {
    version: u64,
    roles: Vec<RoleBody>,
    parameters: ParametersBody,
    partition_size: u64,
    staged_role_changes: Vec<ChangeBody>,
    staged_parameters: Option<ParametersBody>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RoleBody {
    id: NodeId,
    zone: String,
    tags: Vec<String>,
    capacity: Option<u64>,
    stored_partitions: u64,
    usable_capacity: u64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ChangeBody {
    Remove { id: NodeId, remove: bool },
    Assign { id: NodeId, zone: String, tags: Vec<String>, capacity: Option<u64> },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ParametersBody {
    zone_redundancy: ZoneRedundancy,
}

impl From<Parameters> for ParametersBody {
    fn from(parameters: Parameters) -> Self {
        Self { zone_redundancy: parameters.zone_redundancy }
    }
}

/// The layout that `history` shows to a reader.
#[must_use]
pub fn layout_body(history: &LayoutHistory, profile: Profile) -> LayoutBody {
    let staged = history.visible_changes(!profile.is_2_5()).map(|(id, change)| change_body(id, change));
    LayoutBody {
        staged_role_changes: staged.collect(),
        staged_parameters: history.visible_parameters().map(Into::into),
        ..version_body(history.current())
    }
}

/// The layout that consists of `version` with nothing staged.
#[must_use]
pub fn version_body(version: &Version) -> LayoutBody {
    let stored: BTreeMap<_, _> =
        version.storage_nodes().iter().copied().zip(version.stored_partitions()).collect();
    let role = |(id, role): (&NodeId, &crate::layout::Register<Role>)| {
        let stored_partitions = stored.get(id).copied().unwrap_or(0);
        RoleBody {
            id: *id,
            zone: role.value.zone.clone(),
            tags: role.value.tags.clone(),
            capacity: role.value.capacity,
            stored_partitions,
            usable_capacity: stored_partitions * version.partition_size,
        }
    };
    LayoutBody {
        version: version.number,
        roles: version.roles.iter().map(role).collect(),
        parameters: version.parameters.into(),
        partition_size: version.partition_size,
        staged_role_changes: Vec::new(),
        staged_parameters: None,
    }
}

fn change_body(id: NodeId, change: &Change) -> ChangeBody {
    match change {
        None => ChangeBody::Remove { id, remove: true },
        Some(Role { zone, capacity, tags }) => {
            ChangeBody::Assign { id, zone: zone.clone(), tags: tags.clone(), capacity: *capacity }
        }
    }
}

/// `GetClusterLayoutHistory`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryBody {
    current_version: u64,
    min_ack: u64,
    versions: Vec<VersionBody>,
    update_trackers: Option<BTreeMap<NodeId, TrackerBody>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionBody {
    version: u64,
    status: &'static str,
    storage_nodes: usize,
    gateway_nodes: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TrackerBody {
    ack: u64,
    sync: u64,
    sync_ack: u64,
}

/// Live versions, then retired ones, newest first; trackers while an older version is live.
#[must_use]
pub fn history_body(history: &LayoutHistory) -> HistoryBody {
    let current = history.current().number;
    let live = history.live().iter().rev().map(|version| {
        version_summary(version, if version.number == current { "Current" } else { "Draining" })
    });
    let old = history.old().iter().rev().map(|version| version_summary(version, "Historical"));
    HistoryBody {
        current_version: current,
        min_ack: history.min_ack(),
        versions: live.chain(old).collect(),
        update_trackers: (history.live().len() > 1).then(|| trackers(history)),
    }
}

fn version_summary(version: &Version, status: &'static str) -> VersionBody {
    VersionBody {
        version: version.number,
        status,
        storage_nodes: version.storage_nodes().len(),
        gateway_nodes: version.gateways(),
    }
}

fn trackers(history: &LayoutHistory) -> BTreeMap<NodeId, TrackerBody> {
    let oldest = history.oldest();
    let values = |id| TrackerBody {
        ack: history.trackers.ack.get(id, oldest),
        sync: history.trackers.sync.get(id, oldest),
        sync_ack: history.trackers.sync_ack.get(id, oldest),
    };
    history.nodes().into_iter().map(|id| (id, values(id))).collect()
}

/// Body of `UpdateClusterLayout`. The name is on the wire in error messages.
#[derive(Debug, Deserialize)]
pub struct UpdateClusterLayoutRequest {
    #[serde(default)]
    roles: Vec<NodeRoleChange>,
    #[serde(default)]
    parameters: Option<ParametersBody>,
}

#[derive(Debug, Deserialize)]
struct NodeRoleChange {
    id: String,
    #[serde(flatten)]
    action: NodeRoleChangeEnum,
}

/// The name is on the wire in error messages.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NodeRoleChangeEnum {
    Remove { remove: bool },
    Assign { zone: String, capacity: Option<u64>, tags: Vec<String> },
}

impl UpdateClusterLayoutRequest {
    /// The changes to stage, if every one of them makes sense.
    pub fn changes(self) -> Result<StageRequest, ApiError> {
        let roles = self.roles.into_iter().map(NodeRoleChange::read).collect::<Result<_, _>>()?;
        let parameters = self.parameters.map(|body| Parameters { zone_redundancy: body.zone_redundancy });
        Ok(StageRequest { roles, parameters })
    }
}

impl NodeRoleChange {
    fn read(self) -> Result<(NodeId, Change), ApiError> {
        let id = NodeId::parse(&self.id).map_err(ApiError::bad_request)?;
        let change = match self.action {
            NodeRoleChangeEnum::Remove { remove: true } => None,
            NodeRoleChangeEnum::Remove { remove: false } => {
                return Err(ApiError::bad_request("Invalid layout change"));
            }
            NodeRoleChangeEnum::Assign { zone, capacity, tags } => Some(Role { zone, capacity, tags }),
        };
        Ok((id, change))
    }
}

/// Body of `ApplyClusterLayout`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct ApplyClusterLayoutRequest {
    /// Number of the version to make.
    pub version: u64,
}

/// Body of `ClusterLayoutSkipDeadNodes`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkipDeadNodesRequest {
    /// Version up to which nobody is waited for.
    pub version: u64,
    /// Whether synchronisation counts as done, too.
    pub allow_missing_data: bool,
}

/// Answer of `ClusterLayoutSkipDeadNodes`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedBody {
    /// Nodes whose acknowledgement was raised.
    pub ack_updated: Vec<NodeId>,
    /// Nodes whose synchronisation was raised.
    pub sync_updated: Vec<NodeId>,
}

/// Answer of `ApplyClusterLayout`.
#[derive(Debug, Serialize)]
pub struct AppliedBody<'a> {
    message: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<&'a Statistics>,
    layout: LayoutBody,
}

impl<'a> AppliedBody<'a> {
    /// The answer about a computed version.
    #[must_use]
    pub fn new(version: &Version, statistics: &'a Statistics, profile: Profile) -> Self {
        Self {
            message: message::lines(statistics),
            statistics: profile.is_2_5().then_some(statistics),
            layout: version_body(version),
        }
    }
}

/// Answer of `PreviewClusterLayoutChanges`.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum PreviewBody<'a> {
    /// What is staged cannot be applied.
    Error {
        /// Why.
        error: String,
    },
    /// What applying would give.
    Preview {
        /// Lines for people.
        message: Vec<String>,
        /// Figures.
        #[serde(skip_serializing_if = "Option::is_none")]
        statistics: Option<&'a Statistics>,
        /// The version.
        new_layout: LayoutBody,
    },
}

impl<'a> PreviewBody<'a> {
    /// The answer about a computed version.
    #[must_use]
    pub fn new(version: &Version, statistics: &'a Statistics, profile: Profile) -> Self {
        let AppliedBody { message, statistics, layout } = AppliedBody::new(version, statistics, profile);
        Self::Preview { message, statistics, new_layout: layout }
    }
}
