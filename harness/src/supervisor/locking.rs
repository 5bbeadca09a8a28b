//! Waiting for a file lock, but not for ever.

use std::{fs::File, io, path::Path, thread, time::Duration};

use tokio::{sync::oneshot, time::timeout};

use super::folder::{lock_file, read_supervisor};
use crate::process::ProcessIdentity;

/// Takes a file's exclusive lock; `None` if that takes longer than `deadline`.
///
/// On a thread of its own, because a blocked one of the runtime could never be given up.
pub(super) async fn lock_within(file: File, deadline: Duration) -> io::Result<Option<File>> {
    let (answer, locked) = oneshot::channel();
    let wait = move || drop(answer.send(file.lock().map(|()| file)));
    thread::Builder::new().name("lock".into()).spawn(wait)?;
    match timeout(deadline, locked).await {
        Ok(Ok(locked)) => locked.map(Some),
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

/// Waits until the lock of an ended supervisor's folder is free; `false` if it is not within `deadline`.
///
/// It usually is at once. But a process that was just forked shares all files with its parent until it runs its
/// own program, so a supervisor killed while it starts a part leaves the lock held for that moment.
pub(super) async fn released_by(
    supervisor: &ProcessIdentity,
    folder: &Path,
    deadline: Duration,
) -> io::Result<bool> {
    // Another pair, or none, by now.
    if read_supervisor(folder).ok().as_ref() != Some(supervisor) {
        return Ok(true);
    }
    match File::open(lock_file(folder)) {
        Ok(file) => Ok(lock_within(file, deadline).await?.is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_lock_is_waited_for_until_its_last_holder_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let me = ProcessIdentity::current().unwrap();
        fs::write(folder.path().join("supervisor.json"), serde_json::to_vec(&me).unwrap()).unwrap();
        let lock = File::create(lock_file(folder.path())).unwrap();
        lock.lock().unwrap();
        let released = |deadline| released_by(&me, folder.path(), deadline);
        assert!(!released(Duration::from_millis(20)).await.unwrap());
        let (freed, ()) = tokio::join!(released(Duration::from_secs(20)), async { drop(lock) });
        assert!(freed.unwrap());
    }

    #[tokio::test]
    async fn the_lock_of_another_pair_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let lock = File::create(lock_file(folder.path())).unwrap();
        lock.lock().unwrap();
        let me = ProcessIdentity::current().unwrap();
        assert!(released_by(&me, folder.path(), Duration::from_secs(20)).await.unwrap());
    }
}
