//! One run of a scenario with given roles.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::site::PerSite;

/// What a cell is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The stimulus must cause writes: it proves that the detector and the stimulus are alive.
    Control,
    /// The stimulus must cause no write at the site under test.
    Subject,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Control => "control",
            Self::Subject => "subject",
        })
    }
}

/// A scenario with its roles: the unit that is run, reported and selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Name of the scenario.
    pub scenario: &'static str,
    /// What sets the cell apart from its scenario's other cells.
    pub name: &'static str,
    /// Control or subject.
    pub kind: Kind,
    /// The role of each site, as the system under test names it; none where a site takes no part.
    pub roles: PerSite<Option<&'static str>>,
    /// What must follow, in a sentence.
    pub claim: &'static str,
    /// Where the claim comes from: the part of the design record.
    pub record: &'static str,
}

impl Cell {
    /// `scenario/name`: how a cell is named in filters, reports and histories.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.scenario, self.name)
    }
}
