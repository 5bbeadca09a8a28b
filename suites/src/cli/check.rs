//! `onewriter check`.

use harness::checks::{self, Severity};
use harness::failure::chain;
use harness::garage;
use harness::report::{Exit, summary};
use harness::run::execute::coverage;
use onewriter_history::History;
use serde_json::json;

use super::args::{CheckArgs, Global};
use super::output;

/// Judges a recorded history: 97 for a violation, 98 where it cannot be told or the history is broken, 2 where the
/// file is no history of this schema.
pub(super) fn check(global: &Global, args: &CheckArgs) -> Exit {
    let history = match History::read(&args.history) {
        Ok(history) => history,
        Err(error) => {
            let exit = if error.is_broken() { Exit::Unknown } else { Exit::Usage };
            return output::fail(exit, &format!("{}: {}", args.history.display(), chain(&error)));
        }
    };
    let (judgements, exit) = judge(&history);
    let value = json!({
        "run": history.header.run,
        "exitCode": exit.code(),
        "checks": judgements,
        "coverage": coverage(&history),
    });
    let shown = output::show(global, &value, || in_words(&history, &judgements, exit));
    exit.or(shown)
}

/// Lets every check judge `history`, and says how a program ends that does nothing else.
pub(super) fn judge(history: &History) -> (Vec<checks::Judgement>, Exit) {
    let judgements = checks::judge(&garage::checks::all(), history);
    let severities =
        judgements.iter().flat_map(|judgement| &judgement.findings).map(|finding| finding.severity);
    let exit = severities.map(exit_of).fold(Exit::Pass, Exit::or);
    (judgements, exit)
}

fn exit_of(severity: Severity) -> Exit {
    match severity {
        Severity::Violation => Exit::Violated,
        Severity::Unknown => Exit::Unknown,
    }
}

pub(super) fn in_words(history: &History, judgements: &[checks::Judgement], exit: Exit) -> String {
    let mut text = format!("run {}, {} events\n\n", history.header.run, history.records.len());
    for judgement in judgements {
        let mark = if judgement.holds() { "✓" } else { "✗" };
        text += &format!("  {mark} {}\n", judgement.claim);
    }
    for judgement in judgements {
        // Writing to a String cannot fail.
        summary::findings(&mut text, judgement).unwrap_or_default();
    }
    let word = match exit {
        Exit::Pass => "PASS",
        Exit::Violated => "VIOLATION",
        _ => "UNKNOWN",
    };
    text + "\n" + word + "\n"
}
