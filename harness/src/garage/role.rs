//! The part that a site plays in layout changes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The value of `spec.layoutManagement.siteRole` (design record, "API"), absence included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// May change the layout.
    Writer,
    /// Makes no layout write.
    Follower,
    /// The field is not set: writes like a [`Role::Writer`], without a trace of the feature.
    Absent,
}

impl Role {
    /// The field's value; none where the field is not set.
    #[must_use]
    pub fn field(self) -> Option<&'static str> {
        match self {
            Self::Writer => Some("Writer"),
            Self::Follower => Some("Follower"),
            Self::Absent => None,
        }
    }

    /// Whether a site with this role may write the layout.
    #[must_use]
    pub fn may_write(self) -> bool {
        self != Self::Follower
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.field().unwrap_or("Absent"))
    }
}
