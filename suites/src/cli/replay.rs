//! `onewriter replay`.

use std::collections::BTreeSet;

use clap::Parser as _;
use harness::failure::chain;
use harness::report::again::{affected_cells, command, symptoms};
use harness::report::{Exit, Recording, Verdict};
use onewriter_history::Event;
use serde::Serialize;
use serde_json::json;

use super::args::{Cli, Command, Global, ReplayArgs, RunArgs};
use super::interrupt::Interrupts;
use super::{check, list, output, run};

/// Judges what a run left behind again, with the exit codes of `check`; with `--run` its cells are run again, and the
/// exit is the strongest of theirs.
pub(super) async fn replay(global: &Global, args: ReplayArgs) -> Exit {
    let recording = match Recording::open(&args.recording, &args.artifacts.artifacts_dir) {
        Ok(recording) => recording,
        Err(error) => return output::fail(Exit::Usage, &chain(&error)),
    };
    if args.run {
        return match rerun(&recording, &args) {
            Ok(again) => again.run(global).await,
            Err(message) => output::fail(Exit::Usage, &message),
        };
    }
    judge(global, &recording)
}

fn judge(global: &Global, recording: &Recording) -> Exit {
    let history = match &recording.history {
        Ok(history) => history,
        Err(error) => {
            return output::fail(error.exit(), &format!("{}: {}", recording.place.display(), chain(error)));
        }
    };
    let judged = check::Judged::of(history);
    let exit = judged.exit();
    let recorded = recording.verdict.as_ref().map(|verdict| verdict.exit_code);
    let value = json!({
        "run": history.header.run,
        "exitCode": exit.code(),
        "recordedExitCode": recorded,
        "checks": judged.judgements,
    });
    let shown =
        output::show(global, &value, || judged.in_words() + &compared(recording.verdict.as_ref(), exit));
    exit.or(shown)
}

/// How the judgement of today compares to the recorded one.
fn compared(recorded: Option<&Verdict>, exit: Exit) -> String {
    let Some(verdict) = recorded else { return String::new() };
    if verdict.exit_code == exit.code() {
        return format!("the run itself ended with exit code {}, too\n", verdict.exit_code);
    }
    let mut text = format!("the run itself ended with exit code {}\n", verdict.exit_code);
    if matches!(exit, Exit::Pass) && !affected_cells(verdict).is_empty() {
        text +=
            "its history holds; what its cells claimed can only be seen by running them again, with --run\n";
    }
    text
}

/// Cells that are to be run again.
struct Again {
    args: RunArgs,
    tries: u32,
    /// What to look for; empty when the run had passed.
    symptoms: Vec<String>,
}

fn rerun(recording: &Recording, args: &ReplayArgs) -> Result<Again, String> {
    let verdict = recording.verdict.as_ref();
    let cells = cells(recording)?;
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    let invocation = verdict.and_then(|verdict| verdict.invocation.clone()).unwrap_or_default();
    let mut words = invocation.arguments_for(&cells);
    if let (Some(operator), Some(at)) = (&args.operator_bin, words.iter().position(|w| w == "--operator-bin"))
    {
        words[at + 1] = operator.display().to_string();
    }
    let parsed = Cli::try_parse_from(std::iter::once("onewriter".to_owned()).chain(words.iter().cloned()));
    let Ok(Cli { command: Command::Run(mut run), .. }) = parsed else {
        return Err(format!("this version does not take the run's command: {}", command(&words)));
    };
    run.pair.operator_bin = args.operator_bin.clone().or(run.pair.operator_bin);
    run.artifacts_dir.clone_from(&args.artifacts.artifacts_dir);
    crate::pair::operator::resolve_argument(&mut run.pair.operator_bin).map_err(|error| error.to_string())?;
    Ok(Again { args: run, tries: args.tries, symptoms: verdict.map(symptoms).unwrap_or_default() })
}

/// The cells to run: those that did not come out well, else all of the run.
fn cells(recording: &Recording) -> Result<Vec<String>, String> {
    let own = |cells: Vec<&str>| cells.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let affected = recording.verdict.as_ref().map(affected_cells).unwrap_or_default();
    let cells = if !affected.is_empty() {
        own(affected)
    } else if let Some(verdict) = &recording.verdict {
        own(verdict.cells.iter().map(|cell| cell.cell.as_str()).collect())
    } else {
        cells_in_history(recording)
    };
    if cells.is_empty() {
        return Err(format!("{} names no cell that could be run again", recording.place.display()));
    }
    Ok(cells)
}

fn cells_in_history(recording: &Recording) -> Vec<String> {
    let records = recording.history.as_ref().map(|history| history.records.as_slice()).unwrap_or_default();
    let cells: BTreeSet<&String> = records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Step(step) => step.cell.as_ref(),
            _ => None,
        })
        .collect();
    cells.into_iter().cloned().collect()
}

/// What one try came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Try {
    run: Option<String>,
    exit_code: u8,
    reproduced: bool,
    symptoms: Vec<String>,
}

