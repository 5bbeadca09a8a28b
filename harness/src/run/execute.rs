//! Running cells on a pair.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt as _, stream};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use onewriter_history::{Audit, Header, History, Moment, Record, Source};
use serde_json::{Value, json};

use super::directory::ArtifactError;
use super::latency::Latency;
use super::observer::Observer;
use super::sources::{HistoryFile, SourceError};
use super::{RunDirectory, sources};
use crate::checks::whole::seal;
use crate::checks::{self, Check, Coverage, Judging};
use crate::failure::{BoxError, Failure, chain};
use crate::history::{Merged, Recorder};
use crate::pair::PairDescription;
use crate::report::verdict::Problem;
use crate::report::{Exit, Verdict};
use crate::scenario::system::Planned;
use crate::scenario::{
    Abort, AbortSwitch, Blame, Cell, CellReport, Disturber, Limits, Scope, System, runner,
};
use crate::site::{PerSite, Site};

/// Subject of the state event that says which states a run records.
pub const RECORDS: &str = "records";

/// Who uses the pair of a run beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenancy {
    /// Nobody: the pair ends with the run.
    Sole,
    /// Nobody meanwhile, others before and after it. The namespaces of its cells may be left behind.
    InTurn,
    /// Others at the same time.
    Shared,
}

/// How a run is to go.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// How long things may take.
    pub limits: Limits,
    /// How many cells run at once.
    pub parallel: usize,
    /// Who else uses the pair.
    pub tenancy: Tenancy,
    /// Whether what a failed cell made is left in the pair, because the pair is kept for a person to look at.
    pub keep_failed: bool,
    /// Ends the run early when it is thrown.
    pub abort: AbortSwitch,
    /// Breaks and mends parts of the pair for cells that ask for it.
    pub disturber: Arc<dyn Disturber>,
    /// How often a cell that failed is run again. What the checks find is not affected by that.
    pub retries: u32,
}

/// Runs `plan` on `pair`, judges the history, and leaves everything in `directory`.
///
/// The verdict covers the cells' teardown, not the pair's. It is returned also when something went wrong on the way;
/// the reasons are then among its problems. Writing it down is left to the caller, who may add to it.
pub async fn execute<S: System>(
    system: &S,
    plan: Vec<Planned<S>>,
    pair: &PairDescription,
    directory: &RunDirectory,
    options: &RunOptions,
    observer: &dyn Observer,
) -> Verdict {
    let started = Instant::now();
    let since = Moment::now();
    let mut header = Header::new(directory.run());
    header.sites = Site::ALL.map(|site| site.name().to_owned()).to_vec();
    header.versions.clone_from(&pair.versions);
    let records = system.records();
    let run = match Run::begin(pair, directory, options, observer, &header, &records).await {
        Ok(run) => run,
        Err(error) => {
            let problem =
                Problem::new(Exit::SetupFailed, format!("the run cannot begin: {}", chain(error.as_ref())));
            return Verdict::new(directory.run(), vec![], vec![], vec![problem]);
        }
    };
    let namespaces = plan.iter().map(|(_, cell)| run.namespace(cell, 0)).collect();
    let cells = run.cells(system, plan).await;
    let share = sources::Share {
        since,
        cells: (options.tenancy != Tenancy::Sole).then_some(namespaces),
        has_lines: options.tenancy != Tenancy::Shared,
    };
    let mut problems = run.problems();
    let facts = |audit: &Audit, object: &Value| system.facts(audit, object);
    let judged = match sources::events(pair, &directory.steps(), &share, &facts) {
        Ok(events) => judge(events, &header, &system.checks(), directory, &mut problems),
        Err(error) => {
            problems.push(Problem::new(Exit::Unknown, format!("no history: {}", chain(&error))));
            Judged::default()
        }
    };
    let mut verdict = Verdict::new(directory.run(), cells, judged.judgements, problems);
    verdict.coverage = judged.coverage;
    verdict.figures = judged.figures;
    verdict.versions.clone_from(&pair.versions);
    verdict.durations_ms.clone_from(&pair.durations_ms);
    let cells_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    verdict.durations_ms.insert("cells".to_owned(), cells_ms);
    verdict
}

