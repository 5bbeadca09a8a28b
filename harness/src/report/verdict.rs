//! The verdict of a run: `verdict.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Exit, Invocation};
use crate::checks::{Finding, Judgement, Severity};
use crate::scenario::{CellReport, Outcome};

/// Schema name of `verdict.json`.
pub const SCHEMA: &str = "onewriter.verdict/1";

/// What a run as a whole came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    /// Every cell reached its claims, and no check found anything.
    Pass,
    /// A check is violated.
    Violation,
    /// A scenario's own claim was not reached.
    Fail,
    /// The harness could not tell.
    Unknown,
}

/// The verdict of a run, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Always [`SCHEMA`] in files that this program writes.
    pub schema: String,
    /// Name of the run.
    pub run: String,
    /// What it came to.
    pub verdict: VerdictKind,
    /// Exit code of the program.
    pub exit_code: u8,
    /// What kept the run from being set up or from being recorded, if anything did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// The cells, in the order of the matrix.
    pub cells: Vec<CellReport>,
    /// The checks, each over the whole history.
    pub checks: Vec<Judgement>,
    /// What the history shows was exercised.
    pub coverage: BTreeMap<String, u64>,
    /// What the run needed: `memoryBytes` at its end.
    #[serde(default)]
    pub figures: BTreeMap<String, u64>,
    /// Milliseconds by phase.
    pub durations_ms: BTreeMap<String, u64>,
    /// Versions of what took part.
    pub versions: BTreeMap<String, String>,
    /// What the run was started with, if it was the program that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Invocation>,
}

/// The part of a run to which a problem belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Bringing up the pair.
    Setup,
    /// The cells, and judging their history.
    #[default]
    Run,
    /// Taking the pair down.
    Teardown,
}

/// Something beside the cells and checks that decided the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Exit code that it stands for.
    pub exit_code: u8,
    /// What happened, in words.
    pub message: String,
    /// When.
    #[serde(default)]
    pub phase: Phase,
    #[serde(skip, default = "Problem::internal")]
    exit: Exit,
}

impl Problem {
    /// A problem that stands for `exit`.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        let phase = if exit == Exit::SetupFailed { Phase::Setup } else { Phase::Run };
        Self { exit_code: exit.code(), message: message.into(), phase, exit }
    }

    /// The same, while the pair was taken down.
    #[must_use]
    pub fn in_teardown(self) -> Self {
        Self { phase: Phase::Teardown, ..self }
    }

    fn internal() -> Exit {
        Exit::Internal
    }
}

impl Verdict {
    /// The verdict on `cells`, `checks` and `problems`.
    #[must_use]
    pub fn new(run: &str, cells: Vec<CellReport>, checks: Vec<Judgement>, problems: Vec<Problem>) -> Self {
        let exit = exit(&cells, &checks, &problems);
        Self {
            schema: SCHEMA.to_owned(),
            run: run.to_owned(),
            verdict: kind(exit),
            exit_code: exit.code(),
            problems,
            cells,
            checks,
            coverage: BTreeMap::new(),
            figures: BTreeMap::new(),
            durations_ms: BTreeMap::new(),
            versions: BTreeMap::new(),
            invocation: None,
        }
    }

    /// Adds a problem, and lets it weigh in.
    pub fn add_problem(&mut self, problem: Problem) {
        self.problems.push(problem);
        let exit = self.exit();
        self.verdict = kind(exit);
        self.exit_code = exit.code();
    }

    /// How the program ends with this verdict.
    #[must_use]
    pub fn exit(&self) -> Exit {
        exit(&self.cells, &self.checks, &self.problems)
    }

    /// Every finding of every check, with the check's name.
    pub fn findings(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.checks.iter().flat_map(|check| check.findings.iter().map(|found| (check.check.as_str(), found)))
    }
}

fn exit(cells: &[CellReport], checks: &[Judgement], problems: &[Problem]) -> Exit {
    let of_cell = |cell: &CellReport| match cell.outcome {
        Outcome::Passed | Outcome::Skipped(_) => Exit::Pass,
        Outcome::Failed(_) => Exit::ScenarioFailed,
        Outcome::Unknown(_) => Exit::Unknown,
    };
    let of_finding = |finding: &Finding| match finding.severity {
        Severity::Violation => Exit::Violated,
        Severity::Unknown => Exit::Unknown,
    };
    let findings = checks.iter().flat_map(|check| &check.findings).map(of_finding);
    let problems = problems.iter().map(|problem| problem.exit);
    cells.iter().map(of_cell).chain(findings).chain(problems).fold(Exit::Pass, Exit::or)
}

fn kind(exit: Exit) -> VerdictKind {
    match exit {
        Exit::Pass => VerdictKind::Pass,
        Exit::Violated => VerdictKind::Violation,
        Exit::ScenarioFailed => VerdictKind::Fail,
        _ => VerdictKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Kind;
    use crate::site::PerSite;
    use rstest::rstest;

    fn cell(outcome: Outcome) -> CellReport {
        CellReport {
            cell: "a/b".into(),
            kind: Kind::Subject,
            roles: PerSite::default(),
            claim: String::new(),
            outcome,
            account: None,
            failures: Vec::new(),
            duration_ms: 1,
            teardown_ms: 1,
        }
    }

    fn found(severity: Severity) -> Judgement {
        let finding = Finding { severity, cell: None, message: "m".into(), witness: None };
        Judgement { check: "c".into(), claim: String::new(), findings: vec![finding], ..Judgement::default() }
    }

    #[rstest]
    #[case::all_well(Outcome::Passed, None, VerdictKind::Pass, 0)]
    #[case::a_failed_cell(Outcome::Failed("x".into()), None, VerdictKind::Fail, 100)]
    #[case::a_violation_beats_it(Outcome::Failed("x".into()), Some(Severity::Violation), VerdictKind::Violation, 97)]
    #[case::an_open_check_is_no_pass(Outcome::Passed, Some(Severity::Unknown), VerdictKind::Unknown, 98)]
    #[case::an_open_cell_is_no_pass(Outcome::Unknown("x".into()), None, VerdictKind::Unknown, 98)]
    fn the_verdict_of(
        #[case] outcome: Outcome,
        #[case] severity: Option<Severity>,
        #[case] kind: VerdictKind,
        #[case] code: u8,
    ) {
        let checks = severity.map(found).into_iter().collect();
        let verdict = Verdict::new("r", vec![cell(outcome)], checks, vec![]);
        assert_eq!((verdict.verdict, verdict.exit_code), (kind, code));
    }

    #[test]
    fn a_failed_setup_is_told_by_its_own_code() {
        let verdict = Verdict::new("r", vec![], vec![], vec![Problem::new(Exit::SetupFailed, "no etcd")]);
        assert_eq!((verdict.verdict, verdict.exit_code), (VerdictKind::Unknown, 96));
    }
}