impl Again {
    async fn run(&self, global: &Global) -> Exit {
        let selected = match list::selected(&self.args.select) {
            Ok(selected) => selected,
            Err(nothing) => return output::fail(Exit::NothingSelected, &nothing.to_string()),
        };
        let interrupts = Interrupts::listen();
        let (mut exit, mut tries) = (Exit::Pass, Vec::new());
        for number in 1..=self.tries {
            let ended =
                run::once(global, &run::seeded(&self.args), selected.clone(), number, &interrupts).await;
            exit = exit.or(ended.exit);
            if let Some(interrupted) = interrupts.heard() {
                exit = exit.or(interrupted);
                break;
            }
            tries.push(self.compared(&ended));
        }
        let value = json!({"exitCode": exit.code(), "sought": self.symptoms, "tries": tries});
        let shown = output::show(global, &value, || self.in_words(&tries));
        exit.or(shown)
    }

    fn compared(&self, ended: &run::Ended) -> Try {
        let verdict = ended.left.as_ref().map(|(verdict, _)| verdict);
        let symptoms = verdict.map(symptoms).unwrap_or_default();
        let reproduced = symptoms.iter().any(|symptom| self.symptoms.contains(symptom));
        let run = verdict.map(|verdict| verdict.run.clone());
        Try { run, exit_code: ended.exit.code(), reproduced, symptoms }
    }

    fn in_words(&self, tries: &[Try]) -> String {
        let mut text = String::new();
        for (number, attempt) in (1..).zip(tries) {
            let run = attempt.run.as_deref().unwrap_or("no run");
            let what =
                if attempt.symptoms.is_empty() { "nothing".to_owned() } else { attempt.symptoms.join(", ") };
            text += &format!("  {number}  {run}  exit {:3}  {what}\n", attempt.exit_code);
        }
        if self.symptoms.is_empty() {
            let passed = tries.iter().filter(|attempt| attempt.exit_code == 0).count();
            return text
                + &format!("passed {passed} of {} tries; the recorded run showed no defect\n", tries.len());
        }
        let reproduced = tries.iter().filter(|attempt| attempt.reproduced).count();
        text + &format!("reproduced in {reproduced} of {} tries: {}\n", tries.len(), self.symptoms.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::report::Invocation;
    use serde_json::Value;

    fn recording(verdict: Value) -> Recording {
        let verdict: Verdict = serde_json::from_value(verdict).unwrap();
        let history = Err(harness::report::recording::NoHistory::Missing);
        Recording { place: "run".into(), page: "page".into(), verdict: Some(verdict), history }
    }

    fn verdict(invocation: &Invocation) -> Value {
        let cell = |cell: &str, outcome: Value| {
            let mut value = json!({"cell": cell, "kind": "subject", "roles": {"east": "Writer", "west": null},
                "claim": "c", "durationMs": 1, "teardownMs": 1});
            value.as_object_mut().unwrap().extend(outcome.as_object().unwrap().clone());
            value
        };
        json!({"schema": "onewriter.verdict/1", "run": "r", "verdict": "fail", "exitCode": 100,
            "cells": [cell("bootstrap/writer", json!({"outcome": "passed"})),
                cell("bootstrap/follower", json!({"outcome": "failed", "message": "m"}))],
            "checks": [], "coverage": {}, "durationsMs": {}, "versions": {}, "invocation": invocation})
    }

    fn args(words: &[&str]) -> ReplayArgs {
        let words = ["onewriter", "replay", "r"].iter().chain(words);
        let Command::Replay(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command")
        };
        args
    }

    #[test]
    fn only_what_failed_is_run_again_and_as_it_was_run() {
        let arguments = vec!["--step-timeout".to_owned(), "5s".to_owned()];
        let recording = recording(verdict(&Invocation { arguments, seed: None }));
        let again =
            rerun(&recording, &args(&["--run", "--tries", "5"])).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.args.select.filters, ["bootstrap/follower"]);
        assert!(again.args.select.exact);
        assert_eq!(again.args.step_timeout, std::time::Duration::from_secs(5));
        assert_eq!((again.tries, again.symptoms), (5, vec!["claim of bootstrap/follower".to_owned()]));
    }

    #[test]
    fn an_operator_that_is_not_on_this_machine_is_named() {
        let arguments = vec!["--operator-bin".to_owned(), "/no/such/operator".to_owned()];
        let recording = recording(verdict(&Invocation { arguments, seed: None }));
        let error = rerun(&recording, &args(&["--run"])).err().unwrap();
        assert!(error.contains("/no/such/operator"), "{error}");
    }

    #[test]
    fn a_command_of_another_version_is_named() {
        let arguments = vec!["--no-such-flag".to_owned()];
        let recording = recording(verdict(&Invocation { arguments, seed: None }));
        let error = rerun(&recording, &args(&["--run"])).err().unwrap();
        assert!(error.contains("--no-such-flag"), "{error}");
    }
}
