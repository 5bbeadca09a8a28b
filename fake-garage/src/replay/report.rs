//! What replays found.

use std::fmt;

use serde::Serialize;

use super::compare::Difference;

/// What the replay of one file found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FileReport {
    /// Name of the session.
    pub name: String,
    /// Exchanges that were compared and are as expected.
    #[serde(rename = "matched")]
    pub compared: usize,
    /// Exchanges that were not compared.
    pub skipped: usize,
    /// Exchanges that are not as expected.
    pub mismatches: Vec<Mismatch>,
}

/// An exchange that is not as expected.
#[derive(Debug, Clone, Serialize)]
pub struct Mismatch {
    /// Number of the step, from 0.
    pub step: usize,
    /// When it was, in milliseconds since the session began.
    pub at_ms: u64,
    /// What was asked.
    pub request: String,
    /// What is not as expected.
    pub differences: Vec<Difference>,
    /// How the nodes stood.
    pub state: Vec<String>,
}

/// Sums over files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// Exchanges that were compared.
    pub compared: usize,
    /// Those of them that are not as expected.
    pub mismatched: usize,
    /// Exchanges that were not compared.
    pub skipped: usize,
}

impl FileReport {
    /// An empty report of the session `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Its figures.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mismatched = self.mismatches.len();
        Totals { compared: self.compared + mismatched, mismatched, skipped: self.skipped }
    }
}

impl std::iter::Sum for Totals {
    fn sum<I: Iterator<Item = Self>>(totals: I) -> Self {
        totals.fold(Self::default(), |sum, next| Self {
            compared: sum.compared + next.compared,
            mismatched: sum.mismatched + next.mismatched,
            skipped: sum.skipped + next.skipped,
        })
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} compared, {} mismatched, {} skipped", self.compared, self.mismatched, self.skipped)
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mismatch in &self.mismatches {
            writeln!(
                f,
                "{}, step {}, at {} ms: {}",
                self.name, mismatch.step, mismatch.at_ms, mismatch.request
            )?;
            for difference in &mismatch.differences {
                writeln!(f, "    {}", difference.path)?;
                writeln!(f, "      expected {}", difference.expected)?;
                writeln!(f, "      answered {}", difference.answered)?;
            }
            for line in &mismatch.state {
                writeln!(f, "    {line}")?;
            }
        }
        write!(f, "{}: {}", self.name, self.totals())
    }
}
