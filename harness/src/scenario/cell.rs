//! One run of a scenario with given roles.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::checks::Severity;
use crate::checks::expected::ExpectedFinding;
use crate::site::{PerSite, Site};

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

/// How far the disturbance of a cell reaches. Beyond its own namespaces a cell has the pair to itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disturbs {
    /// Nothing but its own namespaces and its own mesh.
    #[default]
    Namespaces,
    /// An operator.
    Operator,
    /// A whole site: its API server, its operator.
    Site,
    /// What all namespaces of a cluster share: definitions, webhooks.
    Cluster,
}

impl Disturbs {
    /// Whether the cell must be alone on its pair.
    #[must_use]
    pub fn is_alone(self) -> bool {
        self != Self::Namespaces
    }
}

impl fmt::Display for Disturbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Namespaces => "namespaces",
            Self::Operator => "operator",
            Self::Site => "site",
            Self::Cluster => "cluster",
        })
    }
}

/// Something that a cell proves, and the statements that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// What must follow, in a sentence.
    pub text: &'static str,
    /// Ids of the statements of the record of the system under test.
    pub record: &'static [&'static str],
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
    /// What must follow.
    pub claims: Vec<Claim>,
    /// What it disturbs.
    pub disturbs: Disturbs,
    /// Whether it needs the operator's webhooks.
    pub webhooks: bool,
    /// The findings that it must produce, because its stimulus breaks a property on purpose.
    pub expects: Vec<ExpectedFinding>,
}

impl Cell {
    /// A cell whose stimulus must cause writes.
    #[must_use]
    pub fn control(scenario: &'static str, name: &'static str) -> Self {
        Self::new(scenario, name, Kind::Control)
    }

    /// A cell whose stimulus must cause no write at the site under test.
    #[must_use]
    pub fn subject(scenario: &'static str, name: &'static str) -> Self {
        Self::new(scenario, name, Kind::Subject)
    }

    fn new(scenario: &'static str, name: &'static str, kind: Kind) -> Self {
        let roles = PerSite { east: None, west: None };
        let (claims, expects) = (Vec::new(), Vec::new());
        Self { scenario, name, kind, roles, claims, disturbs: Disturbs::default(), webhooks: false, expects }
    }

    /// Gives `site` a role.
    #[must_use]
    pub fn with(mut self, site: Site, role: &'static str) -> Self {
        *self.roles.at_mut(site) = Some(role);
        self
    }

    /// Adds a claim that comes from the statements `record`.
    #[must_use]
    pub fn claims(mut self, text: &'static str, record: &'static [&'static str]) -> Self {
        self.claims.push(Claim { text, record });
        self
    }

    /// Says how far its disturbance reaches.
    #[must_use]
    pub fn disturbs(mut self, disturbs: Disturbs) -> Self {
        self.disturbs = disturbs;
        self
    }

    /// Says that it needs the operator's webhooks.
    #[must_use]
    pub fn needs_webhooks(mut self) -> Self {
        self.webhooks = true;
        self
    }

    /// Declares a violation of `check` that it must produce.
    #[must_use]
    pub fn expects(mut self, check: &str) -> Self {
        let finding = ExpectedFinding { check: check.to_owned(), severity: Severity::Violation };
        self.expects.push(finding);
        self
    }

    /// Declares that `check` must be unable to tell.
    #[must_use]
    pub fn leaves_open(mut self, check: &str) -> Self {
        let finding = ExpectedFinding { check: check.to_owned(), severity: Severity::Unknown };
        self.expects.push(finding);
        self
    }

    /// `scenario/name`: how a cell is named in filters, reports and histories.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.scenario, self.name)
    }

    /// All claims in one line.
    #[must_use]
    pub fn claim(&self) -> String {
        self.claims.iter().map(|claim| claim.text).collect::<Vec<_>>().join("; ")
    }
}
