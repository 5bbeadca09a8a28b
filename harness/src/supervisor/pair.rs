//! What a supervisor owns: the interface to the pair of sites, which it knows nothing else about.

use std::{error::Error, path::PathBuf, sync::Arc};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::address::PairAddresses;
use crate::process::{Launcher, log_tail::log_tail};

/// How many lines of a log are shown with a failure.
pub const TAIL_LINES: usize = 40;

/// Any error, as a pair reports it; its source chain is what clients get to see.
pub type AnyError = Box<dyn Error + Send + Sync>;

/// Something that can be started once in a folder of its own, with children and addresses of its own.
pub trait Pair: Send + Sync {
    /// Starts it. The future may be dropped at any moment: what was launched by then is stopped by the caller.
    fn start(&self, context: Context) -> BoxFuture<'static, Result<Arc<dyn Running>, StartError>>;
}

/// A started pair.
pub trait Running: Send + Sync {
    /// What clients need to use it: paths and addresses, no secret.
    fn description(&self) -> Value;

    /// Resolves with the next part that ended without being told to. Must be safe to drop and call again.
    fn died(&self) -> BoxFuture<'_, PartDeath>;

    /// Answers a request of a client. Several may be under way at once.
    fn request(&self, body: Value) -> BoxFuture<'_, Result<Value, AnyError>>;

    /// Ends it in order. What still runs afterwards, or after 20 s, is stopped by the caller.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// What a pair gets to start with.
#[derive(Debug, Clone)]
pub struct Context {
    /// Its folder (mode 0700), removed with everything in it when the pair is torn down.
    pub folder: PathBuf,
    /// Starts its children.
    pub launcher: Launcher,
    /// The addresses that are its own.
    pub addresses: PairAddresses,
    /// Where it says how far it is.
    pub progress: ProgressSink,
    /// What the first client asked for.
    pub options: Value,
}

/// One step of a start, for people who wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// What it is about, such as `east` or `kube-apiserver`.
    pub part: String,
    /// What it does now, or has done.
    pub message: String,
}

/// Where a pair says how far it is. Clones go to the same place.
#[derive(Debug, Clone)]
pub struct ProgressSink {
    sender: mpsc::UnboundedSender<Progress>,
}

impl ProgressSink {
    /// A sink and where its messages come out.
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Progress>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender }, receiver)
    }

    /// Says what `part` does now. Nobody may be listening any more; that is no error.
    pub fn report(&self, part: impl Into<String>, message: impl Into<String>) {
        drop(self.sender.send(Progress { part: part.into(), message: message.into() }));
    }
}

/// The end of a log, to be shown with a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogTail {
    /// Whose log.
    pub part: String,
    /// The file.
    pub log: PathBuf,
    /// Its last lines.
    pub tail: String,
}

impl LogTail {
    /// Reads the end of a log now.
    pub fn read(part: impl Into<String>, log: impl Into<PathBuf>) -> Self {
        let log = log.into();
        Self { part: part.into(), tail: log_tail(&log, TAIL_LINES), log }
    }
}

/// A part that ended without being told to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartDeath {
    /// Which part.
    pub part: String,
    /// How it ended, in words.
    pub status: String,
    /// The end of its log.
    pub log: LogTail,
}

/// Why a pair did not start.
#[derive(Debug, thiserror::Error)]
#[error("the pair did not start")]
pub struct StartError {
    source: AnyError,
    logs: Vec<LogTail>,
}

impl StartError {
    /// A start that failed for `source`.
    pub fn new(source: impl Into<AnyError>) -> Self {
        Self { source: source.into(), logs: Vec::new() }
    }

    /// Adds the end of a log that may tell more.
    #[must_use]
    pub fn with_log(mut self, log: LogTail) -> Self {
        self.logs.push(log);
        self
    }

    /// The logs that may tell more.
    pub fn logs(&self) -> &[LogTail] {
        &self.logs
    }
}

/// An error and its sources, outermost first, one text each.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        texts.push(error.to_string());
        source = error.source();
    }
    texts
}
