//! `onewriter check`.

use std::collections::BTreeMap;
use std::path::Path;

use harness::checks::{Coverage, Judgement, Judging, Severity, judge};
use harness::failure::chain;
use harness::garage;
use harness::report::{Exit, summary};
use onewriter_history::{History, ReadError, Reader};
use serde_json::{Value, json};

use super::args::{CheckArgs, Global};
use super::output;

/// Judges recorded histories, each as it is read: 97 for a violation, 98 where it cannot be told or a history is broken,
/// 2 where a file is no history of this schema. Of several the strongest counts.
pub(super) fn check(global: &Global, args: &CheckArgs) -> Exit {
    let mut exit = Exit::Pass;
    let mut results = Vec::new();
    for path in &args.histories {
        match judged(path) {
            Ok(result) => {
                exit = exit.or(result.exit());
                results.push(result);
            }
            Err(error) => {
                let failed = if error.is_broken() { Exit::Unknown } else { Exit::Usage };
                exit = exit.or(output::fail(failed, &format!("{}: {}", path.display(), chain(&error))));
            }
        }
    }
    if results.is_empty() {
        return exit;
    }
    let values: Vec<Value> = results.iter().map(Judged::to_json).collect();
    let value = match &values[..] {
        [one] if args.histories.len() == 1 => one.clone(),
        _ => json!({ "histories": values }),
    };
    let shown = output::show(global, &value, || results.iter().map(Judged::in_words).collect());
    exit.or(shown)
}

/// A history that was judged to its end.
pub(super) struct Judged {
    run: String,
    pub(super) judgements: Vec<Judgement>,
    coverage: BTreeMap<String, u64>,
}

fn judged(path: &Path) -> Result<Judged, ReadError> {
    let mut reader = Reader::open(path)?;
    let mut judging = Judging::new(&garage::checks::of_run());
    let mut coverage = Coverage::default();
    for record in reader.by_ref() {
        let record = record?;
        coverage.take(&record);
        judging.take(record);
    }
    Ok(Judged { run: reader.into_header().run, judgements: judging.end(), coverage: coverage.counts() })
}

impl Judged {
    /// Lets every check judge a history that is in memory.
    pub(super) fn of(history: &History) -> Self {
        let mut coverage = Coverage::default();
        for record in &history.records {
            coverage.take(record);
        }
        let judgements = judge(&garage::checks::of_run(), history);
        Self { run: history.header.run.clone(), judgements, coverage: coverage.counts() }
    }

    /// How a program ends that does nothing else.
    pub(super) fn exit(&self) -> Exit {
        let findings = self.judgements.iter().flat_map(|judgement| &judgement.findings);
        findings.map(|finding| exit_of(finding.severity)).fold(Exit::Pass, Exit::or)
    }

    fn to_json(&self) -> Value {
        json!({
            "run": self.run,
            "exitCode": self.exit().code(),
            "checks": self.judgements,
            "coverage": self.coverage,
        })
    }

    pub(super) fn in_words(&self) -> String {
        let events = self.coverage.get("events").copied().unwrap_or_default();
        let mut text = format!("run {}, {events} events\n\n", self.run);
        for judgement in &self.judgements {
            text += &format!("  {} {}\n", judgement.mark(), judgement.claim);
        }
        for judgement in &self.judgements {
            // Writing to a String cannot fail.
            summary::findings(&mut text, judgement).unwrap_or_default();
        }
        let word = match self.exit() {
            Exit::Pass => "PASS",
            Exit::Violated => "VIOLATION",
            _ => "UNKNOWN",
        };
        text + "\n" + word + "\n"
    }
}

fn exit_of(severity: Severity) -> Exit {
    match severity {
        Severity::Violation => Exit::Violated,
        Severity::Unknown => Exit::Unknown,
    }
}
