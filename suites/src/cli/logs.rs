//! `onewriter logs`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use harness::failure::chain;
use harness::process::log_tail::log_tail;
use harness::report::Exit;
use harness::supervisor::status::{PairStatus, status};
use harness::supervisor::{RootError, StateRoot};
use serde::Serialize;

use super::args::{Global, LogsArgs};
use super::output;

/// A pair's folders do not nest deeper than this.
const DEPTH: usize = 4;

/// The log of a part of a pair.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Log {
    pair: String,
    part: String,
    path: PathBuf,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<String>,
}

/// Shows the ends of logs, or which there are: 4 where no log has the part's name.
pub(super) async fn logs(global: &Global, args: LogsArgs) -> Exit {
    let pairs = match pairs(args.pair.as_deref()).await {
        Ok(pairs) => pairs,
        Err(error) => return output::fail(Exit::SetupFailed, &chain(&error)),
    };
    if pairs.is_empty() {
        return output::fail(Exit::NothingSelected, &no_pair(args.pair.as_deref()));
    }
    let mut all: Vec<Log> = pairs.iter().flat_map(logs_of).collect();
    let Some(part) = &args.part else {
        return output::show(global, &all, || all.iter().map(listed).collect());
    };
    let known = all.iter().map(|log| log.part.clone()).collect::<Vec<_>>().join(", ");
    all.retain(|log| log.part.contains(part.as_str()));
    if all.is_empty() {
        return output::fail(Exit::NothingSelected, &format!("no part is named `{part}`; there are {known}"));
    }
    for log in &mut all {
        log.tail = Some(log_tail(&log.path, args.lines));
    }
    output::show(global, &all, || all.iter().map(shown).collect())
}

/// The pairs of this user; only the one of that name if there is a name.
pub(super) async fn pairs(name: Option<&str>) -> Result<Vec<PairStatus>, RootError> {
    let mut pairs = status(&StateRoot::from_env()?).await?;
    pairs.retain(|pair| name.is_none_or(|name| pair.pair == name));
    Ok(pairs)
}

/// That there is no such pair, and what to do.
pub(super) fn no_pair(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("no pair is named `{name}`; `onewriter status` lists them"),
        None => "nothing runs; `onewriter up` starts a pair, and `run --keep=failed` keeps one".to_owned(),
    }
}

fn logs_of(pair: &PairStatus) -> Vec<Log> {
    let mut logs: Vec<Log> = files(&pair.folder, DEPTH)
        .into_iter()
        .map(|path| Log {
            pair: pair.pair.clone(),
            part: part(&pair.folder, &path),
            bytes: fs::metadata(&path).map_or(0, |file| file.len()),
            path,
            tail: None,
        })
        .collect();
    logs.sort();
    logs
}

/// Every log below a folder. What cannot be listed, such as a folder that is being removed, has none.
fn files(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).unwrap_or_default();
    let mut found = Vec::new();
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type());
        match kind {
            Ok(kind) if kind.is_dir() && depth > 0 => found.extend(files(&path, depth - 1)),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|end| end == "log") => {
                found.push(path);
            }
            _ => {}
        }
    }
    found
}

/// The path of a log inside its pair, without its ending.
fn part(folder: &Path, log: &Path) -> String {
    log.strip_prefix(folder).unwrap_or(log).with_extension("").display().to_string()
}

fn listed(log: &Log) -> String {
    format!("{}  {:40} {:>9} KiB\n", log.pair, log.part, log.bytes.div_ceil(1024))
}

fn shown(log: &Log) -> String {
    let tail = log.tail.as_deref().unwrap_or_default();
    format!("==> {} {} ({})\n{}\n\n", log.pair, log.part, log.path.display(), tail.trim_end())
}
