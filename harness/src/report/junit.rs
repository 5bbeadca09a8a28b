//! The verdict as JUnit XML: cells, their teardown, and every check as test cases.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::Verdict;
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
    let mut run = TestSuite::new("run");
    run.add_test_cases(verdict.problems.iter().map(|problem| {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type(format!("exit-{}", problem.exit_code)).set_message(clean(&problem.message));
        TestCase::new("run", status)
    }));
    [scenarios, checks, run]
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
