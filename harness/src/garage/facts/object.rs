//! Any other object after a write.

use onewriter_history::Audit;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Written;

/// An object of a cell's namespace after a write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectFact {
    /// The write. Read apart from the rest: reading flattened fields would copy all of them first.
    #[serde(flatten, skip_deserializing)]
    pub written: Written,
    /// `group/resource`; core resources have no group.
    pub resource: String,
}

impl ObjectFact {
    /// None where the answer tells nothing of the object: for Secrets and tokens only metadata is recorded.
    pub(super) fn of(audit: &Audit, resource: &str, object: &Value) -> Option<Self> {
        let written = Written::of(audit, object);
        (written.gone || !written.resource_version.is_empty())
            .then(|| Self { written, resource: resource.to_owned() })
    }
}
