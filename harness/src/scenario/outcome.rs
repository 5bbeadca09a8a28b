//! How a cell ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Cell, Kind};
use crate::failure::{Account, Failure};
use crate::site::PerSite;

/// How a cell ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "outcome", content = "message")]
pub enum Outcome {
    /// Every claim was reached, and the teardown as well.
    Passed,
    /// A claim was not reached: the system under test fell short.
    Failed(String),
    /// The harness could not tell.
    Unknown(String),
    /// It was not run, for the given reason.
    Skipped(String),
}

impl Outcome {
    /// The outcome that a failure stands for.
    #[must_use]
    pub fn of_failure(failure: &Failure) -> Self {
        let message = failure.chain();
        if failure.is_inconclusive() { Self::Unknown(message) } else { Self::Failed(message) }
    }

    /// Why the cell did not come out well; none if it did, or was not run.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Failed(message) | Self::Unknown(message) => Some(message),
            Self::Passed | Self::Skipped(_) => None,
        }
    }
}

/// A cell and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CellReport {
    /// Path of the cell.
    pub cell: String,
    /// Control or subject.
    pub kind: Kind,
    /// The role of each site.
    pub roles: PerSite<Option<String>>,
    /// What had to follow.
    pub claim: String,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What was expected and what was observed instead, of a cell that did not come out well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// Why it did not pass before, where it was run again. A cell that passed all the same is flaky.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Milliseconds from the opening of its scope to the end of its body.
    pub duration_ms: u64,
    /// Milliseconds that evidence and teardown took after that.
    pub teardown_ms: u64,
}

impl CellReport {
    /// Whether it passed, and not at once.
    #[must_use]
    pub fn is_flaky(&self) -> bool {
        self.outcome == Outcome::Passed && !self.failures.is_empty()
    }

    /// The report of `cell`.
    #[must_use]
    pub fn new(cell: &Cell, outcome: Outcome, duration: Duration, teardown: Duration) -> Self {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            cell: cell.path(),
            kind: cell.kind,
            roles: PerSite::from_fn(|site| cell.roles.at(site).map(str::to_owned)),
            claim: cell.claim(),
            outcome,
            account: None,
            failures: Vec::new(),
            duration_ms: millis(duration),
            teardown_ms: millis(teardown),
        }
    }
}
