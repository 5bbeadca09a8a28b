//! `onewriter run`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::failure::{BoxError, chain};
use harness::garage::hub::Hub;
use harness::garage::system::Garage;
use harness::pair::PairDescription;
use harness::report::summary::Summary;
use harness::report::verdict::Problem;
use harness::report::{Exit, Invocation, Verdict, VerdictKind, bundle};
use harness::run::{RunDirectory, RunOptions, Tenancy, execute, logs};
use harness::scenario::system::Planned;
use harness::scenario::{Abort, AbortSwitch, Blame, Limits};
use harness::supervisor::{Client, ClientError, StateRoot};

use super::args::{Format, Global, Keep, Provider, RunArgs};
use super::interrupt::Interrupts;
use super::progress::Display;
use super::{list, output, provider, repeat, start};
use crate::pair;
use crate::trial::abort_of;

/// Runs the selected cells, `--count` times, and returns the strongest of the exits.
pub(super) async fn run(global: &Global, mut args: RunArgs) -> Exit {
    let selected = match list::selected(&args.select) {
        Ok(selected) if !selected.is_empty() => selected,
        Ok(_) => return output::fail(Exit::NothingSelected, list::NOTHING_LEFT),
        Err(nothing) => return output::fail(Exit::NothingSelected, &nothing.to_string()),
    };
    let selected: Vec<_> =
        selected.into_iter().filter(|(_, cell)| !(cell.webhooks && args.pair.no_webhooks)).collect();
    if selected.is_empty() {
        return output::fail(
            Exit::NothingSelected,
            "every selected cell needs webhooks, and --no-webhooks is given",
        );
    }
    if let Err(problem) = provider::resolve(&mut args.pair) {
        return output::fail(Exit::Usage, &problem);
    }
    if let Err(error) = pair::operator::resolve_argument(&mut args.pair.operator_bin) {
        return output::fail(Exit::Usage, &error.to_string());
    }
    if args.junit.as_ref().is_some_and(|path| path.is_dir()) {
        return output::fail(Exit::Usage, "--junit takes the path of a file, this is a folder");
    }
    if args.dry_run {
        return dry_run(global, &args, &selected);
    }
    repeat::repeated(global, &args, &selected).await
}

/// The arguments with a seed of their own, where none is given.
pub(super) fn seeded(args: &RunArgs) -> RunArgs {
    let mut args = args.clone();
    args.pair.seed = args.pair.seed.or_else(|| Some(any_seed()));
    args
}

/// A seed of few digits, for people to type.
pub(super) fn any_seed() -> u64 {
    rand::random_range(1..1_000_000)
}

/// How one run ended.
pub(super) struct Ended {
    /// How the program would end with it.
    pub(super) exit: Exit,
    /// Its verdict and folder; none where it did not get as far as one.
    pub(super) left: Option<(Verdict, RunDirectory)>,
}

impl Ended {
    fn without_verdict(exit: Exit) -> Self {
        Self { exit, left: None }
    }

    /// Shows the verdict to a person; the quiet want to see only what went wrong.
    pub(super) fn show(&self, global: &Global) -> Exit {
        let Some((verdict, directory)) = &self.left else { return Exit::Pass };
        if global.format == Format::Json || (global.quiet && verdict.verdict == VerdictKind::Pass) {
            return Exit::Pass;
        }
        output::show(global, verdict, || {
            let summary = Summary::of(verdict).with_artifacts(directory.path());
            format!("\n{summary}{}", whereabouts(directory))
        })
    }
}

/// What of the flags decides how cells are run, for whoever runs them again.
fn invocation(args: &RunArgs) -> Invocation {
    let mut arguments = Vec::new();
    let mut flag = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    if args.pair.provider != Provider::Auto {
        flag("--provider", provider_name(args.pair.provider));
    }
    if let Some(operator) = &args.pair.operator_bin {
        let absolute = std::path::absolute(operator).unwrap_or_else(|_| operator.clone());
        flag("--operator-bin", absolute.display().to_string());
    }
    if let Some(image) = &args.pair.operator_image {
        flag("--operator-image", image.clone());
    }
    if let Some(manifests) = &args.pair.operator_manifests {
        flag("--operator-manifests", manifests.display().to_string());
    }
    if let Some(image) = &args.pair.node_image {
        flag("--node-image", image.clone());
    }
    for argument in &args.pair.operator_arg {
        flag("--operator-arg", argument.clone());
    }
    let time = |time: Duration| humantime::format_duration(time).to_string().replace(' ', "");
    if args.scenario_timeout != Limits::default().scenario {
        flag("--scenario-timeout", time(args.scenario_timeout));
    }
    if args.step_timeout != Limits::default().step {
        flag("--step-timeout", time(args.step_timeout));
    }
    if args.pair.no_webhooks {
        arguments.push("--no-webhooks".to_owned());
    }
    Invocation { arguments, seed: args.pair.seed }
}

