//! Getting a pair: starting one, or joining one that is there.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    claim::{self, Claim},
    client::Client,
    client_error::ClientError,
    control::{Control, ControlError, Hailed, hail},
    down::{self, Removal},
    folder::{self, Entry, Owner, PairFolder},
    joined::Joined,
    locking::released_by,
    pair::{LogTail, Progress},
    protocol::{Ask, Reply},
    root::{RootError, RootLock, StateRoot},
    server,
};
use crate::{
    entry::{self, ExecutableError},
    process::{IdentityError, ProcessIdentity},
};

/// How long a supervisor may take to say who it is. It does so before it starts anything.
const WELCOME_DEADLINE: Duration = Duration::from_secs(30);
/// How long an ending supervisor may take.
const END_DEADLINE: Duration = Duration::from_mins(1);

/// The usual time a pair lives on after its last client left.
pub const LINGER: Duration = Duration::from_secs(15);

/// Which pair is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Who asks for the same key gets the same pair. `None`: a pair of one's own.
    pub key: Option<String>,
    /// What for, in words that others may read.
    pub purpose: String,
    /// What the pair is started with, if it has to be started.
    pub options: serde_json::Value,
    /// Whether it lives on without clients, until it is taken down.
    pub kept: bool,
    /// How long it lives on without clients otherwise; usually [`LINGER`].
    pub linger: Duration,
    /// How long all this may take.
    pub deadline: Duration,
    /// Where the logs are copied to should the start fail.
    pub keep_logs: Option<PathBuf>,
    /// Gives up: the start is cancelled unless others wait for it, too, and everything removed.
    pub cancel: CancellationToken,
}

