//! `onewriter teeth`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Parser as _;
use futures::{StreamExt as _, stream};
use harness::checks::expected::EXPECTED;
use harness::failure::chain;
use harness::garage::checks::of_run;
use harness::report::{Exit, Verdict};
use onewriter_history::History;
use serde_json::json;

use super::args::{Cli, Command, Global, RunArgs, TeethArgs};
use super::interrupt::Interrupts;
use super::progress::Display;
use super::{list, output, run};
use crate::pair::operator;
use crate::teeth::recorder::judge_defects;
use crate::teeth::tally::{Control, Row};
use crate::teeth::{Mutant, Tally, table};

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

/// The operator of each feature: the one that was named, or built now.
async fn programs(
    args: &TeethArgs,
    mutants: &[Mutant],
    display: &Display,
) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut programs = BTreeMap::new();
    for mutant in mutants {
        if programs.contains_key(&mutant.feature) {
            continue;
        }
        let program = if let Some(named) = &args.pair.operator_bin {
            operator::usable(named.clone()).map_err(|error| error.to_string())?
        } else {
            display.say(&format!("building the operator with its feature {}", mutant.feature));
            operator::build_with(&mutant.feature).await.map_err(|error| chain(&error))?
        };
        programs.insert(mutant.feature.clone(), program);
    }
    Ok(programs)
}

/// One round of runs, several at once, each on a pair of its own.
struct Session<'a> {
    global: &'a Global,
    args: &'a TeethArgs,
    programs: BTreeMap<String, PathBuf>,
    display: Display,
    interrupts: Interrupts,
}

/// A run that is to be made.
enum Job {
    /// Without any defect, with the operator of a feature whose defects are all chosen at its start.
    Control(PathBuf, Vec<String>),
    Mutant(Mutant),
}

/// A run that is over.
struct Ran {
    verdict: Verdict,
    folder: PathBuf,
    ms: u64,
}

type Results = (Vec<Control>, Vec<Row>, Vec<crate::teeth::recorder::Noticed>);

enum Done {
    Control(Control, PathBuf),
    Row(Row),
}

impl Session<'_> {
    async fn run(&self, mutants: Vec<Mutant>) -> Results {
        let mut jobs = vec![self.control(&mutants)];
        jobs.extend(mutants.into_iter().map(Job::Mutant));
        let done: Vec<Option<Done>> =
            stream::iter(jobs).map(|job| self.job(job)).buffered(self.args.parallel.into()).collect().await;
        let (mut controls, mut rows, mut record) = (Vec::new(), Vec::new(), Vec::new());
        for done in done.into_iter().flatten() {
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

    /// What runs without any defect: the cells of all mutants, with the same program where it can have none, else with the
    /// operator as it is shipped.
    fn control(&self, mutants: &[Mutant]) -> Job {
        let mut cells: Vec<String> = mutants.iter().flat_map(|mutant| mutant.cells.iter().cloned()).collect();
        cells.push(WRITING.to_owned());
        cells.sort();
        cells.dedup();
        let chosen = self.programs.get(table::MUTANTS).cloned().unwrap_or_default();
        Job::Control(chosen, cells)
    }

    async fn job(&self, job: Job) -> Option<Done> {
        if self.interrupts.heard().is_some() {
            return None;
        }
        match job {
            Job::Control(program, cells) => Some(self.control_run(&program, &cells).await),
            Job::Mutant(mutant) => Some(Done::Row(self.mutant_run(&mutant).await)),
        }
    }

    async fn control_run(&self, program: &Path, cells: &[String]) -> Done {
        let (control, history) = match self.once(program, cells, &[]).await {
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

    async fn mutant_run(&self, mutant: &Mutant) -> Row {
        let program = self.programs.get(&mutant.feature).cloned().unwrap_or_default();
        let row = match self.once(&program, &mutant.cells, &mutant.arguments()).await {
            Ok(Ran { verdict, ms, .. }) => Row::of(mutant, &verdict, ms),
            Err(why) => Row::unclear(mutant, why),
        };
        let word = if row.outcome.is_good() { "as it should be" } else { "NOT as it should be" };
        self.display.say(&format!("{}: {word}", mutant.name));
        row
    }

    /// One run on a pair of its own.
    async fn once(&self, program: &Path, cells: &[String], arguments: &[String]) -> Result<Ran, String> {
        let started = Instant::now();
        let args = self.run_args(program, cells, arguments)?;
        let selected = list::selected(&args.select).map_err(|nothing| nothing.to_string())?;
        let quiet = Global { quiet: true, ..self.global.clone() };
        let ended = run::once(&quiet, &args, selected, 1, &self.interrupts).await;
        let (verdict, directory) = ended.left.ok_or("its run left no verdict")?;
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Ran { verdict, folder: directory.path().to_owned(), ms })
    }

    /// The run as the command line would ask for it, so that its own rerun commands hold.
    fn run_args(&self, program: &Path, cells: &[String], arguments: &[String]) -> Result<RunArgs, String> {
        let mut words = vec!["onewriter".to_owned(), "run".to_owned(), "--keep=never".to_owned()];
        words.extend(cells.iter().cloned());
        words.push(format!("--step-timeout={}s", self.args.step_timeout.as_secs().max(1)));
        words.push(format!("--artifacts-dir={}", self.args.artifacts_dir.join("teeth").display()));
        words.extend(self.args.pair.seed.map(|seed| format!("--seed={seed}")));
        words.extend(self.args.pair.no_webhooks.then(|| "--no-webhooks".to_owned()));
        if !program.as_os_str().is_empty() {
            words.push(format!("--operator-bin={}", program.display()));
        }
        words.extend(arguments.iter().map(|argument| format!("--operator-arg={argument}")));
        match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Command::Run(args)) => Ok(run::seeded(&args)),
            Ok(_) => Err("this is no run".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}
