//! A pair on which one run follows another, each with an operator of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Parser as _;
use harness::failure::{BoxError, chain};
use harness::garage::objects;
use harness::pair::PairDescription;
use harness::pair::equipment::Equipment;
use harness::report::Verdict;
use harness::run::execute::client;
use harness::run::{RunDirectory, Tenancy};
use harness::site::Site;
use harness::supervisor::{Client, StateRoot};
use kube::api::ListParams;

use super::super::args::{Cli, Command, Global, RunArgs, TeethArgs};
use super::super::interrupt::Interrupts;
use super::super::progress::Display;
use super::super::{list, run, start};

/// A run that is over.
pub(super) struct Ran {
    pub(super) verdict: Verdict,
    pub(super) folder: PathBuf,
    pub(super) ms: u64,
}

/// What is run, and whether its outcome is as it should be: of a run that is not, everything is kept.
pub(super) struct Order<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: Vec<String>,
    pub(super) cells: &'a [String],
    pub(super) is_good: &'a (dyn Fn(&Verdict) -> bool + Sync),
}

/// A pair, once there is one. It is used again as long as the runs leave it as they found it.
pub(super) struct Lane<'a> {
    global: Global,
    args: &'a TeethArgs,
    interrupts: &'a Interrupts,
    client: Option<Arc<Client>>,
    /// Where the random choices of the meshes come from: of all runs, for they are made by the same hub.
    seed: u64,
}

impl<'a> Lane<'a> {
    pub(super) fn new(global: &Global, args: &'a TeethArgs, interrupts: &'a Interrupts) -> Self {
        let global = Global { quiet: true, ..global.clone() };
        let seed = args.pair.seed.unwrap_or_else(run::any_seed);
        Self { global, args, interrupts, client: None, seed }
    }

    /// Runs what was ordered.
    pub(super) async fn run(&mut self, order: Order<'_>) -> Result<Ran, String> {
        let started = Instant::now();
        let args = self.run_args(&order)?;
        let selected = list::selected(&args.select).map_err(|nothing| nothing.to_string())?;
        let directory = RunDirectory::create(&args.artifacts_dir).map_err(|error| chain(&error))?;
        let client = self.equipped(&args, &directory).await?;
        let display = Display::new(&self.global);
        let tenancy = Tenancy::InTurn;
        let running = run::on_pair(&args, selected, &client, &directory, tenancy, &display, self.interrupts);
        let verdict = match Box::pin(running).await {
            Ok(verdict) => verdict,
            Err(error) => {
                self.end().await;
                return Err(chain(error.as_ref()));
            }
        };
        let verdict = keep(&args, &client, directory.clone(), verdict, order.is_good)?;
        drop(client);
        if !self.is_as_it_was(&verdict).await {
            self.end().await;
        }
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Ran { verdict, folder: directory.path().to_owned(), ms })
    }

    /// Takes the pair down.
    pub(super) async fn end(&mut self) {
        // Nobody else holds it. If anybody did, its supervisor would end it after them.
        if let Some(client) = self.client.take().and_then(Arc::into_inner)
            && let Err(error) = client.release(false).await
        {
            let left = "`onewriter down` removes what is left";
            Display::new(&self.global).must_say(&format!("taking a pair down: {}; {left}", chain(&error)));
        }
    }

    /// The pair with the operator that the run asks for: a process that has done nothing yet.
    async fn equipped(&mut self, args: &RunArgs, directory: &RunDirectory) -> Result<Arc<Client>, String> {
        if let Some(client) = self.client.clone() {
            let equipment = Equipment {
                operator_bin: args.pair.operator_bin.clone().unwrap_or_default(),
                operator_args: args.pair.operator_arg.clone(),
            };
            let body = serde_json::to_value(equipment).map_err(|error| error.to_string())?;
            let equipped = client.request(body).await;
            drop(client);
            if equipped.is_err() {
                self.end().await;
            }
            equipped.map_err(|error| chain(&error))?;
        }
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let root = StateRoot::from_env().map_err(|error| chain(&error))?;
        let display = Display::new(&self.global);
        let (purpose, logs) = ("teeth", Some(directory.path()));
        let started = start::start(&root, &args.pair, purpose, false, logs, &display, self.interrupts).await;
        let client = started.map_err(|ended| match ended {
            start::Ended::Interrupted(_) => "interrupted".to_owned(),
            start::Ended::Failed(error) => start::in_words(&error, directory.path()),
        })?;
        Ok(self.client.insert(Arc::new(client)).clone())
    }

    /// Whether the next run finds the pair as this one did: nothing died, and nothing is left that an operator would act
    /// on.
    async fn is_as_it_was(&self, verdict: &Verdict) -> bool {
        let Some(client) = &self.client else { return false };
        let description = serde_json::from_value(client.description().clone());
        verdict.problems.is_empty()
            && matches!(description, Ok(pair) if is_empty(&pair).await.unwrap_or(false))
    }

    /// The run as the command line would ask for it, so that its own rerun commands hold.
    fn run_args(&self, order: &Order<'_>) -> Result<RunArgs, String> {
        let mut words = vec!["onewriter".to_owned(), "run".to_owned(), "--keep=never".to_owned()];
        words.extend(order.cells.iter().cloned());
        words.push(format!("--step-timeout={}s", self.args.step_timeout.as_secs().max(1)));
        words.push(format!("--artifacts-dir={}", self.args.artifacts_dir.join("teeth").display()));
        words.push(format!("--seed={}", self.seed));
        words.extend(self.args.pair.no_webhooks.then(|| "--no-webhooks".to_owned()));
        words.push(format!("--operator-bin={}", order.program.display()));
        words.extend(order.arguments.iter().map(|argument| format!("--operator-arg={argument}")));
        match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Command::Run(args)) => Ok(args),
            Ok(_) => Err("this is no run".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Writes the verdict down; with everything that helps to understand it if the outcome is not as it should be.
fn keep(
    args: &RunArgs,
    client: &Client,
    directory: RunDirectory,
    verdict: Verdict,
    is_good: &(dyn Fn(&Verdict) -> bool + Sync),
) -> Result<Verdict, String> {
    if is_good(&verdict) {
        let written = directory.write_json("verdict.json", &verdict);
        return written.map(|()| verdict).map_err(|error| chain(&error));
    }
    let verdict = run::save_logs(client, &directory, verdict);
    let ended = run::finish(args, directory, verdict);
    ended.left.map(|(verdict, _)| verdict).ok_or_else(|| "its run left no verdict".to_owned())
}

/// Whether no GarageCluster and no GarageNode is left at either site.
async fn is_empty(pair: &PairDescription) -> Result<bool, BoxError> {
    for site in Site::ALL {
        let client = client(&pair.sites.at(site).kubeconfig).await?;
        for api in [objects::all_clusters(client.clone()), objects::all_nodes(client)] {
            if !api.list(&ListParams::default().limit(1)).await?.items.is_empty() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