struct Run<'a> {
    directory: &'a RunDirectory,
    options: &'a RunOptions,
    observer: &'a dyn Observer,
    pair: Arc<PairDescription>,
    clients: PerSite<Client>,
    recorder: Recorder,
}

impl<'a> Run<'a> {
    async fn begin(
        pair: &'a PairDescription,
        directory: &'a RunDirectory,
        options: &'a RunOptions,
        observer: &'a dyn Observer,
        header: &Header,
        records: &[String],
    ) -> Result<Self, BoxError> {
        let recorder = Recorder::create(&directory.steps(), header)?;
        recorder.state(RECORDS, json!(records));
        recorder.step("the run begins");
        let east = client(&pair.sites.east.kubeconfig).await?;
        let west = client(&pair.sites.west.kubeconfig).await?;
        let clients = PerSite { east, west };
        Ok(Self { directory, options, observer, pair: Arc::new(pair.clone()), clients, recorder })
    }

    /// Runs every cell, some at once, and reports them in the order of the plan.
    async fn cells<S: System>(&self, system: &S, plan: Vec<Planned<S>>) -> Vec<CellReport> {
        let order: BTreeMap<String, usize> =
            plan.iter().enumerate().map(|(index, (_, cell))| (cell.path(), index)).collect();
        let (alone, together): (Vec<_>, Vec<_>) =
            plan.into_iter().partition(|(_, cell)| cell.disturbs.is_alone());
        let running = together.into_iter().map(|planned| self.cell(system, planned));
        let mut reports: Vec<CellReport> =
            stream::iter(running).buffer_unordered(self.options.parallel.max(1)).collect().await;
        // Whoever disturbs more than its namespaces has the pair to itself.
        for planned in alone {
            reports.push(self.cell(system, planned).await);
        }
        reports.sort_by_key(|report| order.get(&report.cell).copied());
        self.recorder.step("the run ends");
        reports
    }

    /// Runs a cell, and again while it does not pass and may be run again.
    async fn cell<S: System>(&self, system: &S, planned: Planned<S>) -> CellReport {
        let path = planned.1.path();
        self.observer.cell_started(&path);
        let mut failures = Vec::new();
        let report = loop {
            let attempt = u32::try_from(failures.len()).unwrap_or(u32::MAX);
            let report = self.attempt(system, &planned, attempt).await;
            let ended = self.options.abort.current().is_some() || attempt >= self.options.retries;
            match report.outcome.message() {
                Some(message) if !ended => failures.push(message.to_owned()),
                _ => break CellReport { failures, ..report },
            }
        };
        self.observer.cell_ended(&report);
        report
    }

    fn namespace(&self, cell: &Cell, attempt: u32) -> String {
        let suffix = self.directory.suffix();
        let suffix = (self.options.tenancy != Tenancy::Sole).then_some(suffix.as_str());
        Scope::namespace_of(cell, suffix, attempt)
    }

    async fn attempt<S: System>(
        &self,
        system: &S,
        (scenario, cell): &Planned<S>,
        attempt: u32,
    ) -> CellReport {
        let path = cell.path();
        let namespace = self.namespace(cell, attempt);
        let scope = Scope {
            evidence: self.directory.cell(&path),
            recorder: self.recorder.of_cell(&path, &namespace),
            cell: path,
            namespace,
            clients: self.clients.clone(),
            journal: self.pair.hub.journal.clone(),
            metrics: PerSite::from_fn(|site| self.pair.sites.at(site).operator.metrics.clone()),
            limits: self.options.limits,
            abort: self.options.abort.clone(),
            disturber: self.options.disturber.clone(),
            pair: self.pair.clone(),
            shared: self.options.tenancy == Tenancy::Shared,
            keep_failed: self.options.keep_failed,
        };
        runner::run_cell(system, scenario, cell, &scope).await
    }

