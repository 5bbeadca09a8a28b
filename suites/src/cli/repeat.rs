//! Several runs in a row, each on a fresh pair.

use harness::failure::chain;
use harness::garage::system::Garage;
use harness::report::{Exit, Verdict, VerdictKind, summary};
use harness::scenario::Outcome;
use harness::scenario::system::Planned;

use super::args::{Format, Global, RunArgs};
use super::interrupt::Interrupts;
use super::run::Ended;
use super::{output, run};

/// Runs the selected cells `--count` times, unless somebody interrupts.
pub(super) async fn repeated(global: &Global, args: &RunArgs, selected: &[Planned<Garage>]) -> Exit {
    let interrupts = Interrupts::listen();
    let mut exit = Exit::Pass;
    let mut verdicts = Vec::new();
    for number in 1..=args.count {
        let ended = run::once(global, &run::seeded(args), selected.to_vec(), number, &interrupts).await;
        exit = exit.or(ended.exit).or(ended.show(global)).or(show_line(global, args, &ended, number));
        verdicts.extend(ended.left.map(|(verdict, _)| verdict));
        exit = exit.or(write_junit(args, &verdicts));
        if let Some(interrupted) = interrupts.heard() {
            exit = exit.or(interrupted);
            break;
        }
        if args.fail_fast && ended.exit != Exit::Pass {
            break;
        }
    }
    exit.or(show_all(global, args, &verdicts))
}

/// A line on one of several runs, for the quiet as well: what a log of them is made of.
fn show_line(global: &Global, args: &RunArgs, ended: &Ended, number: u32) -> Exit {
    let Some((verdict, directory)) = &ended.left else { return Exit::Pass };
    if global.format == Format::Json || args.count == 1 {
        return Exit::Pass;
    }
    output::show(global, verdict, || line(verdict, directory.run(), number, args.count))
}

/// A run in a line: which, how it ended, its seed, its cells, how long it took, and how late waits returned.
fn line(verdict: &Verdict, run: &str, number: u32, count: u32) -> String {
    let seed = verdict.invocation.as_ref().and_then(|invocation| invocation.seed).unwrap_or_default();
    let passed = verdict.cells.iter().filter(|cell| matches!(cell.outcome, Outcome::Passed)).count();
    let total = verdict.durations_ms.get("total").copied().unwrap_or_default();
    let late = verdict
        .figures
        .get("waitP99Us")
        .map_or_else(String::new, |late| format!("  p99 of waits {} ms", late.div_ceil(1000)));
    format!(
        "{number:>3} of {count}  {:9}  seed {seed:6}  {passed} of {} cells  {}.{} s{late}  {run}\n",
        summary::word(verdict),
        verdict.cells.len(),
        total / 1000,
        total % 1000 / 100,
    )
}

/// Writes the JUnit report of all runs so far to where `--junit` wants it.
fn write_junit(args: &RunArgs, verdicts: &[Verdict]) -> Exit {
    let Some(path) = &args.junit else { return Exit::Pass };
    match harness::run::write_junit(path, verdicts) {
        Ok(()) => Exit::Pass,
        Err(error) => output::fail(Exit::Internal, &chain(error.as_ref())),
    }
}

/// One JSON document for all runs, or a line on all of several.
fn show_all(global: &Global, args: &RunArgs, verdicts: &[Verdict]) -> Exit {
    let passed = verdicts.iter().filter(|verdict| verdict.verdict == VerdictKind::Pass).count();
    match (global.format, verdicts) {
        (Format::Json, [one]) if args.count == 1 => output::show(global, one, String::new),
        (Format::Json, all) => output::show(global, &all, String::new),
        (Format::Human, all) if args.count > 1 => {
            let unrun = usize::try_from(args.count).map_or(0, |count| count.saturating_sub(all.len()));
            let unrun = if unrun > 0 { format!(", {unrun} not begun") } else { String::new() };
            output::show(global, &all, || format!("{passed} of {} runs passed{unrun}\n", all.len()))
        }
        (Format::Human, _) => Exit::Pass,
    }
}

#[cfg(test)]
mod tests {
    use harness::report::Invocation;
    use harness::report::verdict::Problem;

    use super::*;

    #[test]
    fn a_run_in_a_line_names_its_place_its_verdict_its_seed_and_its_time() {
        let problem = Problem::new(Exit::Unknown, "a hole");
        let mut verdict = Verdict::new("20261129-A", vec![], vec![], vec![problem]);
        verdict.invocation = Some(Invocation { arguments: vec![], seed: Some(4711) });
        verdict.durations_ms.insert("total".to_owned(), 61_980);
        verdict.figures.insert("waitP99Us".to_owned(), 74_001);
        let line = line(&verdict, "20261129-A", 3, 20);
        assert_eq!(
            line,
            "  3 of 20  UNKNOWN    seed   4711  0 of 0 cells  61.9 s  p99 of waits 75 ms  20261129-A\n"
        );
    }
}
