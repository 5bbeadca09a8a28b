//! The end of a pair: parts in order, then whatever is left, and at the very last the folder.

use std::{sync::Arc, time::Duration};

use super::{
    super::{
        folder::{Owner, PairFolder},
        logs,
        pair::Running,
        reap, removal,
        root::StateRoot,
    },
    Starting,
};
use crate::process::{Launcher, Marker};

/// How long a pair may take to end in order.
const STOP_DEADLINE: Duration = Duration::from_secs(20);
/// How long a part may take to end once it is told on its own.
const PART_GRACE: Duration = Duration::from_secs(5);

/// What is to be taken down.
pub(super) struct Teardown<'a> {
    pub(super) folder: &'a PairFolder,
    pub(super) owner: &'a Owner,
    pub(super) marker: &'a Marker,
    pub(super) launcher: &'a Launcher,
    pub(super) running: Option<Arc<dyn Running>>,
    pub(super) failed: bool,
}

impl Teardown<'_> {
    /// Takes the pair down. Nothing here gives up: what fails is logged, and the next step goes on.
    pub(super) async fn run(self, starting: Option<Starting>) {
        let running = give_up(starting).await.or(self.running);
        if let Some(running) = running
            && tokio::time::timeout(STOP_DEADLINE, running.stop()).await.is_err()
        {
            tracing::warn!(?STOP_DEADLINE, "the pair did not end in order in time");
        }
        self.launcher.stop_all(PART_GRACE).await;
        if let Err(error) = reap::kill_carriers(|| self.marker.carriers()).await {
            tracing::error!(%error, "cannot end what the parts started");
        }
        if self.failed
            && let Some(target) = &self.owner.keep_logs
            && let Err(error) = logs::copy_logs(&self.folder.path, target)
        {
            tracing::error!(%error, target = %target.display(), "cannot keep the logs");
        }
    }
}

/// Removes the pair's folder, the very last thing a supervisor does, and with the last pair the root.
///
/// The root's lock stays held until the kernel takes it from the ended process: whoever finds the folder gone and
/// then gets the lock knows that the supervisor is gone as well.
pub(super) async fn remove(folder: &PairFolder, owner: &Owner) {
    let root = StateRoot::of(&folder.path, owner.root_stays);
    let lock = match &root {
        Some(root) => root.lock().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "removing the folder without the lock");
            None
        }),
        None => None,
    };
    if let Err(error) = removal::remove(folder).await {
        tracing::error!(%error, "cannot remove the folder");
    }
    if let (Some(root), Some(lock)) = (root, lock) {
        root.remove_if_empty(&lock);
        std::mem::forget(lock);
    }
}

/// Ends a start that is under way; one that came through at the last moment is a pair to be stopped.
async fn give_up(starting: Option<Starting>) -> Option<Arc<dyn Running>> {
    let starting = starting?;
    starting.abort();
    starting.await.ok()?.ok()
}