/// Why no supervisor could be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// This executable cannot be found.
    #[error("cannot run this executable as a supervisor")]
    Executable(#[from] ExecutableError),
    /// This process cannot be identified.
    #[error("cannot write down who starts the pair")]
    Identity(#[from] IdentityError),
    /// It could not be started.
    #[error("cannot start the supervisor")]
    Spawn(#[from] io::Error),
}

impl Wanted {
    /// A pair of one's own for `purpose`, with the usual times: it lingers 15 s and may take 5 min to start.
    pub fn private(purpose: impl Into<String>, options: serde_json::Value) -> Self {
        Self {
            key: None,
            purpose: purpose.into(),
            options,
            kept: false,
            linger: LINGER,
            deadline: Duration::from_mins(5),
            keep_logs: None,
            cancel: CancellationToken::new(),
        }
    }

    /// A pair shared by all who ask for `key`.
    pub fn shared(key: impl Into<String>, purpose: impl Into<String>, options: serde_json::Value) -> Self {
        Self { key: Some(key.into()), ..Self::private(purpose, options) }
    }
}

impl Client {
    /// Joins the pair of the wanted key, or starts one, and returns once it can be used.
    ///
    /// Of many who ask for one key at once exactly one starts the pair; the others wait for it. All hear of its
    /// progress from the beginning. A pair that is going away is waited for, a dead one of that key is removed.
    ///
    /// Dropping the future counts as vanishing: the start is cancelled after the linger time. To cancel at once
    /// use [`Wanted::cancel`].
    pub async fn start_or_attach(
        root: &StateRoot,
        wanted: Wanted,
        mut progress: impl FnMut(&Progress) + Send,
    ) -> Result<Self, ClientError> {
        let started = Instant::now();
        loop {
            let left = wanted.deadline.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(ClientError::Timeout { deadline: wanted.deadline, last: None });
            }
            let found = find_or_start(root, &wanted).await?;
            let (folder, started) = (found.folder.clone(), found.started);
            match join(found).await? {
                Some(joined) => return joined.ready(root, &wanted, left, &mut progress).await,
                None if started => return Err(lost(&folder)),
                None => {}
            }
        }
    }

    /// Joins the running pair of a folder, whoever it was started for; never starts one.
    pub async fn attach(
        root: &StateRoot,
        folder: &Path,
        purpose: &str,
        deadline: Duration,
    ) -> Result<Self, ClientError> {
        let gone = || ClientError::Stopping { reason: "no supervisor takes connections any more".into() };
        let folder = PairFolder::at(folder).ok_or_else(gone)?;
        let hailed = hail(&folder.path, purpose, true).await.map_err(|_| gone())?;
        let joined = match tokio::time::timeout(deadline, Joined::welcomed(&folder, false, hailed)).await {
            Err(_) => return Err(ClientError::Silent { folder: folder.path, deadline }),
            Ok(Err(ControlError::Mismatch { problem })) => {
                return Err(ClientError::Mismatch { pair: folder.name(), problem, holders: Vec::new() });
            }
            Ok(Err(_)) => return Err(gone()),
            Ok(Ok(joined)) => joined,
        };
        let wanted = Wanted { deadline, ..Wanted::private(purpose, serde_json::Value::Null) };
        joined.ready(root, &wanted, deadline, &mut |_| {}).await
    }
}

/// A pair with a supervisor.
struct Found {
    folder: PairFolder,
    /// Whether this call started it.
    started: bool,
    /// A connection to it; `None` if nobody takes connections.
    hailed: Option<Hailed>,
}

/// `None`: the supervisor is gone by now, so look again.
async fn join(found: Found) -> Result<Option<Joined>, ClientError> {
    let Found { folder, started, hailed } = found;
    let Some(hailed) = hailed else {
        return wait_for_end(&folder.path).await.map(|()| None);
    };
    match tokio::time::timeout(WELCOME_DEADLINE, Joined::welcomed(&folder, started, hailed)).await {
        Err(_) => Err(ClientError::Silent { folder: folder.path, deadline: WELCOME_DEADLINE }),
        Ok(Ok(joined)) => Ok(Some(joined)),
        Ok(Err(ControlError::Mismatch { problem })) => replace(&folder, problem).await.map(|()| None),
        Ok(Err(_)) => wait_for_end(&folder.path).await.map(|()| None),
    }
}

/// Takes a pair of another build down, unless somebody uses it.
async fn replace(folder: &PairFolder, problem: String) -> Result<(), ClientError> {
    let mut holders = Vec::new();
    if let Ok(mut control) = Control::open(&folder.path, WELCOME_DEADLINE).await {
        match control.ask(Ask::Down { force: false }).await {
            Ok(Reply::Stopping) => {
                return end_of(&folder.path, &control.supervisor).await;
            }
            Ok(Reply::Busy { holders: others }) => holders = others,
            _ => {}
        }
    }
    Err(ClientError::Mismatch { pair: folder.name(), problem, holders })
}

async fn wait_for_end(folder: &Path) -> Result<(), ClientError> {
    match folder::read_supervisor(folder) {
        Ok(supervisor) => end_of(folder, &supervisor).await,
        // Gone with its folder, or dead before it was anybody.
        Err(_) => Ok(()),
    }
}

async fn end_of(folder: &Path, supervisor: &ProcessIdentity) -> Result<(), ClientError> {
    let released = async { released_by(supervisor, folder, END_DEADLINE).await.unwrap_or(true) };
    if supervisor.ended(END_DEADLINE).await? && released.await {
        return Ok(());
    }
    Err(ClientError::Silent { folder: folder.into(), deadline: END_DEADLINE })
}

fn lost(folder: &PairFolder) -> ClientError {
    ClientError::Lost { log: Box::new(LogTail::read("supervisor", folder.log())) }
}

/// Under the root's lock, so that exactly one starts.
async fn find_or_start(root: &StateRoot, wanted: &Wanted) -> Result<Found, ClientError> {
    let lock = root.lock_or_create().await?;
    if let Some(key) = &wanted.key
        && let Some(folder) = find(root, &lock, key).await?
    {
        let hailed = hail(&folder.path, &wanted.purpose, true).await.ok();
        return Ok(Found { folder, started: false, hailed });
    }
    let owner = owner(root, wanted)?;
    let claim = claim::claim(root, &lock, &owner, &wanted.options)?;
    let folder = claim.folder.clone();
    // Before there is a supervisor, so that it never finds itself without the client it was started for.
    let started = match hail(&folder.path, &wanted.purpose, true).await {
        Ok(hailed) => spawn(claim).map(|()| hailed),
        Err(error) => {
            drop(claim);
            Err(SpawnError::Spawn(std::io::Error::other(error)))
        }
    };
    match started {
        Ok(hailed) => Ok(Found { folder, started: true, hailed: Some(hailed) }),
        Err(error) => {
            down::remove_dead(&lock, &folder).await;
            Err(error.into())
        }
    }
}

/// The pair of a key, if somebody looks after it. What is left of a dead one is removed.
async fn find(root: &StateRoot, lock: &RootLock, key: &str) -> Result<Option<PairFolder>, RootError> {
    for entry in folder::entries(root)? {
        let Entry::Pair(folder) = entry else { continue };
        let wanted = folder.owner().is_ok_and(|owner| owner.key == key);
        if wanted && matches!(down::remove_dead(lock, &folder).await, Removal::Alive) {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

fn owner(root: &StateRoot, wanted: &Wanted) -> Result<Owner, SpawnError> {
    let id = format!("{:016x}", rand::random::<u64>());
    Ok(Owner {
        key: wanted.key.clone().unwrap_or_else(|| format!("private-{id}")),
        id,
        purpose: wanted.purpose.clone(),
        kept: wanted.kept,
        linger: wanted.linger,
        keep_logs: wanted.keep_logs.as_deref().map(std::path::absolute).transpose()?,
        root_stays: root.stays(),
        creator: ProcessIdentity::current()?,
        created: Timestamp::now(),
        version: env!("CARGO_PKG_VERSION").into(),
    })
}

/// Starts the supervisor and hands the claim over to it.
fn spawn(claim: Claim) -> Result<(), SpawnError> {
    let Claim { folder, lock, beacon, listener } = claim;
    let mut command = tokio::process::Command::new(entry::executable()?);
    command.arg0(entry::shown_name());
    command.arg(server::COMMAND).arg(&folder.path);
    command.stdin(inherit(listener)).stdout(inherit(lock)).stderr(inherit(beacon));
    // Not killed with this client, and reaped by the runtime should this client outlive it.
    command.kill_on_drop(false);
    drop(command.spawn()?);
    Ok(())
}

fn inherit(descriptor: impl Into<OwnedFd>) -> Stdio {
    Stdio::from(File::from(descriptor.into()))
}
