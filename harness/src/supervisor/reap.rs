//! Ending what a dead supervisor left behind, and nothing else.

use std::{path::Path, time::Duration};

use serde::Serialize;

use super::folder::{processes, read_owner, read_supervisor};
use crate::process::{IdentityError, Marker, ProcessIdentity, ProcessRecord, RecordError};

/// How long the kernel may take to end a killed process.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// Who forks faster than it is killed is given up after so many rounds.
const ROUNDS: usize = 20;

/// Why something may still run.
#[derive(Debug, thiserror::Error)]
pub enum ReapError {
    /// The kernel refused.
    #[error("cannot end a process of the pair")]
    Identity(#[from] IdentityError),
    /// The folder of records could not be listed.
    #[error("cannot read which processes the pair started")]
    Records(#[from] RecordError),
    /// A killed process is still there.
    #[error("process {pid} was killed but has not ended within {KILL_DEADLINE:?}")]
    Lingers {
        /// Which.
        pid: i32,
    },
    /// New processes appeared as fast as old ones were killed.
    #[error("the pair's processes start others faster than they can be killed")]
    Breeds,
}

/// A process that was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Killed {
    /// Which part it was; `None` for what a part had started in turn.
    pub part: Option<String>,
    /// Which process.
    #[serde(flatten)]
    pub process: ProcessIdentity,
}

/// Kills every process that a pair's folder says is its own, and waits until all have ended.
///
/// Three sources, since each can be torn or incomplete: the records, the supervisor's identity, and the marker in
/// the environment of every descendant.
pub(super) async fn reap(folder: &Path) -> Result<Vec<Killed>, ReapError> {
    let mut killed = Vec::new();
    if let Ok(supervisor) = read_supervisor(folder) {
        killed.extend(kill(Some("supervisor".into()), supervisor).await?);
    }
    for record in ProcessRecord::read_all(&processes(folder))? {
        match record {
            Ok(record) => killed.extend(kill(Some(record.name), record.identity).await?),
            // Its process carries the marker.
            Err(error) => tracing::warn!(%error, "a torn record"),
        }
    }
    let owner = read_owner(folder).ok();
    let find = || match &owner {
        Some(owner) => Marker::carriers_with_id(&owner.id),
        None => Marker::carriers_of(folder),
    };
    killed.extend(kill_carriers(find).await?);
    Ok(killed)
}

/// Kills whatever `find` finds until it finds nothing but this process.
pub(super) async fn kill_carriers(
    find: impl Fn() -> Result<Vec<ProcessIdentity>, IdentityError>,
) -> Result<Vec<Killed>, ReapError> {
    let me = ProcessIdentity::current()?;
    let mut killed = Vec::new();
    for _ in 0..ROUNDS {
        let mut found = find()?;
        found.retain(|process| *process != me);
        if found.is_empty() {
            return Ok(killed);
        }
        for process in found {
            killed.extend(kill(None, process).await?);
        }
    }
    Err(ReapError::Breeds)
}

async fn kill(part: Option<String>, process: ProcessIdentity) -> Result<Option<Killed>, ReapError> {
    if !process.is_alive() || !process.kill()? {
        return Ok(None);
    }
    if !process.ended(KILL_DEADLINE).await? {
        return Err(ReapError::Lingers { pid: process.pid });
    }
    Ok(Some(Killed { part, process }))
}
