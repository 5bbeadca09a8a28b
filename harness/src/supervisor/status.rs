//! What pairs there are, and how they are.

use std::{path::Path, path::PathBuf, time::Duration};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    control::{Control, ControlError},
    folder::{self, Entry, Owner, PairFolder},
    life::{Holder, Phase},
    protocol::{Ask, Reply, Report},
    root::{RootError, StateRoot},
};
use crate::process::{ProcessIdentity, ProcessRecord, identity::resident_bytes};

/// A supervisor that takes longer than this to answer is called unresponsive.
const ANSWER_DEADLINE: Duration = Duration::from_secs(3);

/// How a pair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairState {
    /// Its parts are being started.
    Starting,
    /// It can be used.
    Running,
    /// It runs, but a part of it died.
    Broken,
    /// It is being taken down.
    Stopping,
    /// Its supervisor lives but does not answer.
    Unresponsive,
    /// Its supervisor died; `down` removes what it left.
    Dead,
}

/// One pair.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairStatus {
    /// Its name, `pair-X`.
    pub pair: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its addresses, as 127.X.0.0/16.
    pub addresses: String,
    /// How it is.
    pub state: PairState,
    /// Who made it, for what and when; `None` if that record is torn.
    pub owner: Option<Owner>,
    /// Its age; `None` if its record is torn.
    pub age: Option<Duration>,
    /// Whether it lives until it is taken down.
    pub kept: bool,
    /// Who holds it.
    pub holders: Vec<Holder>,
    /// Parts that died.
    pub died: Vec<String>,
    /// Its processes, supervisor first, dead ones included.
    pub processes: Vec<ProcessStatus>,
    /// Resident memory of all its processes, in bytes. Shared pages count once per process.
    pub memory_bytes: u64,
}

/// One process of a pair.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessStatus {
    /// Which part.
    pub part: String,
    /// Its process number.
    pub pid: i32,
    /// Whether it runs.
    pub alive: bool,
    /// Its resident memory in bytes.
    pub memory_bytes: u64,
}

/// All pairs of a root, in the order of their names.
pub async fn status(root: &StateRoot) -> Result<Vec<PairStatus>, RootError> {
    let mut pairs = Vec::new();
    for entry in folder::entries(root)? {
        if let Entry::Pair(folder) = entry {
            pairs.push(one(&folder).await);
        }
    }
    pairs.sort_by_key(|pair| pair.addresses.clone());
    Ok(pairs)
}

async fn one(folder: &PairFolder) -> PairStatus {
    let report = report(folder).await;
    let owner = folder.owner().ok();
    let processes = processes(&folder.path, folder.supervisor().ok());
    let age = owner.as_ref().map(|owner| Timestamp::now().duration_since(owner.created).unsigned_abs());
    let answered = report.as_ref().ok();
    PairStatus {
        pair: folder.name(),
        folder: folder.path.clone(),
        addresses: folder.addresses.to_string(),
        state: report.as_ref().map_or_else(|state| *state, state),
        kept: answered.map_or_else(|| owner.as_ref().is_some_and(|owner| owner.kept), |report| report.kept),
        holders: answered.map(|report| report.holders.clone()).unwrap_or_default(),
        died: answered.map(|report| report.died.clone()).unwrap_or_default(),
        memory_bytes: processes.iter().map(|process| process.memory_bytes).sum(),
        processes,
        owner,
        age,
    }
}

/// The supervisor's report, or what its silence means.
async fn report(folder: &PairFolder) -> Result<Report, PairState> {
    if folder::is_held(&folder.path).is_ok_and(|held| !held) {
        return Err(PairState::Dead);
    }
    match ask(folder).await {
        Ok(Reply::Status(report)) => Ok(report),
        Err(ControlError::Gone { .. }) => Err(gone(folder).await),
        Ok(_) | Err(_) => Err(PairState::Unresponsive),
    }
}

async fn ask(folder: &PairFolder) -> Result<Reply, ControlError> {
    Control::open(&folder.path, ANSWER_DEADLINE).await?.ask(Ask::Status).await
}

/// A supervisor that takes no connections is about to end, or has ended by now.
async fn gone(folder: &PairFolder) -> PairState {
    if let Ok(supervisor) = folder.supervisor()
        && supervisor.ended(ANSWER_DEADLINE).await.is_ok_and(|ended| ended)
    {
        return PairState::Dead;
    }
    PairState::Unresponsive
}

fn state(report: &Report) -> PairState {
    match report.phase {
        Phase::Starting => PairState::Starting,
        Phase::Running if report.died.is_empty() => PairState::Running,
        Phase::Running => PairState::Broken,
        Phase::Stopping => PairState::Stopping,
    }
}

fn processes(folder: &Path, supervisor: Option<ProcessIdentity>) -> Vec<ProcessStatus> {
    let records = ProcessRecord::read_all(&folder::processes(folder)).unwrap_or_default();
    let parts = records.into_iter().flatten().map(|record| (record.name, record.identity));
    let supervisor = supervisor.into_iter().map(|identity| ("supervisor".to_owned(), identity));
    supervisor.chain(parts).map(|(part, identity)| process(part, &identity)).collect()
}

fn process(part: String, identity: &ProcessIdentity) -> ProcessStatus {
    let alive = identity.is_alive();
    let memory_bytes = if alive { resident_bytes(identity.pid).unwrap_or(0) } else { 0 };
    ProcessStatus { part, pid: identity.pid, alive, memory_bytes }
}
