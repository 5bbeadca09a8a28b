//! How a run, or one cell of it, is run again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::checks::Severity;
use crate::scenario::{CellReport, Outcome};

/// What a run was started with, beside its selection: enough to start it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    /// Flags that decide what is run and how, in the form that the command line takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Where its random choices came from, if it made any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Invocation {
    /// The arguments of `onewriter` that run exactly `cells` again.
    #[must_use]
    pub fn arguments_for(&self, cells: &[&str]) -> Vec<String> {
        let mut arguments = vec!["run".to_owned()];
        arguments.extend(cells.iter().map(|cell| (*cell).to_owned()));
        arguments.push("--exact".to_owned());
        arguments.extend(self.arguments.iter().cloned());
        arguments.extend(self.seed.iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]));
        arguments
    }
}

/// The command that runs `cell` of the run behind `verdict` again, ready for a shell.
#[must_use]
pub fn command_for(verdict: &Verdict, cell: &str) -> String {
    command(&verdict.invocation.clone().unwrap_or_default().arguments_for(&[cell]))
}

/// An `onewriter` command for a shell.
#[must_use]
pub fn command(arguments: &[String]) -> String {
    let words = arguments.iter().map(|argument| quoted(argument));
    std::iter::once("onewriter".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The cells that did not come out well: those that failed or were left open, and those in which a check found
/// something. In the order of the matrix, then those that only findings name.
#[must_use]
pub fn affected_cells(verdict: &Verdict) -> Vec<&str> {
    let found: BTreeSet<&str> = verdict.findings().filter_map(|(_, found)| found.cell.as_deref()).collect();
    let bad =
        |report: &&CellReport| report.outcome.message().is_some() || found.contains(report.cell.as_str());
    let mut cells: Vec<&str> = verdict.cells.iter().filter(bad).map(|report| report.cell.as_str()).collect();
    let listed: BTreeSet<&str> = cells.iter().copied().collect();
    cells.extend(found.difference(&listed));
    cells
}

/// What made a run fail, in a form in which two runs can be compared: `check:cell` for each violated check, and
/// `cell` for each failed cell.
#[must_use]
pub fn symptoms(verdict: &Verdict) -> Vec<String> {
    let violations = verdict.findings().filter(|(_, finding)| finding.severity == Severity::Violation);
    let violations = violations
        .map(|(check, finding)| format!("{check} in {}", finding.cell.as_deref().unwrap_or("the run")));
    let failed = verdict.cells.iter().filter(|cell| matches!(cell.outcome, Outcome::Failed(_)));
    let mut all: Vec<String> =
        violations.chain(failed.map(|cell| format!("claim of {}", cell.cell))).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{Finding, Judgement};
    use rstest::rstest;

    #[rstest]
    #[case("federation/east-writes", "federation/east-writes")]
    #[case("/path with/space", "'/path with/space'")]
    #[case("it's", r"'it'\''s'")]
    #[case("$(reboot)", "'$(reboot)'")]
    #[case("", "''")]
    fn a_word_survives_the_shell(#[case] word: &str, #[case] shown: &str) {
        assert_eq!(quoted(word), shown);
    }

    #[test]
    fn the_command_names_the_cell_the_flags_and_the_seed() {
        let arguments = vec!["--operator-bin".to_owned(), "/bin/op".to_owned()];
        let mut verdict = Verdict::new("r", vec![], vec![], vec![]);
        assert_eq!(command_for(&verdict, "a/b"), "onewriter run a/b --exact");
        verdict.invocation = Some(Invocation { arguments, seed: Some(7) });
        assert_eq!(command_for(&verdict, "a/b"), "onewriter run a/b --exact --operator-bin /bin/op --seed 7");
    }

    #[test]
    fn the_same_violation_twice_is_one_symptom() {
        let finding = |message| Finding::violation(Some("a/b"), message, None);
        let findings = vec![finding("one"), finding("two"), Finding::unknown(None, "open", None)];
        let check = Judgement { check: "c".into(), findings, ..Judgement::default() };
        assert_eq!(symptoms(&Verdict::new("r", vec![], vec![check], vec![])), ["c in a/b"]);
    }
}
