//! `spec.replication`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How Garage replicates data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replication {
    /// Copies of each partition; `replication_factor` of Garage.
    #[serde(default = "default_factor")]
    #[schemars(range(min = 1, max = 7))]
    pub factor: u32,
    /// `consistency_mode` of Garage.
    #[serde(default)]
    pub consistency_mode: ConsistencyMode,
    /// How many zones each partition must be in; unset leaves the parameter of the layout alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_redundancy_mode: Option<ZoneRedundancyMode>,
    /// The number of zones of mode `AtLeast`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 7))]
    pub zone_redundancy_min_zones: Option<u32>,
}

impl Default for Replication {
    fn default() -> Self {
        Self {
            factor: default_factor(),
            consistency_mode: ConsistencyMode::default(),
            zone_redundancy_mode: None,
            zone_redundancy_min_zones: None,
        }
    }
}

fn default_factor() -> u32 {
    3
}

/// `consistency_mode` of Garage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ConsistencyMode {
    /// Read-after-write consistency.
    #[default]
    Consistent,
    /// Reads from one copy.
    Degraded,
    /// Reads and writes from one copy.
    Dangerous,
}

impl ConsistencyMode {
    /// The value in `garage.toml`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Degraded => "degraded",
            Self::Dangerous => "dangerous",
        }
    }
}

/// How many zones each partition must be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneRedundancyMode {
    /// As many as there are, up to the factor.
    Maximum,
    /// At least `zoneRedundancyMinZones`.
    AtLeast,
}
