//! `onewriter collect`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::failure::chain;
use harness::pair::PairDescription;
use harness::pair::collect::collect as save;
use harness::report::Exit;
use harness::supervisor::status::{PairState, PairStatus};
use harness::supervisor::{Client, ClientError, StateRoot};
use serde::Serialize;

use super::args::{CollectArgs, Global};
use super::{logs, output};

/// How long a pair may take to let somebody in.
const ATTACH: Duration = Duration::from_secs(10);

/// What was saved of a pair.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Saved {
    pair: String,
    folder: PathBuf,
    objects: usize,
    /// What could not be saved, and why.
    missing: Vec<String>,
}

/// Saves what is to be seen of running pairs: 4 where none runs, 98 where something could not be saved.
pub(super) async fn collect(global: &Global, args: CollectArgs) -> Exit {
    let pairs = match logs::pairs(args.pair.as_deref()).await {
        Ok(pairs) => pairs,
        Err(error) => return output::fail(Exit::SetupFailed, &chain(&error)),
    };
    if pairs.is_empty() {
        return output::fail(Exit::NothingSelected, &logs::no_pair(args.pair.as_deref()));
    }
    let target = args.output.unwrap_or_else(default_target);
    if target.exists() {
        let message = format!("{} exists already; name another folder with --output", target.display());
        return output::fail(Exit::Usage, &message);
    }
    let mut all = Vec::new();
    for pair in &pairs {
        match one(pair, &target.join(&pair.pair)).await {
            Ok(saved) => all.push(saved),
            Err(message) => return output::fail(Exit::Internal, &message),
        }
    }
    let shown = output::show(global, &all, || all.iter().map(in_words).collect());
    let whole = all.iter().all(|saved| saved.missing.is_empty());
    if whole { shown } else { Exit::Unknown.or(shown) }
}

fn default_target() -> PathBuf {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + seconds);
    let name: String = now.to_string().chars().filter(char::is_ascii_digit).collect();
    PathBuf::from(format!("collected-{name}"))
}

async fn one(pair: &PairStatus, folder: &Path) -> Result<Saved, String> {
    if !matches!(pair.state, PairState::Running | PairState::Broken) {
        let missing = vec![format!("the pair is {:?}; only a running pair can be asked", pair.state)];
        return Ok(Saved { pair: pair.pair.clone(), folder: folder.to_owned(), objects: 0, missing });
    }
    let root = StateRoot::from_env().map_err(|error| chain(&error))?;
    let client = attach(&root, pair).await.map_err(|error| format!("{}: {}", pair.pair, chain(&error)))?;
    let description: PairDescription =
        serde_json::from_value(client.description().clone()).map_err(|error| chain(&error))?;
    let saved = save(&description, folder).await.map_err(|error| chain(&error));
    client.release(true).await.map_err(|error| chain(&error))?;
    let saved = saved?;
    Ok(Saved {
        pair: pair.pair.clone(),
        folder: folder.to_owned(),
        objects: saved.objects,
        missing: saved.missing,
    })
}

async fn attach(root: &StateRoot, pair: &PairStatus) -> Result<Client, ClientError> {
    Client::attach(root, &pair.folder, "collect", ATTACH).await
}

fn in_words(saved: &Saved) -> String {
    let mut text = format!(
        "{}: {} objects, logs and journal in {}\n",
        saved.pair,
        saved.objects,
        saved.folder.display()
    );
    for missing in &saved.missing {
        text += &format!("  missing: {missing}\n");
    }
    text
}
