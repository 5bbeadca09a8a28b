//! The scenarios as tests: one trial for each cell, for `cargo test` and nextest alike.
//!
//! All test processes of one build share one pair: whoever comes first brings it up, and it is taken down soon after
//! the last has left. Each trial judges the history of its own mesh.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use harness::failure::chain;
use harness::garage::hub::Hub;
use harness::garage::system::Garage;
use harness::pair::PairDescription;
use harness::pair::federation::PairOptions;
use harness::report::VerdictKind;
use harness::report::summary::Summary;
use harness::run::observer::Silent;
use harness::run::{RunDirectory, RunOptions, Tenancy, execute, write_verdict};
use harness::scenario::system::{Planned, plan};
use harness::scenario::{Abort, AbortSwitch, Blame, Limits};
use harness::supervisor::{Client, StateRoot, Wanted};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::scenarios;

/// Runs the cells of `scenario` as tests; artifacts go below `artifacts`.
///
/// Call it from the `main` of a test with `harness = false`. With `--list` no pair is started.
#[must_use]
pub fn main(scenario: &str, artifacts: &str) -> ExitCode {
    crate::pair::intercept();
    let arguments = Arguments::from_args();
    let artifacts = PathBuf::from(artifacts).join("onewriter");
    let cells = plan(scenarios::matrix()).into_iter().filter(|(_, cell)| cell.scenario == scenario);
    let trials = cells.map(|planned| {
        let artifacts = artifacts.clone();
        Trial::test(planned.1.path(), move || in_runtime(planned, &artifacts))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn in_runtime(planned: Planned<Garage>, artifacts: &Path) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(trial(planned, artifacts))
}

async fn trial(planned: Planned<Garage>, artifacts: &Path) -> Result<(), Failed> {
    let cell = planned.1.path();
    let directory = RunDirectory::create(artifacts)?;
    let client = Arc::new(attach(&cell).await?);
    let description: PairDescription = serde_json::from_value(client.description().clone())?;
    let token = std::fs::read_to_string(&description.hub.token_file)?;
    let hub = Hub::new(&description.hub.control, token.trim())?;
    let system = Garage::new(hub).behind(description.hub.nodes.clone());
    let abort = AbortSwitch::default();
    let options = RunOptions {
        limits: Limits::default(),
        parallel: 1,
        tenancy: Tenancy::Shared,
        keep_failed: false,
        abort: abort.clone(),
        disturber: client.clone(),
        retries: 0,
    };
    let running = execute(&system, vec![planned], &description, &directory, &options, &Silent);
    let verdict = tokio::select! {
        verdict = running => verdict,
        () = forward_death(&client, &abort) => return Err("the pair's supervision ended".into()),
    };
    // They hold the pair, too.
    drop(options);
    release(client).await?;
    if verdict.verdict == VerdictKind::Pass {
        return Ok(());
    }
    write_verdict(&directory, &verdict).map_err(|error| chain(error.as_ref()))?;
    let summary = Summary::of(&verdict).with_artifacts(directory.path());
    Err(format!("{summary}artifacts: {}", directory.path().display()).into())
}

/// Lets go of the pair; it lives on for a while, for the next test.
async fn release(client: Arc<Client>) -> Result<(), Failed> {
    match Arc::into_inner(client) {
        Some(client) => client.release(true).await.map_err(|error| chain(&error).into()),
        None => Err("the pair is still held".into()),
    }
}

/// Joins the pair that all tests of this build share.
async fn attach(cell: &str) -> Result<Client, Failed> {
    let root = StateRoot::from_env().map_err(|error| chain(&error))?;
    let options = serde_json::to_value(PairOptions { webhooks: true, ..PairOptions::default() })?;
    let wanted = Wanted::shared(format!("tests of {}", env!("CARGO_MANIFEST_DIR")), cell, options);
    Client::start_or_attach(&root, wanted, |_| {}).await.map_err(|error| chain(&error).into())
}

/// Tells the run when a part of the pair dies. Never ends by itself: the run does, by what it was told.
async fn forward_death(client: &Client, abort: &AbortSwitch) {
    let death = client.died().await;
    abort.abort(abort_of(&death));
    std::future::pending::<()>().await;
}

/// What the death of a part means for a run.
#[must_use]
pub fn abort_of(death: &harness::supervisor::PartDeath) -> Abort {
    let blame = if death.part.ends_with("operator") { Blame::System } else { Blame::Harness };
    let reason = format!("{} ended: {}", death.part, death.status);
    let detail = format!("; the end of its log:\n{}", death.log.tail.trim_end());
    Abort { blame, reason, detail }
}
