//! The verdict as text for people.

use std::fmt::{self, Display, Write as _};
use std::path::Path;

use super::again::{affected_cells, command_for};
use super::{Exit, Verdict, VerdictKind};
use crate::checks::{Judgement, Severity};
use crate::run::directory;
use crate::scenario::{CellReport, Outcome};

/// Displays a verdict as the summary that ends a run.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'a> {
    verdict: &'a Verdict,
    artifacts: Option<&'a Path>,
}

impl<'a> Summary<'a> {
    /// The summary of `verdict`.
    #[must_use]
    pub fn of(verdict: &'a Verdict) -> Self {
        Self { verdict, artifacts: None }
    }

    /// Says also where things are that the run left in `folder`.
    #[must_use]
    pub fn with_artifacts(self, folder: &'a Path) -> Self {
        Self { artifacts: Some(folder), ..self }
    }
}

impl Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = self.verdict;
        cells(f, &verdict.cells)?;
        checks(f, verdict)?;
        for problem in &verdict.problems {
            writeln!(f, "\n{}", problem.message)?;
        }
        for cell in affected_cells(verdict) {
            affected(f, verdict, cell, self.artifacts)?;
        }
        for check in &verdict.checks {
            findings(f, check)?;
        }
        latency(f, verdict)?;
        writeln!(f, "\n{}", headline(verdict))
    }
}

/// How soon after what they waited for the run's waits returned.
fn latency(f: &mut fmt::Formatter<'_>, verdict: &Verdict) -> fmt::Result {
    let figure = |name: &str| verdict.figures.get(name).copied();
    let (Some(waits), Some(half), Some(most)) = (figure("waits"), figure("waitP50Us"), figure("waitP99Us"))
    else {
        return Ok(());
    };
    let (half, most) = (millis(half), millis(most));
    writeln!(f, "\n  {waits} waits returned {half} (p50), {most} (p99) after what they awaited came true")
}

/// Microseconds as milliseconds with one decimal.
fn millis(micros: u64) -> String {
    format!("{}.{} ms", micros / 1000, micros % 1000 / 100)
}

fn cells(f: &mut fmt::Formatter<'_>, cells: &[CellReport]) -> fmt::Result {
    let width = cells.iter().map(|cell| cell.cell.len()).max().unwrap_or(0);
    for cell in cells {
        let role = |role: &Option<String>| role.clone().unwrap_or_else(|| "–".to_owned());
        let mark = mark(&cell.outcome);
        let seconds = seconds(cell.duration_ms + cell.teardown_ms);
        writeln!(
            f,
            "  {mark} {:width$}  {:7}  east {:8}  west {:8}  {seconds:>6}",
            cell.cell,
            cell.kind,
            role(&cell.roles.east),
            role(&cell.roles.west),
        )?;
        if cell.is_flaky() {
            writeln!(f, "    flaky: passed after {} failed attempts", cell.failures.len())?;
        }
    }
    Ok(())
}

fn checks(f: &mut fmt::Formatter<'_>, verdict: &Verdict) -> fmt::Result {
    if !verdict.checks.is_empty() {
        writeln!(f)?;
    }
    for check in &verdict.checks {
        writeln!(f, "  {} {}", check.mark(), check.claim)?;
    }
    Ok(())
}

/// A cell that did not come out well: its claim, what came instead, and where to go from here.
fn affected(
    f: &mut fmt::Formatter<'_>,
    verdict: &Verdict,
    path: &str,
    artifacts: Option<&Path>,
) -> fmt::Result {
    let Some(cell) = verdict.cells.iter().find(|cell| cell.cell == path) else { return Ok(()) };
    let word = match &cell.outcome {
        Outcome::Failed(_) => "FAILED",
        Outcome::Unknown(_) => "UNKNOWN",
        Outcome::Passed | Outcome::Skipped(_) => "VIOLATED",
    };
    writeln!(f, "\n{word} {path}")?;
    line(f, "claim", &cell.claim)?;
    match (&cell.account, cell.outcome.message()) {
        (Some(account), _) => {
            line(f, "expected", &account.expected)?;
            account.observed.iter().try_for_each(|seen| line(f, &seen.what, &seen.to_string()))?;
        }
        (None, Some(message)) => line(f, "observed", message)?,
        (None, None) => {}
    }
    for (check, finding) in
        verdict.findings().filter(|(_, found)| found.cell.as_deref() == Some(path)).take(1)
    {
        line(f, "observed", &format!("{} ({check})", finding.message))?;
        if let Some(witness) = &finding.witness {
            line(f, "witness", &witness.event.to_string())?;
        }
    }
    if let Some(folder) = artifacts {
        line(f, "artifacts", &folder.join(directory::cell_folder(path)).display().to_string())?;
    }
    line(f, "again", &command_for(verdict, path))
}

