//! Judging a recorded history.
//!
//! A [`Check`] is a pure function over a whole history, so the same checks judge a run as it ends and a file of last
//! year's. This module knows nothing of any system under test; the checks themselves live with their system.

pub mod finding;
pub mod witness;

pub use finding::{Finding, Severity};
pub use witness::Witness;

use onewriter_history::History;
use serde::{Deserialize, Serialize};

/// A property that every history of a system must have.
pub trait Check: Send + Sync {
    /// Short name, as in verdicts: `follower-never-writes`.
    fn name(&self) -> &'static str;

    /// The property in a sentence.
    fn claim(&self) -> &'static str;

    /// Everything in `history` that contradicts the property, or keeps it from being judged.
    fn judge(&self, history: &History) -> Vec<Finding>;
}

/// What one check said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// Name of the check.
    pub check: String,
    /// The property it stands for.
    pub claim: String,
    /// What it found; empty when the property holds.
    pub findings: Vec<Finding>,
}

impl Judgement {
    /// Whether the property holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Lets every check judge `history`.
#[must_use]
pub fn judge(checks: &[Box<dyn Check>], history: &History) -> Vec<Judgement> {
    checks.iter().map(|check| judge_one(check.as_ref(), history)).collect()
}

fn judge_one(check: &dyn Check, history: &History) -> Judgement {
    Judgement {
        check: check.name().to_owned(),
        claim: check.claim().to_owned(),
        findings: check.judge(history),
    }
}
