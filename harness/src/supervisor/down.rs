//! Taking pairs down, whoever left them behind.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use super::{
    control::{Control, ControlError},
    folder::{self, Entry, PairFolder},
    life::Holder,
    locking::released_by,
    pair::chain,
    protocol::{Ask, Reply},
    reap::{self, Killed},
    removal,
    root::{RootError, RootLock, StateRoot},
};
use crate::process::ProcessIdentity;

/// How `down` goes about it.
#[derive(Debug, Clone)]
pub struct DownOptions {
    /// Takes pairs down that others use.
    pub force: bool,
    /// How long a supervisor may take to answer.
    pub answer_deadline: Duration,
    /// How long a supervisor may take to tear down before it is killed.
    pub teardown_deadline: Duration,
}

impl Default for DownOptions {
    fn default() -> Self {
        Self {
            force: false,
            answer_deadline: Duration::from_secs(10),
            teardown_deadline: Duration::from_mins(1),
        }
    }
}

/// What happened to one pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairDown {
    /// Its name.
    pub pair: String,
    /// Its folder.
    pub folder: PathBuf,
    /// What happened.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What can happen to a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Outcome {
    /// Its supervisor tore it down.
    TornDown,
    /// Its supervisor did not answer or did not end in time, and was killed; the rest was removed.
    Killed {
        /// Why.
        reason: String,
        /// What was ended.
        killed: Vec<Killed>,
    },
    /// Its supervisor was dead already; the rest was removed.
    Removed {
        /// What was ended.
        killed: Vec<Killed>,
    },
    /// It is in use and was left alone.
    InUse {
        /// By whom.
        holders: Vec<Holder>,
    },
    /// Its supervisor is of another version and cannot be asked who uses it; it was left alone.
    Incompatible {
        /// What differs.
        problem: String,
    },
    /// Somebody is starting it this moment; it was left alone.
    BeingClaimed,
    /// It is not a pair of ours and was left alone.
    NotOurs {
        /// Why.
        why: String,
    },
    /// It is still there.
    Failed {
        /// The error and its sources.
        chain: Vec<String>,
    },
}

impl PairDown {
    /// Whether nothing of the pair is left.
    pub fn is_gone(&self) -> bool {
        matches!(self.outcome, Outcome::TornDown | Outcome::Killed { .. } | Outcome::Removed { .. })
    }
}

/// Takes down every pair that nobody uses, by force those too that somebody does. Repeating it does no harm.
pub async fn down(root: &StateRoot, options: &DownOptions) -> Result<Vec<PairDown>, RootError> {
    let mut done = Vec::new();
    for entry in folder::entries(root)? {
        done.extend(one(root, entry, options).await?);
    }
    // A supervisor that has removed its folder holds this lock until it has ended.
    if let Some(lock) = root.lock().await? {
        root.remove_if_empty(&lock);
    }
    Ok(done)
}

async fn one(root: &StateRoot, entry: Entry, options: &DownOptions) -> Result<Option<PairDown>, RootError> {
    let (path, outcome) = match entry {
        Entry::Foreign(path, why) => (path, Some(Outcome::NotOurs { why: why.into() })),
        Entry::Remains(path) => {
            let outcome = remains(root, &path, options).await?;
            (path, outcome)
        }
        Entry::Pair(folder) => {
            let outcome = pair(root, &folder, options).await?;
            (folder.path, outcome)
        }
    };
    let pair = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(outcome.map(|outcome| PairDown { pair, folder: path, outcome }))
}

/// Whether somebody looks after a pair, and what became of it if nobody does.
#[derive(Debug)]
pub(super) enum Removal {
    /// Somebody does.
    Alive,
    /// There is no such pair any more.
    Absent,
    /// Nobody does, so it was removed, or could not be.
    Dead(Outcome),
}

