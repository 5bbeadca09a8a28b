//! Findings that a cell must produce.
//!
//! A cell whose stimulus breaks a property on purpose (two sites declared Writer, an apply that is answered and then
//! dropped) declares so with a state event of subject [`EXPECTED`]. Exactly what it declares is then required: a
//! declared finding that is missing, and any that was not declared, counts against the run. Of a cell that did not go
//! its whole way (a claim failed, the run was interrupted) nobody knows whether the finding would have come.

use std::collections::BTreeSet;

use onewriter_history::{State, Step};
use serde::{Deserialize, Serialize};

use super::{Finding, Judgement, Severity};

/// Subject of the state event by which a cell declares findings; its value is a list of [`ExpectedFinding`].
pub const EXPECTED: &str = "expected-findings";

/// A finding that a cell must produce at least once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectedFinding {
    /// Name of the check.
    pub check: String,
    /// How the finding counts; a violation if nothing is said.
    #[serde(default = "violation")]
    pub severity: Severity,
}

impl ExpectedFinding {
    /// A violation of `check`.
    #[must_use]
    pub fn violation_of(check: &str) -> Self {
        Self { check: check.to_owned(), severity: Severity::Violation }
    }
}

fn violation() -> Severity {
    Severity::Violation
}

/// What the cells of a history declared.
#[derive(Debug, Default)]
pub(super) struct Expected {
    declared: BTreeSet<(String, ExpectedFinding)>,
    /// Cells that went their whole way.
    whole: BTreeSet<String>,
    unreadable: Vec<Finding>,
}

impl Expected {
    pub(super) fn take(&mut self, state: &State, seq: u64) {
        if state.subject != EXPECTED {
            return;
        }
        let declared = Vec::<ExpectedFinding>::deserialize(&state.value);
        let (Some(cell), Ok(declared)) = (&state.cell, declared) else {
            let message = format!("the expected findings at #{seq} cannot be read, or name no cell");
            self.unreadable.push(Finding::unknown(state.cell.as_deref(), message, None));
            return;
        };
        self.declared.extend(declared.into_iter().map(|finding| (cell.clone(), finding)));
    }

    /// The cell of `step` went its whole way.
    pub(super) fn went_through(&mut self, step: &Step) {
        self.whole.extend(step.cell.clone());
    }

    /// Sets declared findings apart, and adds a judgement on what was declared and did not come.
    pub(super) fn weigh(self, mut judgements: Vec<Judgement>) -> Vec<Judgement> {
        let mut missing = self.declared.clone();
        for judgement in &mut judgements {
            let declares = |finding: &Finding| {
                let expected = ExpectedFinding { check: judgement.check.clone(), severity: finding.severity };
                finding
                    .cell
                    .as_ref()
                    .map(|cell| (cell.clone(), expected))
                    .filter(|key| self.declared.contains(key))
            };
            let keys: Vec<_> = judgement.findings.iter().map(declares).collect();
            for (finding, key) in std::mem::take(&mut judgement.findings).into_iter().zip(keys) {
                match key {
                    Some(key) => {
                        missing.remove(&key);
                        judgement.expected.push(finding);
                    }
                    None => judgement.findings.push(finding),
                }
            }
        }
        let known: BTreeSet<&str> = judgements.iter().map(|judgement| judgement.check.as_str()).collect();
        let missing =
            missing.iter().map(|(cell, finding)| absent(cell, finding, &known, self.whole.contains(cell)));
        let findings = self.unreadable.iter().cloned().chain(missing).collect();
        judgements.push(Judgement {
            check: EXPECTED.to_owned(),
            claim: "every cell produced the findings that it declared".to_owned(),
            findings,
            ..Judgement::default()
        });
        judgements
    }
}

fn absent(cell: &str, finding: &ExpectedFinding, known: &BTreeSet<&str>, whole: bool) -> Finding {
    let ExpectedFinding { check, severity } = finding;
    if !known.contains(check.as_str()) {
        let message = format!("the cell declared a finding of `{check}`, and there is no such check");
        return Finding::violation(Some(cell), message, None);
    }
    let kind = match severity {
        Severity::Violation => "a violation",
        Severity::Unknown => "an open finding",
    };
    if whole {
        let message = format!("the cell declared {kind} of `{check}`, and there was none");
        Finding::violation(Some(cell), message, None)
    } else {
        let message =
            format!("the cell declared {kind} of `{check}`, and was cut short before there was one");
        Finding::unknown(Some(cell), message, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn judged(declared: &Value, findings: Vec<Finding>) -> Vec<Judgement> {
        let mut expected = Expected::default();
        expected.went_through(&Step {
            cell: Some("two".into()),
            mesh: None,
            title: String::new(),
            detail: None,
        });
        weighed(expected, declared, findings)
    }

    fn weighed(mut expected: Expected, declared: &Value, findings: Vec<Finding>) -> Vec<Judgement> {
        let subject = EXPECTED.to_owned();
        expected.take(&State { cell: Some("two".into()), mesh: None, subject, value: declared.clone() }, 7);
        let judgement = Judgement { check: "one-writer".into(), findings, ..Judgement::default() };
        expected.weigh(vec![judgement])
    }

    fn two_writers(cell: &str) -> Finding {
        Finding::violation(Some(cell), "two sites wrote", None)
    }

    #[test]
    fn a_declared_finding_is_no_failure() {
        let judgements =
            judged(&json!([{"check": "one-writer"}]), vec![two_writers("two"), two_writers("two")]);
        assert!(judgements.iter().all(Judgement::holds), "{judgements:?}");
        assert_eq!(judgements[0].expected.len(), 2);
    }

    #[test]
    fn a_declared_finding_that_does_not_come_is_one() {
        let judgements = judged(&json!([{"check": "one-writer"}]), vec![]);
        assert_eq!(judgements[1].check, EXPECTED);
        assert_eq!(judgements[1].findings[0].severity, Severity::Violation);
        assert!(judgements[1].findings[0].message.contains("there was none"));
    }

    #[test]
    fn of_a_cell_that_was_cut_short_it_cannot_be_told() {
        let judgements = weighed(Expected::default(), &json!([{"check": "one-writer"}]), vec![]);
        assert_eq!(judgements[1].findings[0].severity, Severity::Unknown);
        assert!(judgements[1].findings[0].message.contains("cut short"));
    }

    #[rstest]
    #[case::of_another_cell(two_writers("one"))]
    #[case::of_another_severity(Finding::unknown(Some("two"), "cannot tell", None))]
    #[case::of_no_cell(Finding::violation(None, "two sites wrote", None))]
    fn a_further_finding_is_one(#[case] further: Finding) {
        let judgements = judged(&json!([{"check": "one-writer"}]), vec![two_writers("two"), further.clone()]);
        assert_eq!(judgements[0].findings, [further]);
        assert!(judgements[1].holds());
    }

    #[rstest]
    #[case::a_typing_error_in_the_name(json!([{"check": "one-writre"}]), "no such check")]
    #[case::no_list(json!("one-writer"), "cannot be read")]
    #[case::a_typing_error_in_a_key(json!([{"check": "one-writer", "severty": "unknown"}]), "cannot be read")]
    fn a_declaration_that_means_nothing_is_red(#[case] declared: Value, #[case] says: &str) {
        let judgements = judged(&declared, vec![]);
        assert!(judgements[1].findings[0].message.contains(says), "{judgements:?}");
    }
}
