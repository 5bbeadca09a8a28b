//! `onewriter status`.

use std::time::Duration;

use harness::failure::chain;
use harness::report::Exit;
use harness::supervisor::StateRoot;
use harness::supervisor::status::{PairStatus, status as look};

use super::args::Global;
use super::output;

/// Shows every pair of this user on this machine.
pub(super) async fn status(global: &Global) -> Exit {
    let pairs = match StateRoot::from_env() {
        Ok(root) => look(&root).await,
        Err(error) => Err(error),
    };
    match pairs {
        Ok(pairs) => output::show(global, &pairs, || in_words(&pairs)),
        Err(error) => output::fail(Exit::SetupFailed, &chain(&error)),
    }
}

fn in_words(pairs: &[PairStatus]) -> String {
    if pairs.is_empty() {
        return "nothing runs\n".to_owned();
    }
    pairs.iter().map(pair_in_words).collect()
}

fn pair_in_words(pair: &PairStatus) -> String {
    let age = pair
        .age
        .map(|age| format!(", for {}", humantime::format_duration(Duration::from_secs(age.as_secs()))));
    let kept = if pair.kept { ", kept until `onewriter down`" } else { "" };
    let mut text = format!("{} {:?}{}{kept}\n", pair.pair, pair.state, age.unwrap_or_default());
    text += &format!("  folder  {}\n", pair.folder.display());
    text += &format!("  memory  {} MiB\n", pair.memory_bytes / (1024 * 1024));
    for holder in &pair.holders {
        text += &format!("  used by process {} ({})\n", holder.process.pid, holder.purpose);
    }
    for process in &pair.processes {
        let died = pair.died.iter().any(|part| part.starts_with(&process.part));
        let state = match (process.alive, died) {
            (true, _) => "",
            (false, true) => "  DIED",
            (false, false) => "  ended",
        };
        text += &format!("  {:>8}  {}{state}\n", process.pid, process.part);
    }
    text
}
