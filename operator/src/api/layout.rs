//! `spec.layoutPolicy` and `spec.layoutManagement`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who makes the `GarageNodes` of a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LayoutPolicy {
    /// The operator makes one `GarageNode` per replica.
    #[default]
    Auto,
    /// The user makes them.
    Manual,
}

/// The part this site plays in changes of the shared Garage layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum LayoutSiteRole {
    /// This site stages and applies layout changes.
    Writer,
    /// This site never writes to the layout.
    Follower,
}

impl fmt::Display for LayoutSiteRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Writer => "Writer",
            Self::Follower => "Follower",
        })
    }
}

/// How layout changes of this cluster are managed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayoutManagement {
    /// Remove stale gateway roles without asking. Ignored by a Follower, as if it were false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_apply: Option<bool>,
    /// Nodes that must be healthy before a layout change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_nodes_healthy: Option<i32>,
    /// How storage drains are proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainManagement>,
    /// Whether this cluster may change the shared Garage layout. Absent is equivalent to Writer. A Follower never
    /// stages, applies, reverts or removes roles; it only reconciles its own workloads and reports status. Exactly
    /// one site in a federation should be the Writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_role: Option<LayoutSiteRole>,
}

/// How storage drains are proved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainManagement {
    /// What holds for peers whose consistency mode this operator cannot see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unverified_peers_policy: Option<UnverifiedPeersPolicy>,
}

/// What holds for peers whose consistency mode this operator cannot see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnverifiedPeersPolicy {
    /// Drains wait.
    #[default]
    Block,
    /// The user attests that they run with consistency mode `consistent`.
    AssumeConsistent,
}