/// A named line; further lines of a text are set below its first.
fn line(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    write!(f, "  {name:10} ")?;
    for (number, part) in text.trim_end().lines().enumerate() {
        if number > 0 {
            write!(f, "\n             ")?;
        }
        f.write_str(part)?;
    }
    f.write_char('\n')
}

/// How many findings of one check are shown; `verdict.json` has them all.
const SHOWN: usize = 3;

/// The first findings of a check.
pub fn findings(f: &mut impl fmt::Write, check: &Judgement) -> fmt::Result {
    for finding in check.findings.iter().take(SHOWN) {
        let word = match finding.severity {
            Severity::Violation => "VIOLATION",
            Severity::Unknown => "UNKNOWN",
        };
        writeln!(f, "\n{word} {}: {finding}", check.check)?;
    }
    match check.findings.len().saturating_sub(SHOWN) as u64 + check.further {
        0 => {}
        more => writeln!(f, "\n… and {more} more of {}", check.check)?,
    }
    for note in check.notes.iter().take(SHOWN) {
        writeln!(f, "\nNOTE {}: {note}", check.check)?;
    }
    Ok(())
}

fn headline(verdict: &Verdict) -> String {
    let passed = verdict.cells.iter().filter(|cell| cell.outcome == Outcome::Passed).count();
    let flaky = match verdict.cells.iter().filter(|cell| cell.is_flaky()).count() {
        0 => String::new(),
        flaky => format!(" ({flaky} of them flaky)"),
    };
    let cells = format!("{passed} of {} cells passed{flaky}", verdict.cells.len());
    let calls = verdict.coverage.get("calls").copied().unwrap_or_default();
    let writes = verdict.coverage.get("layoutWrites").copied().unwrap_or_default();
    let total =
        verdict.durations_ms.get("total").map(|ms| format!(" in {}", seconds(*ms))).unwrap_or_default();
    if verdict.cells.is_empty() && verdict.exit() == Exit::SetupFailed {
        return "SET-UP FAILED: no cell was run".to_owned();
    }
    format!("{}: {cells}; {calls} calls recorded, {writes} of them layout writes{total}", word(verdict))
}

/// What a run came to, in a word.
#[must_use]
pub fn word(verdict: &Verdict) -> &'static str {
    match verdict.verdict {
        _ if matches!(verdict.exit(), Exit::Interrupted | Exit::Terminated) => "INTERRUPTED",
        VerdictKind::Pass => "PASS",
        VerdictKind::Violation => "VIOLATION",
        VerdictKind::Fail => "FAIL",
        VerdictKind::Unknown => "UNKNOWN",
    }
}

fn mark(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "✓",
        Outcome::Failed(_) => "✗",
        Outcome::Unknown(_) => "?",
        Outcome::Skipped(_) => "-",
    }
}

/// Milliseconds as seconds with one decimal.
fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{Finding, Judgement};
    use crate::failure::{Account, AccountKind, Observation};
    use crate::scenario::Kind;
    use crate::site::PerSite;

    #[test]
    fn the_summary_names_cells_checks_and_findings() {
        let cell = CellReport {
            cell: "bootstrap/follower".into(),
            kind: Kind::Subject,
            roles: PerSite { east: Some("Follower".into()), west: None },
            claim: "none".into(),
            outcome: Outcome::Failed("east: no condition".into()),
            account: Some(Account {
                kind: AccountKind::Deadline,
                expected: "east: condition Ready within 30s".into(),
                observed: vec![Observation {
                    what: "last seen".into(),
                    text: "no conditions;\nnone at all".into(),
                    age_ms: Some(1500),
                }],
            }),
            failures: Vec::new(),
            duration_ms: 1234,
            teardown_ms: 800,
        };
        let check = Judgement {
            check: "follower-never-writes".into(),
            claim: "a site declared Follower makes no layout write".into(),
            findings: vec![Finding::violation(Some("bootstrap/follower"), "east wrote", None)],
            ..Judgement::default()
        };
        let mut verdict = Verdict::new("r1", vec![cell], vec![check], vec![]);
        verdict.coverage = [("calls".to_owned(), 40), ("layoutWrites".to_owned(), 1)].into();
        verdict.durations_ms = [("total".to_owned(), 12_345)].into();
        verdict.figures = [("waits", 17), ("waitP50Us", 1_950), ("waitP99Us", 42_000)]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        insta::assert_snapshot!(Summary::of(&verdict).with_artifacts(Path::new("artifacts/r1")).to_string());
    }
}
