//! `onewriter teeth`.

mod lane;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use harness::checks::expected::EXPECTED;
use harness::failure::chain;
use harness::garage::checks::of_run;
use harness::report::{Exit, Verdict};
use onewriter_history::History;
use serde_json::json;

use lane::{Lane, Order, Ran};

use super::args::{Global, TeethArgs};
use super::interrupt::Interrupts;
use super::output;
use super::progress::Display;
use crate::pair::operator;
use crate::teeth::recorder::judge_defects;
use crate::teeth::tally::{Control, Row};
use crate::teeth::{Mutant, Outcome, Tally, table};

/// A cell of every control run: the record of a run that writes is shown to the checks that guard the record.
const WRITING: &str = "bootstrap/writer";

/// Runs the operator with each defect of the table. Exit codes: 0 if each is noticed by those who are to, 100 if not, 98 if
/// a run could not tell or the one without any defect did not pass, 96 if the operator cannot be built.
pub(super) async fn teeth(global: &Global, args: TeethArgs) -> Exit {
    let names: Vec<&str> = of_run().iter().map(|check| check.name()).chain([EXPECTED]).collect();
    let all = match table::mutants_of(&names) {
        Ok(all) => all,
        Err(error) => return output::fail(Exit::Internal, &chain(&error)),
    };
    let total = all.len();
    let mutants = match selected(all, &args.filters) {
        Ok(mutants) => mutants,
        Err(message) => return output::fail(Exit::NothingSelected, &message),
    };
    if args.dry_run {
        return dry_run(global, &mutants);
    }
    let display = Display::new(global);
    let programs = match programs(&args, &mutants, &display).await {
        Ok(programs) => programs,
        Err(error) => return output::fail(Exit::SetupFailed, &error),
    };
    let complete = mutants.len() == total;
    let session = Session { global, args: &args, programs, display, interrupts: Interrupts::listen() };
    let (controls, rows, record) = session.run(mutants).await;
    if let Some(interrupted) = session.interrupts.heard() {
        return interrupted;
    }
    let tally = Tally::new(controls, rows, record, &names, complete);
    let shown = output::show(global, &json!({"exitCode": tally.exit().code(), "tally": tally}), || {
        format!("\n{}", tally.in_words())
    });
    tally.exit().or(shown)
}

fn selected(all: Vec<Mutant>, filters: &[String]) -> Result<Vec<Mutant>, String> {
    let matches = |mutant: &Mutant, filter: &String| mutant.name.starts_with(filter.as_str());
    if let Some(filter) = filters.iter().find(|filter| !all.iter().any(|mutant| matches(mutant, filter))) {
        let names: Vec<&str> = all.iter().map(|mutant| mutant.name.as_str()).collect();
        return Err(format!("no mutant matches `{filter}`; the mutants are: {}", names.join(", ")));
    }
    let taken = |mutant: &Mutant| filters.is_empty() || filters.iter().any(|filter| matches(mutant, filter));
    Ok(all.into_iter().filter(taken).collect())
}

fn dry_run(global: &Global, mutants: &[Mutant]) -> Exit {
    let line =
        |mutant: &Mutant| format!("{}: {}; in {}\n", mutant.name, mutant.defect, mutant.cells.join(", "));
    output::show(global, &mutants, || mutants.iter().map(line).collect())
}

/// The operator of each feature: the one that was named, or built now. The run without any defect needs the one whose
/// defects are all chosen at its start.
async fn programs(
    args: &TeethArgs,
    mutants: &[Mutant],
    display: &Display,
) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut programs = BTreeMap::new();
    for feature in std::iter::once(table::MUTANTS).chain(mutants.iter().map(|mutant| mutant.feature.as_str()))
    {
        if programs.contains_key(feature) {
            continue;
        }
        let program = if let Some(named) = &args.pair.operator_bin {
            operator::usable(named.clone()).map_err(|error| error.to_string())?
        } else {
            display.say(&format!("building the operator with its feature {feature}"));
            operator::build_with(feature).await.map_err(|error| chain(&error))?
        };
        programs.insert(feature.to_owned(), program);
    }
    Ok(programs)
}

/// One round of runs, several at once, each lane on a pair of its own.
struct Session<'a> {
    global: &'a Global,
    args: &'a TeethArgs,
    programs: BTreeMap<String, PathBuf>,
    display: Display,
    interrupts: Interrupts,
}

