//! Verdict, failures, matrix, checks and figures as HTML.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::markup::Escaped;
use crate::checks::witness::Line;
use crate::checks::{Finding, Judgement, Severity, Witness};
use crate::report::again::command_for;
use crate::report::{Verdict, VerdictKind};
use crate::run::directory;
use crate::scenario::{CellReport, Outcome};

/// How many findings of a check are open to see, and how many the page has at most.
const OPEN: usize = 1;
const AT_MOST: usize = 50;

/// The head: what the run came to, and what that rests on.
#[must_use]
pub fn header(verdict: &Verdict) -> String {
    let (class, word) = match verdict.verdict {
        VerdictKind::Pass => ("pass", "pass"),
        VerdictKind::Violation => ("violation", "violation"),
        VerdictKind::Fail => ("fail", "fail"),
        VerdictKind::Unknown => ("unknown", "unknown"),
    };
    let run = Escaped(&verdict.run);
    let mut html =
        format!("<div class=\"title\"><h1>Run {run}</h1><span class=\"badge {class}\">{word}</span></div>\n");
    let total = verdict.durations_ms.get("total").map(|ms| format!(" · took {}", seconds(*ms)));
    html += &format!("<p class=\"meta\">exit code {}{}</p>\n", verdict.exit_code, total.unwrap_or_default());
    let passed = verdict.cells.iter().filter(|cell| cell.outcome == Outcome::Passed).count();
    let held = verdict.checks.iter().filter(|check| check.holds()).count();
    html += "<ul class=\"tiles\">";
    if !verdict.cells.is_empty() {
        html += &tile(format!("{passed} of {}", verdict.cells.len()), "cells passed");
    }
    if !verdict.checks.is_empty() {
        html += &tile(format!("{held} of {}", verdict.checks.len()), "history checks hold");
    }
    html += &tile(verdict.findings().count(), "findings");
    for (key, name) in [("calls", "calls recorded"), ("layoutWrites", "layout writes"), ("events", "events")]
    {
        if let Some(count) = verdict.coverage.get(key) {
            html += &tile(grouped(*count), name);
        }
    }
    html + "</ul>"
}

fn tile(value: impl Display, name: &str) -> String {
    format!("<li><b>{}</b><span>{name}</span></li>", Escaped(value))
}

/// Everything that went wrong; nothing where nothing did.
#[must_use]
pub fn failures(verdict: &Verdict) -> String {
    let mut html = String::new();
    for problem in &verdict.problems {
        html += &format!("<div class=\"finding open\"><pre>{}</pre></div>", Escaped(&problem.message));
    }
    let failed = verdict.cells.iter().filter(|cell| cell.outcome.message().is_some());
    html += &failed.map(|cell| failed_cell(verdict, cell)).collect::<String>();
    html += &verdict.checks.iter().map(|check| findings(verdict, check)).collect::<String>();
    if html.is_empty() {
        return html;
    }
    format!(
        "<section id=\"failures\" aria-labelledby=\"failures-title\"><h2 id=\"failures-title\">What went wrong</h2>{html}</section>"
    )
}

fn failed_cell(verdict: &Verdict, cell: &CellReport) -> String {
    let Some(message) = cell.outcome.message() else { return String::new() };
    let open = if matches!(cell.outcome, Outcome::Unknown(_)) { " open" } else { "" };
    let mut rows = vec![("claim", Escaped(&cell.claim).to_string())];
    match &cell.account {
        Some(account) => {
            rows.push(("expected", Escaped(&account.expected).to_string()));
            rows.extend(account.observed.iter().map(|seen| (seen.what.as_str(), Escaped(seen).to_string())));
        }
        None => rows.push(("observed", Escaped(message).to_string())),
    }
    rows.push(("artifacts", artifacts_link(&cell.cell)));
    rows.push(("again", again(verdict, &cell.cell)));
    let rows: String =
        rows.iter().map(|(name, value)| format!("<dt>{}</dt><dd>{value}</dd>", Escaped(name))).collect();
    format!(
        "<div class=\"finding{open}\"><h3>{} {}</h3><dl class=\"account\">{rows}</dl></div>",
        outcome(&cell.outcome),
        Escaped(&cell.cell)
    )
}

