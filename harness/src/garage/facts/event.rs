//! What an operator tells in an Event object.

use onewriter_history::Audit;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An Event object after a write, in either of its two API groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventFact {
    /// Site of the API server.
    pub site: String,
    /// Who wrote.
    pub by: String,
    /// What it is about: `Kind/name`.
    pub regarding: String,
    /// Its reason.
    pub reason: String,
}

impl EventFact {
    /// None where the answer tells nothing of the object.
    pub(super) fn of(audit: &Audit, object: &Value) -> Option<Self> {
        let about =
            [&object["involvedObject"], &object["regarding"]].into_iter().find(|about| about.is_object())?;
        let regarding = format!("{}/{}", about["kind"].as_str()?, about["name"].as_str()?);
        let reason = object["reason"].as_str()?.to_owned();
        Some(Self { site: audit.site.clone(), by: audit.user.clone(), regarding, reason })
    }
}
