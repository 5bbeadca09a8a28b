//! Bringing up a pair, with progress, and with a way out.

use std::path::Path;
use std::time::Duration;

use harness::failure::chain;
use harness::pair::federation::PairOptions;
use harness::report::Exit;
use harness::supervisor::{Client, ClientError, StateRoot, Wanted};

use super::args::PairArgs;
use super::interrupt::Interrupts;
use super::progress::Display;
use super::provider;

/// The folder of the logs of a pair that did not start.
const LOGS: &str = "start";

/// How long a start may take: the first one builds Kubernetes.
const START: Duration = Duration::from_mins(40);

/// Why there is no pair.
pub(super) enum Ended {
    /// Somebody interrupted; everything is taken down.
    Interrupted(Exit),
    /// It did not start.
    Failed(Box<ClientError>),
}

/// Brings up a pair of one's own.
pub(super) async fn start(
    root: &StateRoot,
    args: &PairArgs,
    purpose: &str,
    kept: bool,
    keep_logs: Option<&Path>,
    display: &Display,
    interrupts: &Interrupts,
) -> Result<Client, Ended> {
    let options = PairOptions {
        provider: provider::choose(args, display).await,
        node_image: args.node_image.clone(),
        operator_bin: args.operator_bin.clone(),
        operator_image: args.operator_image.clone(),
        operator_manifests: args.operator_manifests.clone(),
        operator_args: args.operator_arg.clone(),
        webhooks: !args.no_webhooks,
        seed: args.seed.unwrap_or_default(),
    };
    let options = serde_json::to_value(options).unwrap_or_default();
    let wanted = Wanted {
        kept,
        deadline: START,
        keep_logs: keep_logs.map(|path| path.join(LOGS)),
        ..Wanted::private(purpose, options)
    };
    let cancel = wanted.cancel.clone();
    let started = std::time::Instant::now();
    let mut starting = std::pin::pin!(Client::start_or_attach(root, wanted, |step| display.starting(step)));
    tokio::select! {
        client = &mut starting => {
            let took = humantime::format_duration(Duration::from_millis(
                u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            ));
            let word = if client.is_ok() { "ready" } else { "not started" };
            display.started(&format!("pair: {word} after {took}"));
            client.map_err(|error| Ended::Failed(Box::new(error)))
        }
        exit = interrupts.once() => {
            display.started("interrupted: taking everything down");
            cancel.cancel();
            // It ends with the cancellation, or was ready just now and is dropped: the supervisor then takes it down.
            if let Ok(client) = starting.await
                && let Err(error) = client.release(false).await
            {
                display.say(&chain(&error));
            }
            Err(Ended::Interrupted(exit))
        }
    }
}

/// A failed start in words: the chain of causes, the ends of the logs that may tell more, and where the logs are if they
/// were kept in a folder of `kept`.
pub(super) fn in_words(error: &ClientError, kept: &Path) -> String {
    let mut text = match error {
        // Its own words add nothing to the causes.
        ClientError::Failed { source, .. } => chain(source),
        other => chain(other),
    };
    if let ClientError::Failed { logs, .. } = error {
        for log in logs {
            text += &format!("\n\nthe end of the log of {}:\n{}", log.part, log.tail.trim_end());
        }
    }
    let logs = kept.join(LOGS);
    if logs.is_dir() {
        text += &format!("\n\nits logs: {}", logs.display());
    }
    text
}