/// A link to what was saved of a cell; it works where the page lies in the run's folder.
fn artifacts_link(cell: &str) -> String {
    let folder = Escaped(directory::cell_folder(cell));
    format!("<a href=\"{folder}/\">{folder}</a>")
}

fn again(verdict: &Verdict, cell: &str) -> String {
    format!("<code>{}</code>", Escaped(command_for(verdict, cell)))
}

fn findings(verdict: &Verdict, check: &Judgement) -> String {
    if check.holds() {
        return String::new();
    }
    let mut html =
        check.findings.iter().take(OPEN).map(|found| one(verdict, check, found)).collect::<String>();
    let more = check.findings.iter().skip(OPEN).take(AT_MOST - OPEN);
    let more: String = more.map(|found| one(verdict, check, found)).collect();
    let hidden = check.findings.len().saturating_sub(OPEN);
    if hidden > 0 {
        html += &format!("<details><summary>{hidden} more of {}</summary>{more}", Escaped(&check.check));
        if check.findings.len() > AT_MOST {
            html += &format!("<p>… {} further in verdict.json</p>", check.findings.len() - AT_MOST);
        }
        html += "</details>";
    }
    html
}

fn one(verdict: &Verdict, check: &Judgement, finding: &Finding) -> String {
    let (open, word) = match finding.severity {
        Severity::Violation => ("", "violation"),
        Severity::Unknown => (" open", "unknown"),
    };
    let cell = finding.cell.as_ref();
    let claim = cell.and_then(|cell| verdict.cells.iter().find(|report| report.cell == *cell));
    let mut html = format!("<div class=\"finding{open}\"><h3>{}</h3>", Escaped(&finding.message));
    html += &format!("<p class=\"where\">{word} of {}: {}</p>", Escaped(&check.check), Escaped(&check.claim));
    if let Some(cell) = cell {
        html += &format!("<dl class=\"account\"><dt>cell</dt><dd>{}</dd>", Escaped(cell));
        if let Some(report) = claim {
            html += &format!("<dt>claim</dt><dd>{}</dd>", Escaped(&report.claim));
        }
        html += &format!("<dt>artifacts</dt><dd>{}</dd>", artifacts_link(cell));
        html += &format!("<dt>again</dt><dd>{}</dd></dl>", again(verdict, cell));
    }
    html += &finding.witness.as_ref().map(witness).unwrap_or_default();
    html + "</div>"
}

fn witness(witness: &Witness) -> String {
    let mut html = String::from("<table class=\"witness\"><tbody>");
    let mut row = |name: &str, class: &str, line: &Line| {
        html += &format!(
            "<tr class=\"{class}\"><td>{name}</td><td><button type=\"button\" class=\"jump\" data-seq=\"{seq}\">#{seq}</button></td><td>{}</td><td class=\"mono\">{}</td></tr>",
            Escaped(time_of_day(&line.at)),
            Escaped(&line.text),
            seq = line.seq,
        );
    };
    if let Some(step) = &witness.step {
        row("during", "", step);
    }
    for line in &witness.before {
        row("before", "", line);
    }
    row("here", "here", &witness.event);
    if let Some(answer) = &witness.answer {
        row("answer", "", answer);
    }
    html + "</tbody></table>"
}

/// `18:58:30.848117` of `2026-11-29T18:58:30.848117408Z`.
fn time_of_day(at: &str) -> &str {
    let time = at.split_once('T').map_or(at, |(_, time)| time).trim_end_matches('Z');
    time.get(..15).unwrap_or(time)
}