/// `None` if the pair went while we looked.
async fn pair(
    root: &StateRoot,
    folder: &PairFolder,
    options: &DownOptions,
) -> Result<Option<Outcome>, RootError> {
    match remove_if_dead(root, folder).await? {
        Removal::Alive => {}
        Removal::Absent => return Ok(None),
        Removal::Dead(outcome) => return Ok(Some(outcome)),
    }
    let outcome = match ask(folder, options).await {
        Ok(Answer::Busy(holders)) => Outcome::InUse { holders },
        Ok(Answer::Stopping(supervisor)) => stopping(root, folder, &supervisor, options).await?,
        Err(ControlError::Gone { .. }) => gone(root, folder, options).await?,
        Err(ControlError::Mismatch { problem }) => incompatible(root, folder, problem, options).await?,
        Err(error @ ControlError::Silent { .. }) => kill(root, folder, error.to_string()).await?,
    };
    Ok(Some(outcome))
}

/// What a supervisor answers to being asked to end.
enum Answer {
    Stopping(ProcessIdentity),
    Busy(Vec<Holder>),
}

async fn ask(folder: &PairFolder, options: &DownOptions) -> Result<Answer, ControlError> {
    let mut control = Control::open(&folder.path, options.answer_deadline).await?;
    match control.ask(Ask::Down { force: options.force }).await? {
        Reply::Busy { holders } => Ok(Answer::Busy(holders)),
        _ => Ok(Answer::Stopping(control.supervisor)),
    }
}

/// A supervisor that took its pair down has left no folder; one that died while doing so may have.
async fn stopping(
    root: &StateRoot,
    folder: &PairFolder,
    supervisor: &ProcessIdentity,
    options: &DownOptions,
) -> Result<Outcome, RootError> {
    if !ended(supervisor, options.teardown_deadline).await {
        let reason = format!("it did not tear down within {:?}", options.teardown_deadline);
        return kill(root, folder, reason).await;
    }
    if let Some(outcome) = still_locked(supervisor, folder).await {
        return Ok(outcome);
    }
    match remove_if_dead(root, folder).await? {
        Removal::Dead(outcome) => Ok(outcome),
        // Alive: others have taken the free addresses by now.
        Removal::Absent | Removal::Alive => Ok(Outcome::TornDown),
    }
}

/// Nobody takes connections though somebody held the lock: a supervisor about to end, or a pair just claimed.
async fn gone(root: &StateRoot, folder: &PairFolder, options: &DownOptions) -> Result<Outcome, RootError> {
    if let Ok(supervisor) = folder.supervisor() {
        return stopping(root, folder, &supervisor, options).await;
    }
    Ok(match remove_if_dead(root, folder).await? {
        Removal::Dead(outcome) => outcome,
        Removal::Absent => Outcome::TornDown,
        Removal::Alive => Outcome::BeingClaimed,
    })
}

/// Every version understands a signal; but who uses the pair cannot be known, so that takes force.
async fn incompatible(
    root: &StateRoot,
    folder: &PairFolder,
    problem: String,
    options: &DownOptions,
) -> Result<Outcome, RootError> {
    let Ok(supervisor) = folder.supervisor() else { return Ok(Outcome::Incompatible { problem }) };
    if !options.force {
        return Ok(Outcome::Incompatible { problem });
    }
    match supervisor.terminate() {
        Ok(_) => stopping(root, folder, &supervisor, options).await,
        Err(error) => Ok(Outcome::Failed { chain: chain(&error) }),
    }
}

/// Ends a supervisor that cannot be talked to, then whatever it leaves.
async fn kill(root: &StateRoot, folder: &PairFolder, reason: String) -> Result<Outcome, RootError> {
    // Without a record the supervisor has only just come up, and without an answer nobody knows who it is.
    let Ok(supervisor) = folder.supervisor() else { return Ok(Outcome::BeingClaimed) };
    if let Err(error) = supervisor.kill() {
        return Ok(Outcome::Failed { chain: chain(&error) });
    }
    ended(&supervisor, KILL_DEADLINE).await;
    if let Some(outcome) = still_locked(&supervisor, folder).await {
        return Ok(outcome);
    }
    Ok(match remove_if_dead(root, folder).await? {
        Removal::Dead(Outcome::Removed { killed }) => Outcome::Killed { reason, killed },
        Removal::Dead(other) => other,
        Removal::Absent | Removal::Alive => Outcome::Killed { reason, killed: Vec::new() },
    })
}