/// A provider as it is given on the command line.
fn provider_name(provider: Provider) -> String {
    use clap::ValueEnum as _;
    provider.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn dry_run(global: &Global, args: &RunArgs, selected: &[Planned<Garage>]) -> Exit {
    let cells: Vec<_> = selected.iter().map(|(_, cell)| cell.clone()).collect();
    let operator = args.pair.operator_bin.as_ref().map(|path| path.display().to_string());
    let operator = operator.or_else(|| args.pair.operator_image.clone());
    let operator = operator.unwrap_or_else(|| "the reference operator".to_owned());
    let paths: Vec<String> = cells.iter().map(harness::scenario::Cell::path).collect();
    let provider = provider_name(args.pair.provider);
    let value =
        serde_json::json!({"provider": provider, "operator": operator, "cells": paths, "count": args.count});
    output::show(global, &value, || {
        format!("would run on two sites (provider {provider}), with {operator}:\n{}", list::table(&cells))
    })
}

/// One run on a pair of its own.
pub(super) async fn once(
    global: &Global,
    args: &RunArgs,
    selected: Vec<Planned<Garage>>,
    number: u32,
    interrupts: &Interrupts,
) -> Ended {
    let started = Instant::now();
    let display = Display::new(global);
    let directory = match RunDirectory::create(&args.artifacts_dir) {
        Ok(directory) => directory,
        Err(error) => return Ended::without_verdict(output::fail(Exit::SetupFailed, &chain(&error))),
    };
    let of = if args.count > 1 { format!(" ({number} of {})", args.count) } else { String::new() };
    display.say(&format!(
        "run {}{of}: {} cells on two sites, seed {}",
        directory.run(),
        selected.len(),
        args.pair.seed.unwrap_or_default()
    ));
    let root = match StateRoot::from_env() {
        Ok(root) => root,
        Err(error) => return Ended::without_verdict(output::fail(Exit::SetupFailed, &chain(&error))),
    };
    let purpose = format!("run {}", directory.run());
    let logs = Some(directory.path());
    let client = match start::start(&root, &args.pair, &purpose, false, logs, &display, interrupts).await {
        Ok(client) => Arc::new(client),
        Err(start::Ended::Interrupted(exit)) => {
            let verdict = problem(&directory, exit, "the run was interrupted while its pair was started");
            return finish(args, directory, verdict);
        }
        Err(start::Ended::Failed(error)) => return set_up_failed(args, directory, &error),
    };
    let sole = Tenancy::Sole;
    let running = on_pair(args, selected, &client, &directory, sole, &display, interrupts);
    let mut verdict = match Box::pin(running).await {
        Ok(verdict) => save_logs(&client, &directory, verdict),
        Err(error) => problem(&directory, Exit::SetupFailed, &chain(error.as_ref())),
    };
    verdict.figures.extend(figures(&root, &client).await);
    let ended = tokio::select! {
        ended = end(args, client, &verdict, &display) => ended,
        exit = interrupts.twice() => leave(exit, &display),
    };
    if let Err(error) = ended {
        let message =
            format!("taking the pair down: {}; `onewriter down` removes what is left", chain(&error));
        verdict.add_problem(Problem::new(Exit::Internal, message).in_teardown());
    }
    if let Some(exit) = interrupts.heard().filter(|_| verdict.problems.is_empty()) {
        verdict.add_problem(Problem::new(exit, "the run was interrupted while it ended").in_teardown());
    }
    verdict.durations_ms.insert("total".to_owned(), millis(started.elapsed()));
    finish(args, directory, verdict)
}

/// Saves the logs of the pair's programs for a run that is over.
pub(super) fn save_logs(client: &Client, directory: &RunDirectory, mut verdict: Verdict) -> Verdict {
    let passed = verdict.verdict == VerdictKind::Pass;
    let description = serde_json::from_value(client.description().clone()).map_err(BoxError::from);
    let saved = description.and_then(|pair| logs::save(&pair, directory, passed).map_err(BoxError::from));
    if let Err(error) = saved {
        let message = format!("the logs cannot be saved: {}", chain(error.as_ref()));
        verdict.add_problem(Problem::new(Exit::Internal, message));
    }
    verdict
}

/// Runs the cells on a pair that is there.
pub(super) async fn on_pair(
    args: &RunArgs,
    selected: Vec<Planned<Garage>>,
    client: &Arc<Client>,
    directory: &RunDirectory,
    tenancy: Tenancy,
    display: &Display,
    interrupts: &Interrupts,
) -> Result<Verdict, BoxError> {
    let description: PairDescription = serde_json::from_value(client.description().clone())?;
    let token = std::fs::read_to_string(&description.hub.token_file)?;
    let hub = Hub::new(&description.hub.control, token.trim())?;
    let system = Garage::new(hub).behind(description.hub.nodes.clone());
    let abort = AbortSwitch::default();
    let options = RunOptions {
        limits: Limits { step: args.step_timeout, scenario: args.scenario_timeout, ..Limits::default() },
        parallel: args.parallel.into(),
        tenancy,
        keep_failed: keeps(args, false),
        abort: abort.clone(),
        disturber: client.clone(),
        retries: args.retries,
    };
    let running = execute(&system, selected, &description, directory, &options, display);
    Ok(tokio::select! {
        verdict = running => verdict,
        never = watch(client, args.timeout, &abort, display, interrupts) => match never {},
    })
}

/// Throws the switch when a part dies, time is up, or somebody interrupts; the run then ends by itself.
async fn watch(
    client: &Client,
    timeout: Duration,
    abort: &AbortSwitch,
    display: &Display,
    interrupts: &Interrupts,
) -> std::convert::Infallible {
    let reason = tokio::select! {
        death = client.died() => abort_of(&death),
        () = tokio::time::sleep(timeout) => Abort {
            blame: Blame::System,
            reason: format!("the run did not end within {}", humantime::format_duration(timeout)),
            detail: String::new(),
        },
        exit = interrupts.once() => {
            display.say("interrupted: taking everything down (interrupt again to leave that to the supervisor)");
            let blame = if exit == Exit::Terminated { Blame::Terminate } else { Blame::Interrupt };
            Abort { blame, reason: "the run was interrupted".to_owned(), detail: String::new() }
        }
    };
    abort.abort(reason);
    leave(interrupts.twice().await, display)
}

/// Somebody insists: the program ends at once, and leaves the pair to its supervisor.
fn leave(exit: Exit, display: &Display) -> ! {
    display.say("leaving: the supervisor takes the pair down by itself");
    std::process::exit(exit.code().into());
}

/// Whether the pair of a run that passed, or did not, is kept.
fn keeps(args: &RunArgs, passed: bool) -> bool {
    let default = if output::is_interactive() { Keep::Failed } else { Keep::Never };
    match args.keep.unwrap_or(default) {
        Keep::Never => false,
        Keep::Failed => !passed,
        Keep::Always => true,
    }
}

/// Keeps the pair for a person to look at, or takes it down.
async fn end(
    args: &RunArgs,
    client: Arc<Client>,
    verdict: &Verdict,
    display: &Display,
) -> Result<(), ClientError> {
    // Every cell has ended: nobody else holds it. If one did, letting go would be as good.
    let Some(client) = Arc::into_inner(client) else { return Ok(()) };
    let passed = verdict.verdict == VerdictKind::Pass;
    let interrupted = matches!(verdict.exit(), Exit::Interrupted | Exit::Terminated);
    if interrupted || !keeps(args, passed) {
        return client.release(false).await;
    }
    client.keep().await?;
    display.must_say(&format!("kept: {}; `onewriter down` ends it", client.folder().display()));
    let description = serde_json::from_value::<PairDescription>(client.description().clone());
    for (site, description) in description.iter().flat_map(|pair| pair.sites.iter()) {
        display.must_say(&format!("  {site}: export KUBECONFIG={}", output::quoted(&description.kubeconfig)));
    }
    client.release(true).await
}

async fn figures(root: &StateRoot, client: &Client) -> Vec<(String, u64)> {
    let status = harness::supervisor::status::status(root).await.unwrap_or_default();
    let mine = status.iter().find(|pair| pair.folder == client.folder());
    mine.map(|pair| ("memoryBytes".to_owned(), pair.memory_bytes)).into_iter().collect()
}

fn set_up_failed(args: &RunArgs, directory: RunDirectory, error: &ClientError) -> Ended {
    let words = start::in_words(error, directory.path());
    let verdict = problem(&directory, Exit::SetupFailed, &words);
    finish(args, directory, verdict)
}

fn problem(directory: &RunDirectory, exit: Exit, message: &str) -> Verdict {
    Verdict::new(directory.run(), vec![], vec![], vec![Problem::new(exit, message)])
}

/// Writes everything down.
pub(super) fn finish(args: &RunArgs, directory: RunDirectory, mut verdict: Verdict) -> Ended {
    verdict.invocation = Some(invocation(args));
    let written = match harness::run::write_verdict(&directory, &verdict) {
        Ok(()) => Exit::Pass,
        Err(error) => output::fail(Exit::Internal, &chain(error.as_ref())),
    };
    Ended { exit: verdict.exit().or(written), left: Some((verdict, directory)) }
}

/// Where the run's folder is, and what in it is to be looked at first.
fn whereabouts(directory: &RunDirectory) -> String {
    let folder = directory.path();
    let mut text = format!("artifacts: {}\n", folder.display());
    for (name, file) in [("report", "report.html"), ("bundle", bundle::NAME)] {
        if folder.join(file).exists() {
            text += &format!("{:10} {}\n", format!("{name}:"), folder.join(file).display());
        }
    }
    text
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
