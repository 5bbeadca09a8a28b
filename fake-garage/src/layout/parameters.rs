//! Parameters of the assignment.

use serde::{Deserialize, Serialize};

/// In how many zones each partition must have a copy.
///
/// `atLeast` is smaller than `maximum` where two values of one timestamp meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ZoneRedundancy {
    /// In at least that many zones.
    AtLeast(usize),
    /// In as many zones as there are, up to the replication factor.
    #[default]
    Maximum,
}

/// The parameters of a layout version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameters {
    /// In how many zones each partition must have a copy.
    pub zone_redundancy: ZoneRedundancy,
}

/// How much a cluster gives up to stay available (`consistency_mode` of the configuration).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsistencyMode {
    /// Quorum reads and writes; old versions drain.
    #[default]
    Consistent,
    /// Reads from any copy.
    Degraded,
    /// Reads and writes with any copy.
    Dangerous,
}

impl ConsistencyMode {
    /// Its name in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Degraded => "degraded",
            Self::Dangerous => "dangerous",
        }
    }
}

/// No layout has more copies: each stands on a storage node of its own, and there are at most 256 of those.
pub const LARGEST_FACTOR: usize = 256;

/// How many copies of a write must succeed under replication factor `factor` (Garage admin reference §3).
#[must_use]
pub const fn write_quorum(factor: usize) -> usize {
    factor + 1 - factor.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(1, 1)]
    #[case(2, 2)]
    #[case(3, 2)]
    #[case(4, 3)]
    #[case(5, 3)]
    fn the_write_quorum_is_a_majority_and_with_two_copies_both(#[case] factor: usize, #[case] quorum: usize) {
        assert_eq!(write_quorum(factor), quorum);
    }

    #[test]
    fn zone_redundancy_reads_as_on_the_wire() {
        let read = |text| serde_json::from_str::<ZoneRedundancy>(text);
        assert_eq!(read(r#""maximum""#).unwrap(), ZoneRedundancy::Maximum);
        assert_eq!(read(r#"{"atLeast":2}"#).unwrap(), ZoneRedundancy::AtLeast(2));
        assert!(read("2").is_err());
    }
}
