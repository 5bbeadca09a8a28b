//! The six layout writes by name.

use std::fmt;

/// A layout write of the admin client (operator contract §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayoutOperation {
    /// Stages roles.
    UpdateClusterLayout,
    /// Stages roles and parameters.
    UpdateClusterLayoutWithParams,
    /// Applies a version.
    ApplyClusterLayout,
    /// Applies what is staged.
    ApplyStagedLayoutChanges,
    /// Drops what is staged.
    RevertClusterLayout,
    /// Stops waiting for dead nodes.
    ClusterLayoutSkipDeadNodes,
}

impl LayoutOperation {
    /// All six.
    pub const ALL: [Self; 6] = [
        Self::UpdateClusterLayout,
        Self::UpdateClusterLayoutWithParams,
        Self::ApplyClusterLayout,
        Self::ApplyStagedLayoutChanges,
        Self::RevertClusterLayout,
        Self::ClusterLayoutSkipDeadNodes,
    ];

    /// Its name, as in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::UpdateClusterLayout => "UpdateClusterLayout",
            Self::UpdateClusterLayoutWithParams => "UpdateClusterLayoutWithParams",
            Self::ApplyClusterLayout => "ApplyClusterLayout",
            Self::ApplyStagedLayoutChanges => "ApplyStagedLayoutChanges",
            Self::RevertClusterLayout => "RevertClusterLayout",
            Self::ClusterLayoutSkipDeadNodes => "ClusterLayoutSkipDeadNodes",
        }
    }

    /// The endpoint it posts to: there are four.
    pub fn endpoint(self) -> &'static str {
        match self {
            Self::UpdateClusterLayout | Self::UpdateClusterLayoutWithParams => "UpdateClusterLayout",
            Self::ApplyClusterLayout | Self::ApplyStagedLayoutChanges => "ApplyClusterLayout",
            Self::RevertClusterLayout => "RevertClusterLayout",
            Self::ClusterLayoutSkipDeadNodes => "ClusterLayoutSkipDeadNodes",
        }
    }
}

impl fmt::Display for LayoutOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
