//! All defects together: which check catches which.

use std::collections::{BTreeMap, BTreeSet};

use harness::checks::{Finding, Severity};
use harness::report::{Exit, Verdict};
use serde::Serialize;

use super::recorder::Noticed;
use super::{Mutant, Outcome};

/// A defect and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Name of the defect.
    pub mutant: String,
    /// The defect, in words.
    pub defect: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Every check that was violated in its run, or could not tell where the defect asks for just that.
    pub checks: BTreeSet<String>,
    /// Name of its run.
    pub run: String,
    /// Milliseconds that the run took, its pair included.
    pub duration_ms: u64,
}

impl Row {
    /// The row of `mutant`, whose run ended with `verdict`.
    #[must_use]
    pub fn of(mutant: &Mutant, verdict: &Verdict, duration_ms: u64) -> Self {
        let catches = |check: &str, finding: &Finding| {
            finding.severity == Severity::Violation || mutant.open.iter().any(|open| open == check)
        };
        let catching = verdict.findings().filter(|(check, finding)| catches(check, finding));
        let checks = catching.map(|(check, _)| check.to_owned()).collect();
        Self {
            mutant: mutant.name.clone(),
            defect: mutant.defect.clone(),
            outcome: Outcome::of(mutant, verdict),
            checks,
            run: verdict.run.clone(),
            duration_ms,
        }
    }

    /// The row of `mutant`, of which there was no run.
    #[must_use]
    pub fn unclear(mutant: &Mutant, why: String) -> Self {
        Self {
            mutant: mutant.name.clone(),
            defect: mutant.defect.clone(),
            outcome: Outcome::Unclear { why },
            checks: BTreeSet::new(),
            run: String::new(),
            duration_ms: 0,
        }
    }
}

/// The run without any defect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Control {
    /// Exit code of the run.
    pub exit_code: u8,
    /// Name of the run.
    pub run: String,
    /// Milliseconds that it took.
    pub duration_ms: u64,
}

/// What all runs came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// The runs without any defect, one for each build of the operator.
    pub controls: Vec<Control>,
    /// The defects of the operator.
    pub mutants: Vec<Row>,
    /// The defects of the record.
    pub record: Vec<Noticed>,
    /// Each check with the defects that it caught.
    pub checks: BTreeMap<String, BTreeSet<String>>,
    /// Whether every defect of the table was tried, so that every check must have caught one.
    pub complete: bool,
}

impl Tally {
    /// Counts which of `checks` caught what.
    #[must_use]
    pub fn new(
        controls: Vec<Control>,
        mutants: Vec<Row>,
        record: Vec<Noticed>,
        checks: &[&str],
        complete: bool,
    ) -> Self {
        let mut caught: BTreeMap<String, BTreeSet<String>> =
            checks.iter().map(|check| ((*check).to_owned(), BTreeSet::new())).collect();
        for row in mutants.iter().filter(|row| matches!(row.outcome, Outcome::Caught { .. })) {
            for check in &row.checks {
                caught.entry(check.clone()).or_default().insert(row.mutant.clone());
            }
        }
        for noticed in record.iter().filter(|noticed| noticed.caught == Some(true)) {
            caught.entry(noticed.check.to_owned()).or_default().insert(format!("record: {}", noticed.defect));
        }
        Self { controls, mutants, record, checks: caught, complete }
    }

    /// The checks that caught nothing though every defect was tried.
    pub fn idle(&self) -> impl Iterator<Item = &str> {
        let idle = self.checks.iter().filter(|(_, caught)| self.complete && caught.is_empty());
        idle.map(|(check, _)| check.as_str())
    }