    fn problems(&self) -> Vec<Problem> {
        let hole = self.recorder.take_failure().map(|error| {
            Problem::new(Exit::Unknown, format!("the harness lost part of its record: {}", chain(&error)))
        });
        let abort = self.options.abort.current().map(|abort| of_abort(&abort));
        hole.into_iter().chain(abort).collect()
    }
}

fn of_abort(abort: &Abort) -> Problem {
    let exit = match abort.blame {
        Blame::System => Exit::ScenarioFailed,
        Blame::Harness => Exit::Unknown,
        Blame::Interrupt => Exit::Interrupted,
        Blame::Terminate => Exit::Terminated,
    };
    Problem::new(exit, format!("{}{}", abort.reason, abort.detail))
}

#[derive(Default)]
struct Judged {
    judgements: Vec<checks::Judgement>,
    coverage: BTreeMap<String, u64>,
    figures: BTreeMap<String, u64>,
}

/// Writes the history as it is read from its sources, and judges it on the way: it is never in memory as a whole.
fn judge(
    mut events: Merged<'_, SourceError>,
    header: &Header,
    checks: &[Box<dyn Check>],
    directory: &RunDirectory,
    problems: &mut Vec<Problem>,
) -> Judged {
    let mut pass = Pass::begin(directory, header, checks);
    let read = events.try_for_each(|read| read.map(|record| pass.take(record)));
    match read {
        Ok(()) => pass.seal(),
        // Without its seal the history does not pass for a whole one.
        Err(error) => {
            problems.push(Problem::new(Exit::Unknown, format!("no whole history: {}", chain(&error))));
        }
    }
    let (judged, written) = pass.end();
    problems.extend(written.err().map(|error| Problem::new(Exit::Unknown, chain(&error))));
    judged
}

/// One pass over the events of a run.
struct Pass {
    file: Result<HistoryFile, ArtifactError>,
    judging: Judging,
    coverage: Coverage,
    latency: Latency,
    events: u64,
}

impl Pass {
    fn begin(directory: &RunDirectory, header: &Header, checks: &[Box<dyn Check>]) -> Self {
        Self {
            file: HistoryFile::create(&directory.history(), header),
            judging: Judging::new(checks),
            coverage: Coverage::default(),
            latency: Latency::default(),
            events: 0,
        }
    }

    fn take(&mut self, record: Record) {
        self.events += 1;
        if let Ok(file) = &mut self.file
            && let Err(error) = file.append(&record)
        {
            self.file = Err(error);
        }
        self.coverage.take(&record);
        self.latency.take(&record);
        self.judging.take(record);
    }

    /// Ends a history that has everything in it.
    fn seal(&mut self) {
        let Moment { at, mono_ns } = Moment::now();
        let (seq, event) = (self.events + 1, seal(self.events));
        self.take(Record { seq, at, mono_ns, source: Source::merge(), source_seq: 1, event });
    }

    fn end(self) -> (Judged, Result<(), ArtifactError>) {
        let judgements = self.judging.end();
        let (coverage, figures) = (self.coverage.counts(), self.latency.figures());
        (Judged { judgements, coverage, figures }, self.file.and_then(HistoryFile::finish))
    }
}

/// What a history shows was exercised.
#[must_use]
pub fn coverage(history: &History) -> BTreeMap<String, u64> {
    let mut coverage = checks::Coverage::default();
    history.records.iter().for_each(|record| coverage.take(record));
    coverage.counts()
}

/// A client for the kubeconfig at `path`, and for no other: the user's own configuration is never read.
pub async fn client(path: &Path) -> Result<Client, BoxError> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// A failure of the harness itself as a problem of the run.
#[must_use]
pub fn problem_of(failure: &Failure) -> Problem {
    let exit = if failure.is_inconclusive() { Exit::Unknown } else { Exit::ScenarioFailed };
    Problem::new(exit, failure.chain())
}
