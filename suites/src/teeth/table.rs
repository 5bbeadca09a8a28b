//! The defects, and who must notice each.

use serde::{Deserialize, Serialize};

/// The feature with which an operator has every defect that can be chosen at its start.
pub const MUTANTS: &str = "mutants";

/// A deliberate defect of the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mutant {
    /// How the operator is told to have it.
    pub name: String,
    /// The defect, in words.
    pub defect: String,
    /// Beginnings of the paths of the cells in which it must be noticed.
    pub cells: Vec<String>,
    /// Checks, any of which must be violated.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Checks, any of which must be unable to tell.
    #[serde(default)]
    pub open: Vec<String>,
    /// Claims, any of which must not be reached.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Whether it must change nothing.
    #[serde(default)]
    pub harmless: bool,
    /// The exit code that a run with it ends with.
    #[serde(default)]
    pub exit: Option<u8>,
    /// The Cargo feature that has it.
    #[serde(default = "mutants")]
    pub feature: String,
}

/// A claim of a cell that must not be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Beginning of the cell's path.
    pub cell: String,
    /// Part of what is expected there.
    pub says: String,
}

fn mutants() -> String {
    MUTANTS.to_owned()
}

impl Mutant {
    /// The arguments with which an operator that has its feature gets this defect.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        if self.feature == MUTANTS { vec![format!("--mutant={}", self.name)] } else { Vec::new() }
    }

    /// What is wrong with the entry itself.
    fn problem(&self, checks: &[&str]) -> Option<String> {
        let unknown = self.checks.iter().chain(&self.open).find(|check| !checks.contains(&check.as_str()));
        let named = self.checks.len() + self.open.len() + self.claims.len();
        let name = &self.name;
        if let Some(check) = unknown {
            return Some(format!("{name}: there is no check `{check}`"));
        }
        if self.cells.is_empty() {
            return Some(format!("{name}: it is run in no cell"));
        }
        if self.claims.iter().any(|claim| claim.says.is_empty()) {
            return Some(format!("{name}: a claim says nothing"));
        }
        match (self.harmless, named) {
            (true, 1..) => Some(format!("{name}: it is harmless, and somebody is to notice it")),
            (false, 0) => Some(format!("{name}: nobody is to notice it")),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    mutant: Vec<Mutant>,
}

/// The table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// It cannot be read.
    #[error("teeth.toml cannot be read")]
    Unreadable(#[from] Box<toml::de::Error>),
    /// An entry means nothing.
    #[error("teeth.toml: {0}")]
    Meaningless(String),
}

/// The table that this program was built with. `checks` are the names of all checks.
pub fn mutants_of(checks: &[&str]) -> Result<Vec<Mutant>, TableError> {
    parse(include_str!("../../teeth.toml"), checks)
}

fn parse(text: &str, checks: &[&str]) -> Result<Vec<Mutant>, TableError> {
    let File { mutant: mutants } = toml::from_str(text).map_err(Box::new)?;
    let twice = |mutant: &&Mutant| mutants.iter().filter(|other| other.name == mutant.name).count() > 1;
    if let Some(mutant) = mutants.iter().find(twice) {
        return Err(TableError::Meaningless(format!("{}: it is there twice", mutant.name)));
    }
    match mutants.iter().find_map(|mutant| mutant.problem(checks)) {
        Some(problem) => Err(TableError::Meaningless(problem)),
        None => Ok(mutants),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::scenario::system::plan;
    use rstest::rstest;

    fn checks() -> Vec<&'static str> {
        harness::garage::checks::of_run().iter().map(|check| check.name()).collect()
    }

    #[test]
    fn the_table_names_checks_and_cells_that_exist() {
        let cells: Vec<String> =
            plan(crate::scenarios::matrix()).iter().map(|(_, cell)| cell.path()).collect();
        for mutant in mutants_of(&checks()).unwrap() {
            for cell in mutant.cells.iter().chain(mutant.claims.iter().map(|claim| &claim.cell)) {
                assert!(cells.iter().any(|path| path.starts_with(cell)), "{}: no cell {cell}", mutant.name);
            }
        }
    }

    fn entry(more: &str) -> String {
        format!("[[mutant]]\nname = \"m\"\ndefect = \"d\"\n{more}")
    }

    #[rstest]
    #[case::a_check_that_is_not_there(
        "cells = [\"a\"]\nchecks = [\"no-such-check\"]",
        "no check `no-such-check`"
    )]
    #[case::nowhere_to_run("cells = []\nchecks = [\"quiescence\"]", "in no cell")]
    #[case::nobody_to_notice("cells = [\"a\"]", "nobody is to notice")]
    #[case::harmless_and_noticed(
        "cells = [\"a\"]\nharmless = true\nchecks = [\"quiescence\"]",
        "is harmless"
    )]
    #[case::a_typing_error("cells = [\"a\"]\nchekcs = []", "cannot be read")]
    fn an_entry_that_means_nothing_is_refused(#[case] more: &str, #[case] says: &str) {
        let error = parse(&entry(more), &checks()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn a_mutant_is_chosen_at_the_start_of_the_operator() {
        let mutants = parse(&entry("cells = [\"a\"]\nharmless = true"), &checks()).unwrap();
        assert_eq!(mutants[0].arguments(), ["--mutant=m"]);
    }
}