    /// How the program ends: 100 if a defect was not noticed by those who are to notice it, or a check caught nothing; 98
    /// if a run could not tell, or the one without any defect did not pass.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let of_row = |row: &Row| match &row.outcome {
            outcome if outcome.is_good() => Exit::Pass,
            Outcome::Unclear { .. } => Exit::Unknown,
            _ => Exit::ScenarioFailed,
        };
        let missed = |noticed: &Noticed| match noticed.caught {
            Some(false) => Exit::ScenarioFailed,
            _ => Exit::Pass,
        };
        let control = |control: &Control| if control.exit_code == 0 { Exit::Pass } else { Exit::Unknown };
        let rows = self.mutants.iter().map(of_row).chain(self.record.iter().map(missed));
        let idle = self.idle().map(|_| Exit::ScenarioFailed);
        rows.chain(idle).chain(self.controls.iter().map(control)).fold(Exit::Pass, Exit::or)
    }

    /// The table for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        let width = self.mutants.iter().map(|row| row.mutant.len()).max().unwrap_or(0).max("mutant".len());
        text += &format!("  {:width$}  {:>8}  caught by\n", "mutant", "time");
        for control in &self.controls {
            let (mark, word) = if control.exit_code == 0 {
                ("✓", "nothing, as it should".to_owned())
            } else {
                ("✗", format!("exit code {}: see run {}", control.exit_code, control.run))
            };
            text += &line(mark, "(none)", width, control.duration_ms, &word);
        }
        for row in &self.mutants {
            let mark = if row.outcome.is_good() { "✓" } else { "✗" };
            text += &line(mark, &row.mutant, width, row.duration_ms, &in_words(&row.outcome));
        }
        text += "\n  check: defects that it caught\n";
        for (check, caught) in &self.checks {
            let mark = if !caught.is_empty() {
                "✓"
            } else if self.complete {
                "✗"
            } else {
                "-"
            };
            let caught: Vec<&str> = caught.iter().map(String::as_str).collect();
            let caught = if caught.is_empty() { "none".to_owned() } else { caught.join(", ") };
            text += &format!("  {mark} {check}: {caught}\n");
        }
        for noticed in self.record.iter().filter(|noticed| noticed.caught == Some(false)) {
            text += &format!("  ✗ {} did not notice that {}\n", noticed.check, noticed.defect);
        }
        let good = self.mutants.iter().filter(|row| row.outcome.is_good()).count();
        let word = if self.exit() == Exit::Pass { "PASS" } else { "FAIL" };
        text + &format!("\n{word}: {good} of {} defects as they should be\n", self.mutants.len())
    }
}

fn line(mark: &str, name: &str, width: usize, ms: u64, what: &str) -> String {
    let time = format!("{}.{} s", ms / 1000, ms % 1000 / 100);
    format!("{mark} {name:width$}  {time:>8}  {what}\n")
}

fn in_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Caught { by } => by.join("; "),
        Outcome::Harmless => "nothing, as it should".to_owned(),
        Outcome::Survived => "NOBODY".to_owned(),
        Outcome::Otherwise { by } => format!("NOT BY THOSE WHO ARE TO: {}", by.join("; ")),
        Outcome::Unclear { why } => format!("UNCLEAR: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::checks::Judgement;
    use rstest::rstest;

    fn row(outcome: Outcome) -> Row {
        let checks = ["quiescence".to_owned()].into();
        Row { mutant: "m".into(), defect: "d".into(), outcome, checks, run: "r".into(), duration_ms: 1 }
    }

    fn caught() -> Outcome {
        Outcome::Caught { by: vec!["quiescence".to_owned()] }
    }

    fn control(exit_code: u8) -> Vec<Control> {
        vec![Control { exit_code, run: "r".into(), duration_ms: 1 }]
    }

    #[rstest]
    #[case::all_is_well(0, caught(), true, 0)]
    #[case::a_defect_survives(0, Outcome::Survived, false, 100)]
    #[case::a_run_cannot_tell(0, Outcome::Unclear { why: "w".into() }, false, 98)]
    #[case::the_control_does_not_pass(97, caught(), false, 98)]
    #[case::a_check_catches_nothing(0, Outcome::Harmless, true, 100)]
    fn the_program_ends(#[case] with: u8, #[case] of: Outcome, #[case] complete: bool, #[case] code: u8) {
        let tally = Tally::new(control(with), vec![row(of)], vec![], &["quiescence"], complete);
        assert_eq!(tally.exit().code(), code, "{}", tally.in_words());
    }

    #[rstest]
    #[case::violated(Finding::violation(None, "m", None), &[], 1)]
    #[case::cannot_tell(Finding::unknown(None, "m", None), &[], 0)]
    #[case::cannot_tell_as_it_should(Finding::unknown(None, "m", None), &["quiescence"], 1)]
    fn a_check_catches_a_defect(#[case] found: Finding, #[case] open: &[&str], #[case] count: usize) {
        let open = open.iter().map(|check| (*check).to_owned()).collect();
        let mutant = Mutant { open, ..Mutant::default() };
        let judgement =
            Judgement { check: "quiescence".to_owned(), findings: vec![found], ..Judgement::default() };
        let verdict = Verdict::new("r", vec![], vec![judgement], vec![]);
        assert_eq!(Row::of(&mutant, &verdict, 1).checks.len(), count);
    }

    #[test]
    fn a_check_that_is_not_tried_as_a_whole_is_not_idle() {
        let tally = Tally::new(control(0), vec![row(Outcome::Harmless)], vec![], &["quiescence"], false);
        assert_eq!(tally.exit(), Exit::Pass);
    }
}
