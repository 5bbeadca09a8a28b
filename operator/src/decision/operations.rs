//! One-shot operations that annotations ask for (operator contract §4.4).

use std::collections::BTreeMap;

use crate::api::naming::{
    ACKNOWLEDGE_FOREIGN_WRITER, ALLOW_MISSING_DATA, PURGE_CLUSTER_LAYOUT, PURGE_CLUSTER_LAYOUT_ABORT,
    REVERT_LAYOUT, SKIP_DEAD_NODES,
};
use crate::guard::LayoutOperation;

/// An operation with the annotations that ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// Drop what is staged.
    Revert {
        /// The value of the annotation; only `true` asks for it.
        value: String,
    },
    /// Stop waiting for dead nodes.
    SkipDeadNodes {
        /// Pass `allowMissingData` along.
        allow_missing_data: bool,
    },
    /// Migrate the replication factor.
    PurgeClusterLayout {
        /// The value of the annotation.
        value: String,
    },
    /// Stop a factor migration.
    AbortPurge,
    /// The evidence of a second writer was seen.
    AcknowledgeForeignWriter,
}

impl Requested {
    /// Its name in `status.lastOperation`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Revert { .. } => "RevertLayout",
            Self::SkipDeadNodes { .. } => "SkipDeadNodes",
            Self::PurgeClusterLayout { .. } => "PurgeClusterLayout",
            Self::AcknowledgeForeignWriter => "AcknowledgeForeignLayoutWriter",
            Self::AbortPurge => "AbortPurgeClusterLayout",
        }
    }

    /// The first layout write that it needs; an end of a migration needs none.
    pub fn write(&self) -> Option<LayoutOperation> {
        match self {
            Self::Revert { .. } => Some(LayoutOperation::RevertClusterLayout),
            Self::SkipDeadNodes { .. } => Some(LayoutOperation::ClusterLayoutSkipDeadNodes),
            Self::PurgeClusterLayout { .. } => Some(LayoutOperation::UpdateClusterLayout),
            Self::AbortPurge | Self::AcknowledgeForeignWriter => None,
        }
    }

    /// The annotations that go once it is done or refused.
    pub fn annotations(&self) -> &'static [&'static str] {
        match self {
            Self::Revert { .. } => &[REVERT_LAYOUT],
            Self::SkipDeadNodes { .. } => &[SKIP_DEAD_NODES, ALLOW_MISSING_DATA],
            Self::PurgeClusterLayout { .. } => &[PURGE_CLUSTER_LAYOUT],
            Self::AcknowledgeForeignWriter => &[ACKNOWLEDGE_FOREIGN_WRITER],
            Self::AbortPurge => &[PURGE_CLUSTER_LAYOUT_ABORT],
        }
    }
}

/// What these annotations ask for, in the order in which it is done.
pub fn requested(annotations: &BTreeMap<String, String>) -> Vec<Requested> {
    let skip = annotations.contains_key(SKIP_DEAD_NODES).then(|| Requested::SkipDeadNodes {
        allow_missing_data: annotations.get(ALLOW_MISSING_DATA).is_some_and(|value| value == "true"),
    });
    let purge = annotations.get(PURGE_CLUSTER_LAYOUT);
    let abort = annotations.contains_key(PURGE_CLUSTER_LAYOUT_ABORT).then_some(Requested::AbortPurge);
    let revert = annotations.get(REVERT_LAYOUT);
    let seen = annotations.contains_key(ACKNOWLEDGE_FOREIGN_WRITER);
    [
        seen.then_some(Requested::AcknowledgeForeignWriter),
        skip,
        abort,
        purge.map(|value| Requested::PurgeClusterLayout { value: value.clone() }),
        revert.map(|value| Requested::Revert { value: value.clone() }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::{Requested, requested};
    use rstest::rstest;
    use std::collections::BTreeMap;

    #[rstest]
    #[case(&[], &[])]
    #[case(&[("revert-layout", "true")], &[Requested::Revert { value: "true".into() }])]
    #[case(&[("skip-dead-nodes", "")], &[Requested::SkipDeadNodes { allow_missing_data: false }])]
    #[case(
        &[("skip-dead-nodes", "x"), ("allow-missing-data", "true")],
        &[Requested::SkipDeadNodes { allow_missing_data: true }]
    )]
    #[case(&[("allow-missing-data", "true")], &[])]
    #[case(
        &[("purge-cluster-layout", "factor=2")],
        &[Requested::PurgeClusterLayout { value: "factor=2".into() }]
    )]
    #[case(&[("purge-cluster-layout-abort", "")], &[Requested::AbortPurge])]
    #[case(&[("acknowledge-foreign-layout-writer", "")], &[Requested::AcknowledgeForeignWriter])]
    fn annotations_ask_for_operations(#[case] annotations: &[(&str, &str)], #[case] expected: &[Requested]) {
        let annotations: BTreeMap<String, String> = annotations
            .iter()
            .map(|(key, value)| (format!("garage.rajsingh.info/{key}"), (*value).to_owned()))
            .collect();
        assert_eq!(requested(&annotations), expected);
    }
}
