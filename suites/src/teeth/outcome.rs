//! Whether a run noticed a defect, and by what.

use harness::checks::Severity;
use harness::failure::AccountKind;
use harness::report::Verdict;
use harness::report::again::symptoms;
use harness::scenario;
use serde::Serialize;

use super::Mutant;

/// What became of a defect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Outcome {
    /// Somebody who was to notice it did.
    Caught {
        /// Who: checks and claims, each with its cell.
        by: Vec<String>,
    },
    /// It changed nothing, as it should.
    Harmless,
    /// Nobody noticed it.
    Survived,
    /// It was noticed, but not by those who are to: by chance, by a crash, by a deadline.
    Otherwise {
        /// How it was noticed.
        by: Vec<String>,
    },
    /// The run cannot tell.
    Unclear {
        /// Why.
        why: String,
    },
}

impl Outcome {
    /// What `verdict` says of `mutant`.
    #[must_use]
    pub fn of(mutant: &Mutant, verdict: &Verdict) -> Self {
        let by = noticed(mutant, verdict);
        if by.is_empty()
            && let Some(problem) = verdict.problems.first()
        {
            return Self::Unclear { why: problem.message.clone() };
        }
        let passed = verdict.exit_code == 0;
        match (mutant.harmless, passed) {
            (true, true) => Self::Harmless,
            (false, true) => Self::Survived,
            _ if by.is_empty() => Self::Otherwise { by: otherwise(verdict) },
            _ if mutant.exit.is_some_and(|exit| exit != verdict.exit_code) => {
                Self::Otherwise { by: vec![format!("exit code {}", verdict.exit_code)] }
            }
            _ => Self::Caught { by },
        }
    }

    /// Whether it is as it should be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Caught { .. } | Self::Harmless)
    }
}

/// Those who are to notice the defect and did.
fn noticed(mutant: &Mutant, verdict: &Verdict) -> Vec<String> {
    let in_cells = |cell: Option<&str>| {
        cell.is_none_or(|cell| mutant.cells.iter().any(|beginning| cell.starts_with(beginning.as_str())))
    };
    let by_checks = verdict.findings().filter(|(check, finding)| {
        let wanted = match finding.severity {
            Severity::Violation => &mutant.checks,
            Severity::Unknown => &mutant.open,
        };
        wanted.iter().any(|name| name == check) && in_cells(finding.cell.as_deref())
    });
    let named = |(check, finding): (&str, &harness::checks::Finding)| match &finding.cell {
        Some(cell) => format!("{check} in {cell}"),
        None => check.to_owned(),
    };
    let mut by: Vec<String> = by_checks.map(named).collect();
    by.extend(verdict.cells.iter().filter_map(|cell| claim(mutant, cell)));
    by.sort();
    by.dedup();
    by
}

/// The claim of `cell` that was not reached, if it is one by which the defect is to be noticed.
fn claim(mutant: &Mutant, cell: &scenario::CellReport) -> Option<String> {
    let account = cell.account.as_ref()?;
    let failed = matches!(cell.outcome, scenario::Outcome::Failed(_));
    let is_claim = matches!(account.kind, AccountKind::Claim | AccountKind::Deadline);
    let wanted = mutant.claims.iter().any(|claim| {
        cell.cell.starts_with(&claim.cell) && account.expected.contains(&claim.says) && is_claim && failed
    });
    wanted.then(|| format!("claim of {}: {}", cell.cell, account.expected))
}

fn otherwise(verdict: &Verdict) -> Vec<String> {
    let mut by = symptoms(verdict);
    let open = verdict.findings().filter(|(_, finding)| finding.severity == Severity::Unknown);
    by.extend(open.map(|(check, _)| format!("{check} left open")));
    by.extend(
        verdict.cells.iter().filter_map(|cell| Some(format!("{}: {}", cell.cell, cell.outcome.message()?))),
    );
    by.sort();
    by.dedup();
    by
}

#[cfg(test)]
mod tests {
    use super::super::table::Claim;
    use super::*;
    use harness::checks::{Finding, Judgement};
    use harness::failure::Account;
    use harness::report::Exit;
    use harness::report::verdict::Problem;
    use rstest::rstest;
    use serde_json::json;

