//! The verdict as JUnit XML: set-up, every cell, every check, and teardown as test cases.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::Verdict;
use super::verdict::{Phase, Problem};
use crate::checks::{Judgement, Severity};
use crate::scenario::{CellReport, Outcome};

/// Renders verdicts as JUnit XML, one after the other. `failure` is a claim or check that does not hold, `error` what
/// could not be told.
pub fn render(verdicts: &[Verdict]) -> Result<String, quick_junit::SerializeError> {
    let mut report = Report::new("onewriter");
    for verdict in verdicts {
        report.add_test_suites(suites(verdict));
    }
    report.to_string()
}

fn suites(verdict: &Verdict) -> [TestSuite; 3] {
    let mut scenarios = TestSuite::new("scenarios");
    for (name, version) in &verdict.versions {
        scenarios.add_property(Property::new(format!("version.{name}"), version));
    }
    scenarios.add_property(Property::new("run", &verdict.run));
    scenarios.add_test_cases(verdict.cells.iter().map(cell_case));
    let mut checks = TestSuite::new("history");
    checks.add_test_cases(verdict.checks.iter().map(check_case));
    [scenarios, checks, run(verdict)]
}

/// Phases of a pair's start, as durations name them.
const START: [&str; 3] = ["prepare", "sites", "operators"];

/// The run itself: its set-up, what else went wrong, and its teardown.
fn run(verdict: &Verdict) -> TestSuite {
    let of = |phase: Phase| verdict.problems.iter().filter(move |problem| problem.phase == phase);
    let mut setup = TestCase::new("setup", status(of(Phase::Setup)));
    let ms = START.iter().filter_map(|phase| verdict.durations_ms.get(*phase)).sum();
    setup.set_classname("run").set_time(Duration::from_millis(ms));
    let mut suite = TestSuite::new("run");
    suite.add_test_case(setup);
    for problem in of(Phase::Run) {
        let mut case = TestCase::new("run", status(std::iter::once(problem)));
        case.set_classname("run");
        suite.add_test_case(case);
    }
    let ends = if of(Phase::Setup).next().is_some() {
        let mut skipped = TestCaseStatus::skipped();
        skipped.set_message("no pair was started");
        skipped
    } else {
        status(of(Phase::Teardown))
    };
    let mut teardown = TestCase::new("teardown", ends);
    teardown.set_classname("run");
    suite.add_test_case(teardown);
    suite
}

fn status<'a>(problems: impl Iterator<Item = &'a Problem>) -> TestCaseStatus {
    let problems: Vec<&Problem> = problems.collect();
    let Some(first) = problems.first() else { return TestCaseStatus::success() };
    let text = problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("\n");
    non_success(NonSuccessKind::Error, &format!("exit-{}", first.exit_code), &text)
}

fn cell_case(cell: &CellReport) -> TestCase {
    let status = match &cell.outcome {
        Outcome::Passed => TestCaseStatus::success(),
        Outcome::Failed(message) => non_success(NonSuccessKind::Failure, "claim", message),
        Outcome::Unknown(message) => non_success(NonSuccessKind::Error, "harness", message),
        Outcome::Skipped(reason) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(clean(reason));
            status
        }
    };
    let mut status = status;
    for failure in &cell.failures {
        let mut rerun = TestRerun::new(NonSuccessKind::Failure);
        rerun.set_type("claim").set_message(clean(failure));
        status.add_rerun(rerun);
    }
    let mut case = TestCase::new(&cell.cell, status);
    let scenario = cell.cell.split('/').next().unwrap_or_default();
    case.set_classname(scenario).set_time(Duration::from_millis(cell.duration_ms + cell.teardown_ms));
    case
}

fn check_case(check: &Judgement) -> TestCase {
    let violated = check.findings.iter().any(|finding| finding.severity == Severity::Violation);
    let text = check.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let status = match (check.holds(), violated) {
        (true, _) => TestCaseStatus::success(),
        (false, true) => non_success(NonSuccessKind::Failure, "violation", &text),
        (false, false) => non_success(NonSuccessKind::Error, "unknown", &text),
    };
    let mut case = TestCase::new(&check.check, status);
    case.set_classname("history");
    case
}

fn non_success(kind: NonSuccessKind, what: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    let first = text.lines().next().unwrap_or_default();
    status.set_type(what).set_message(clean(first)).set_description(clean(text));
    status
}

/// Without the characters that XML 1.0 cannot hold.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Finding;
    use crate::report::Exit;

    #[test]
    fn set_up_and_teardown_are_cases_of_their_own() {
        let count = |xml: &str, name: &str| xml.matches(&format!(r#"testcase name="{name}""#)).count();
        let xml = render(&[Verdict::new("r", vec![], vec![], vec![])]).unwrap();
        assert_eq!((count(&xml, "setup"), count(&xml, "teardown"), xml.matches("<error").count()), (1, 1, 0));
        let failed = Problem::new(Exit::SetupFailed, "no etcd");
        let xml = render(&[Verdict::new("r", vec![], vec![], vec![failed])]).unwrap();
        assert!(xml.contains(r#"<error message="no etcd" type="exit-96">"#), "{xml}");
        assert!(xml.contains("no pair was started"), "{xml}");
        let stuck = Problem::new(Exit::Internal, "taking the pair down").in_teardown();
        let xml = render(&[Verdict::new("r", vec![], vec![], vec![stuck])]).unwrap();
        assert_eq!((count(&xml, "teardown"), xml.matches("<error").count(), count(&xml, "run")), (1, 1, 0));
    }

    #[test]
    fn a_violation_is_a_failure_of_its_check_with_the_witness_inside() {
        let finding = Finding::violation(None, "west wrote\u{1b}[31m", None);
        let check = Judgement {
            check: "follower-never-writes".into(),
            claim: String::new(),
            findings: vec![finding],
            ..Judgement::default()
        };
        let verdict = Verdict::new("r", vec![], vec![check], vec![]);
        let xml = render(&[verdict]).unwrap();
        assert!(xml.contains(r#"<failure message="west wrote[31m" type="violation">"#), "{xml}");
        assert!(xml.contains(r#"classname="history""#), "{xml}");
    }
}
