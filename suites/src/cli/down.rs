//! `onewriter down`.

use harness::failure::chain;
use harness::report::Exit;
use harness::supervisor::StateRoot;
use harness::supervisor::down::{DownOptions, Outcome, PairDown, down as take_down};

use super::args::{DownArgs, Global};
use super::output;

/// Takes down every pair that nobody uses, and what killed runs left behind.
pub(super) async fn down(global: &Global, args: DownArgs) -> Exit {
    let options = DownOptions { force: args.force, ..DownOptions::default() };
    let done = match StateRoot::from_env() {
        Ok(root) => take_down(&root, &options).await,
        Err(error) => Err(error),
    };
    match done {
        Err(error) => output::fail(Exit::SetupFailed, &chain(&error)),
        Ok(pairs) => {
            let shown = output::show(global, &pairs, || in_words(&pairs));
            let failed = pairs.iter().any(|pair| matches!(pair.outcome, Outcome::Failed { .. }));
            if failed { Exit::Internal } else { shown }
        }
    }
}

fn in_words(pairs: &[PairDown]) -> String {
    if pairs.is_empty() {
        return "nothing to take down\n".to_owned();
    }
    pairs.iter().map(|pair| format!("{}: {}\n", pair.pair, outcome(&pair.outcome))).collect()
}

fn outcome(outcome: &Outcome) -> String {
    let ended = |count: usize| {
        if count == 1 { "1 process ended".to_owned() } else { format!("{count} processes ended") }
    };
    match outcome {
        Outcome::TornDown => "taken down".to_owned(),
        Outcome::Killed { reason, killed } => format!("killed ({reason}), {}, removed", ended(killed.len())),
        Outcome::Removed { killed } => format!("left over; {}, removed", ended(killed.len())),
        Outcome::InUse { holders } => {
            let users: Vec<String> =
                holders.iter().map(|h| format!("process {} ({})", h.process.pid, h.purpose)).collect();
            format!("left alone: in use by {}; --force takes it down all the same", users.join(", "))
        }
        Outcome::Incompatible { problem } => {
            format!("left alone: {problem}, so who uses it is unknown; --force takes it down all the same")
        }
        Outcome::BeingClaimed => "left alone: somebody is starting it".to_owned(),
        Outcome::NotOurs { why } => format!("left alone: {why}"),
        Outcome::Failed { chain } => format!("STILL THERE: {}", chain.join(": ")),
    }
}
