//! What a check finds.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Witness;

/// How a finding counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The system under test broke the property.
    Violation,
    /// The history does not allow to tell.
    Unknown,
}

/// Something in a history that contradicts a property, or keeps it from being judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How it counts.
    pub severity: Severity,
    /// The cell in which it happened, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// The smallest part of the history that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
}

impl Finding {
    /// The property is broken, as `witness` shows.
    pub fn violation(cell: Option<&str>, message: impl Into<String>, witness: Option<Witness>) -> Self {
        Self {
            severity: Severity::Violation,
            cell: cell.map(str::to_owned),
            message: message.into(),
            witness,
        }
    }

    /// The property cannot be judged.
    pub fn unknown(cell: Option<&str>, message: impl Into<String>, witness: Option<Witness>) -> Self {
        Self { severity: Severity::Unknown, cell: cell.map(str::to_owned), message: message.into(), witness }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cell) = &self.cell {
            write!(f, "[{cell}] ")?;
        }
        f.write_str(&self.message)?;
        if let Some(witness) = &self.witness {
            write!(f, "\n{witness}")?;
        }
        Ok(())
    }
}
