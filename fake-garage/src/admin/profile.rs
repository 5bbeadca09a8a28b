//! Which version of Garage a node pretends to be (Garage admin reference §12).

use serde::{Deserialize, Serialize};

/// Which version of Garage a node pretends to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Profile {
    /// Garage 2.3.
    #[serde(rename = "2.3")]
    V2_3,
    /// Garage 2.5.
    #[default]
    #[serde(rename = "2.5")]
    V2_5,
}

impl Profile {
    /// What nodes report as `garageVersion`.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::V2_3 => "cargo:2.3.0",
            Self::V2_5 => "cargo:2.5.0",
        }
    }

    /// Whether this is the newer of the two.
    #[must_use]
    pub const fn is_2_5(self) -> bool {
        matches!(self, Self::V2_5)
    }

    /// Whether white space around a presented token is ignored.
    #[must_use]
    pub const fn trims_tokens(self) -> bool {
        matches!(self, Self::V2_3)
    }
}