    fn mutant() -> Mutant {
        Mutant {
            cells: vec!["bootstrap".to_owned()],
            checks: vec!["follower-never-writes".to_owned()],
            open: vec!["follower-routes-known".to_owned()],
            claims: vec![Claim { cell: "bootstrap".to_owned(), says: "NodesWithoutRole".to_owned() }],
            ..Mutant::default()
        }
    }

    fn found(check: &str, finding: Finding) -> Verdict {
        let judgement =
            Judgement { check: check.to_owned(), findings: vec![finding], ..Judgement::default() };
        Verdict::new("r", vec![], vec![judgement], vec![])
    }

    fn violated(check: &str, cell: &str) -> Verdict {
        found(check, Finding::violation(Some(cell), "m", None))
    }

    fn failed(kind: &str, expected: &str) -> Verdict {
        let account: Account =
            serde_json::from_value(json!({"kind": kind, "expected": expected, "observed": []})).unwrap();
        let cell = json!({"cell": "bootstrap/follower", "kind": "subject",
            "roles": {"east": "Follower", "west": null}, "claim": "c", "outcome": "failed", "message": "m",
            "account": account, "durationMs": 1, "teardownMs": 1});
        Verdict::new("r", vec![serde_json::from_value(cell).unwrap()], vec![], vec![])
    }

    #[rstest]
    #[case::a_named_check(violated("follower-never-writes", "bootstrap/follower"), true)]
    #[case::another_check(violated("one-writer-per-term", "bootstrap/follower"), false)]
    #[case::another_cell(violated("follower-never-writes", "rollout/follower"), false)]
    #[case::a_named_check_that_cannot_tell(
        found("follower-routes-known", Finding::unknown(None, "m", None)),
        true
    )]
    #[case::a_check_that_should_be_violated_and_cannot_tell(
        found("follower-never-writes", Finding::unknown(None, "m", None)),
        false
    )]
    #[case::a_named_claim(failed("claim", "east: condition NodesWithoutRole"), true)]
    #[case::a_deadline_that_is_the_claim(failed("deadline", "east: NodesWithoutRole within 9s"), true)]
    #[case::a_deadline_of_something_else(failed("deadline", "east: Pod that is Ready within 9s"), false)]
    #[case::the_deadline_of_the_cell(failed("cellDeadline", "NodesWithoutRole"), false)]
    #[case::a_crash(failed("aborted", "NodesWithoutRole"), false)]
    fn a_defect_is_caught_by(#[case] verdict: Verdict, #[case] caught: bool) {
        let outcome = Outcome::of(&mutant(), &verdict);
        assert_eq!(matches!(outcome, Outcome::Caught { .. }), caught, "{outcome:?}");
        assert!(caught || matches!(outcome, Outcome::Otherwise { .. }), "{outcome:?}");
    }

    #[test]
    fn a_defect_that_nobody_notices_has_survived() {
        assert_eq!(Outcome::of(&mutant(), &Verdict::new("r", vec![], vec![], vec![])), Outcome::Survived);
    }

    #[test]
    fn a_run_that_could_not_be_set_up_tells_nothing() {
        let problem = Problem::new(Exit::SetupFailed, "no etcd");
        let outcome = Outcome::of(&mutant(), &Verdict::new("r", vec![], vec![], vec![problem]));
        assert_eq!(outcome, Outcome::Unclear { why: "no etcd".to_owned() });
    }

    #[test]
    fn a_missing_layer_must_change_nothing() {
        let harmless = Mutant { harmless: true, cells: vec!["bootstrap".to_owned()], ..Mutant::default() };
        assert_eq!(Outcome::of(&harmless, &Verdict::new("r", vec![], vec![], vec![])), Outcome::Harmless);
        let outcome = Outcome::of(&harmless, &violated("follower-never-writes", "bootstrap/follower"));
        assert!(!outcome.is_good(), "{outcome:?}");
    }

    #[test]
    fn another_exit_code_than_the_required_one_is_not_good() {
        let legacy = Mutant { exit: Some(100), ..mutant() };
        assert!(!Outcome::of(&legacy, &violated("follower-never-writes", "bootstrap/follower")).is_good());
    }
}