/// A run that is to be made.
enum Job {
    /// Without any defect, with an operator whose defects are all chosen at its start.
    Control(PathBuf, Vec<String>),
    Mutant(Mutant),
}

/// Jobs that wait for a lane, each with its place in the table.
type Queue = Mutex<VecDeque<(usize, Job)>>;

type Results = (Vec<Control>, Vec<Row>, Vec<crate::teeth::recorder::Noticed>);

enum Done {
    Control(Control, PathBuf),
    Row(Row),
}

impl Session<'_> {
    async fn run(&self, mutants: Vec<Mutant>) -> Results {
        let control = self.control(&mutants);
        let jobs = std::iter::once(control).chain(mutants.into_iter().map(Job::Mutant));
        let queue = Queue::new(jobs.enumerate().collect());
        let lanes = (0..self.args.parallel).map(|_| self.lane(&queue));
        let mut done: Vec<(usize, Done)> = join_all(lanes).await.into_iter().flatten().collect();
        done.sort_by_key(|(place, _)| *place);
        let (mut controls, mut rows, mut record) = (Vec::new(), Vec::new(), Vec::new());
        for (_, done) in done {
            match done {
                Done::Row(row) => rows.push(row),
                Done::Control(control, history) => {
                    if control.exit_code == 0
                        && let Ok(history) = History::read(&history)
                    {
                        record = judge_defects(&history);
                    }
                    controls.push(control);
                }
            }
        }
        (controls, rows, record)
    }

    /// What runs without any defect: the cells of all mutants, and one that writes, with the same program.
    fn control(&self, mutants: &[Mutant]) -> Job {
        let mut cells: Vec<String> = mutants.iter().flat_map(|mutant| mutant.cells.iter().cloned()).collect();
        cells.push(WRITING.to_owned());
        cells.sort();
        cells.dedup();
        Job::Control(self.programs.get(table::MUTANTS).cloned().unwrap_or_default(), cells)
    }

    /// Takes one job after the other, until there is none or somebody interrupts.
    async fn lane(&self, queue: &Queue) -> Vec<(usize, Done)> {
        let mut lane = Lane::new(self.global, self.args, &self.interrupts);
        let mut done = Vec::new();
        while self.interrupts.heard().is_none()
            && let Some((place, job)) = take(queue)
        {
            done.push((place, self.job(&mut lane, job).await));
        }
        lane.end().await;
        done
    }

    async fn job(&self, lane: &mut Lane<'_>, job: Job) -> Done {
        match job {
            Job::Control(program, cells) => self.control_run(lane, &program, &cells).await,
            Job::Mutant(mutant) => Done::Row(self.mutant_run(lane, &mutant).await),
        }
    }

    async fn control_run(&self, lane: &mut Lane<'_>, program: &Path, cells: &[String]) -> Done {
        let is_good = |verdict: &Verdict| verdict.exit_code == 0;
        let order = Order { program, arguments: Vec::new(), cells, is_good: &is_good };
        let (control, history) = match lane.run(order).await {
            Ok(Ran { verdict, folder, ms }) => {
                let control = Control { exit_code: verdict.exit_code, run: verdict.run, duration_ms: ms };
                (control, folder.join("history.jsonl"))
            }
            Err(why) => {
                self.display.must_say(&format!("(none): {why}"));
                (Control { exit_code: Exit::SetupFailed.code(), ..Control::default() }, PathBuf::new())
            }
        };
        self.display.say(&format!("(none): exit code {}", control.exit_code));
        Done::Control(control, history)
    }

    async fn mutant_run(&self, lane: &mut Lane<'_>, mutant: &Mutant) -> Row {
        let program = self.programs.get(&mutant.feature).cloned().unwrap_or_default();
        let is_good = |verdict: &Verdict| Outcome::of(mutant, verdict).is_good();
        let order = Order {
            program: &program,
            arguments: mutant.arguments(),
            cells: &mutant.cells,
            is_good: &is_good,
        };
        let row = match lane.run(order).await {
            Ok(Ran { verdict, ms, .. }) => Row::of(mutant, &verdict, ms),
            Err(why) => Row::unclear(mutant, why),
        };
        let word = if row.outcome.is_good() { "as it should be" } else { "NOT as it should be" };
        let seconds = row.duration_ms / 1000;
        self.display.say(&format!("{}: {word} after {seconds} s", mutant.name));
        row
    }
}

fn take(queue: &Queue) -> Option<(usize, Job)> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}