/// `None` if the lock of an ended supervisor is free, as it should be.
async fn still_locked(supervisor: &ProcessIdentity, folder: &PairFolder) -> Option<Outcome> {
    match released_by(supervisor, &folder.path, KILL_DEADLINE).await {
        Ok(true) => None,
        Ok(false) => {
            Some(Outcome::Failed { chain: vec!["its lock is held though its supervisor ended".into()] })
        }
        Err(error) => Some(Outcome::Failed { chain: chain(&error) }),
    }
}

/// How long the kernel may take to end a killed supervisor.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

async fn ended(process: &ProcessIdentity, deadline: Duration) -> bool {
    match process.ended(deadline).await {
        Ok(ended) => ended,
        Err(error) => {
            tracing::warn!(%error, "cannot watch a supervisor");
            !process.is_alive()
        }
    }
}

/// Removes a pair if nobody looks after it.
///
/// Under the root's lock, because a pair that is just being claimed has no holder of its lock either.
async fn remove_if_dead(root: &StateRoot, folder: &PairFolder) -> Result<Removal, RootError> {
    match root.lock().await? {
        Some(lock) => Ok(remove_dead(&lock, folder).await),
        None => Ok(Removal::Absent),
    }
}

/// Removes a pair if nobody looks after it.
pub(super) async fn remove_dead(_lock: &RootLock, folder: &PairFolder) -> Removal {
    if !folder.path.is_dir() {
        return Removal::Absent;
    }
    // Kept until the folder is gone, so that nobody else removes it at the same time.
    let _held = match take_lock(&folder.path) {
        Ok(FolderLock::Held) => return Removal::Alive,
        Ok(FolderLock::Taken(file)) => Some(file),
        Ok(FolderLock::Missing) => None,
        Err(error) => return Removal::Dead(Outcome::Failed { chain: chain(&error) }),
    };
    let killed = match reap::reap(&folder.path).await {
        Ok(killed) => killed,
        Err(error) => return Removal::Dead(Outcome::Failed { chain: chain(&error) }),
    };
    Removal::Dead(match removal::remove(folder).await {
        Ok(()) => Outcome::Removed { killed },
        Err(error) => Outcome::Failed { chain: chain(&error) },
    })
}

/// The lock of a pair's folder.
enum FolderLock {
    /// Somebody holds it.
    Held,
    /// Nobody did; now this does.
    Taken(File),
    /// The folder is only half made.
    Missing,
}

fn take_lock(folder: &Path) -> io::Result<FolderLock> {
    let file = match File::open(folder::lock_file(folder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FolderLock::Missing),
        file => file?,
    };
    match file.try_lock() {
        Ok(()) => Ok(FolderLock::Taken(file)),
        Err(TryLockError::WouldBlock) => Ok(FolderLock::Held),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// What an interrupted removal left. One that is under way ends by itself.
async fn remains(root: &StateRoot, path: &Path, options: &DownOptions) -> Result<Option<Outcome>, RootError> {
    if folder::is_held(path).unwrap_or(false)
        && let Ok(supervisor) = folder::read_supervisor(path)
    {
        ended(&supervisor, options.teardown_deadline).await;
    }
    // No second look at the lock: nothing runs any more when a folder is set aside.
    let Some(_lock) = root.lock().await? else { return Ok(None) };
    if !path.is_dir() {
        return Ok(None);
    }
    let killed = match reap::reap(path).await {
        Ok(killed) => killed,
        Err(error) => return Ok(Some(Outcome::Failed { chain: chain(&error) })),
    };
    Ok(Some(match removal::remove_remains(path).await {
        Ok(()) => Outcome::Removed { killed },
        Err(error) => Outcome::Failed { chain: chain(&error) },
    }))
}