/// Every cell with its roles and claim.
#[must_use]
pub fn matrix(verdict: &Verdict) -> String {
    if verdict.cells.is_empty() {
        return String::new();
    }
    let rows: String = verdict.cells.iter().map(matrix_row).collect();
    format!(
        "<section id=\"matrix\" aria-labelledby=\"matrix-title\"><h2 id=\"matrix-title\">Matrix</h2><div class=\"scroll\"><table><thead><tr><th>Outcome</th><th>Cell</th>\
         <th>Kind</th><th>East</th><th>West</th><th>Claim</th><th class=\"number\">Took</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )
}

fn matrix_row(cell: &CellReport) -> String {
    let role = |role: &Option<String>| Escaped(role.as_deref().unwrap_or("–").to_owned());
    format!(
        "<tr><td>{}</td><td class=\"mono\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td></tr>",
        outcome(&cell.outcome),
        Escaped(&cell.cell),
        cell.kind,
        role(&cell.roles.east),
        role(&cell.roles.west),
        Escaped(&cell.claim),
        seconds(cell.duration_ms + cell.teardown_ms),
    )
}

fn outcome(outcome: &Outcome) -> String {
    let (class, word) = match outcome {
        Outcome::Passed => ("pass", "passed"),
        Outcome::Failed(_) => ("fail", "failed"),
        Outcome::Unknown(_) => ("unknown", "unknown"),
        Outcome::Skipped(_) => ("skipped", "skipped"),
    };
    format!("<span class=\"mark {class}\">{word}</span>")
}

/// Every check with its claim.
#[must_use]
pub fn checks(verdict: &Verdict) -> String {
    if verdict.checks.is_empty() {
        return String::new();
    }
    let row = |check: &Judgement| {
        let violations = check.findings.iter().filter(|found| found.severity == Severity::Violation).count();
        let (class, word) = match (check.findings.len(), violations) {
            (0, _) => ("pass", "holds".to_owned()),
            (_, 0) => ("unknown", "unknown".to_owned()),
            (_, 1) => ("fail", "1 violation".to_owned()),
            (_, many) => ("fail", format!("{many} violations")),
        };
        format!(
            "<tr><td><span class=\"mark {class}\">{word}</span></td><td class=\"mono\">{}</td><td>{}</td></tr>",
            Escaped(&check.check),
            Escaped(&check.claim)
        )
    };
    let rows: String = verdict.checks.iter().map(row).collect();
    format!(
        "<section id=\"checks\" aria-labelledby=\"checks-title\"><h2 id=\"checks-title\">History checks</h2><div class=\"scroll\"><table><thead>\
         <tr><th>Outcome</th><th>Check</th><th>Claim</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )
}

/// What was exercised, how long things took, what took part.
#[must_use]
pub fn figures(verdict: &Verdict) -> String {
    let counts = verdict.coverage.iter().map(|(name, count)| (name.as_str(), grouped(*count)));
    let times = verdict.durations_ms.iter().map(|(name, ms)| (name.as_str(), seconds(*ms)));
    let figures = verdict.figures.iter().map(|(name, value)| (name.as_str(), grouped(*value)));
    let versions = verdict.versions.iter().map(|(name, version)| (name.as_str(), version.clone()));
    let html = list("Coverage", counts.collect())
        + &list("Time", times.collect())
        + &list("Figures", figures.collect())
        + &list("Versions", versions.collect());
    if html.is_empty() {
        return html;
    }
    format!(
        "<section id=\"figures\" aria-labelledby=\"figures-title\"><h2 id=\"figures-title\">What this rests on</h2><div class=\"columns\">{html}</div></section>"
    )
}

fn list(title: &str, entries: BTreeMap<&str, String>) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let entry =
        |(name, value): (&str, String)| format!("<dt>{}</dt><dd>{}</dd>", Escaped(name), Escaped(value));
    format!("<div><h3>{title}</h3><dl>{}</dl></div>", entries.into_iter().map(entry).collect::<String>())
}

/// Milliseconds as seconds with one decimal.
fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

/// A number with its digits in threes.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(0, "0")]
    #[case(999, "999")]
    #[case(1_000, "1,000")]
    #[case(1_234_567, "1,234,567")]
    fn numbers_are_read_in_threes(#[case] number: u64, #[case] text: &str) {
        assert_eq!(grouped(number), text);
    }

    #[test]
    fn a_time_is_shown_to_the_microsecond() {
        assert_eq!(time_of_day("2026-11-29T18:58:30.848117408Z"), "18:58:30.848117");
        assert_eq!(time_of_day("2026-11-29T18:58:30Z"), "18:58:30");
    }
}
