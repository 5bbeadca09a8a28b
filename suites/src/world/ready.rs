//! Ready over time.

use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use harness::failure::Failure;
use harness::garage::objects;
use harness::site::Site;
use harness::wait::WatchBackoff;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};

use super::World;
use crate::fixture::CLUSTER;

/// Watches whether the GarageCluster of a site stays Ready. Ends when it is dropped.
#[derive(Debug)]
pub struct ReadyWatch {
    site: Site,
    unready: Arc<Mutex<Option<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl World<'_> {
    /// Watches from now on whether the GarageCluster of `site`, which is Ready, stays so.
    #[must_use]
    pub fn watch_ready(&self, site: Site) -> ReadyWatch {
        let unready = Arc::new(Mutex::new(None));
        let found = unready.clone();
        let config = watcher::Config::default().fields(&format!("metadata.name={CLUSTER}"));
        let objects = watcher(self.clusters(site), config).backoff(WatchBackoff::default()).applied_objects();
        let task = tokio::spawn(async move {
            let mut objects = std::pin::pin!(objects);
            while let Some(object) = objects.next().await {
                let Ok(object) = object else { continue };
                if let Some(state) = not_ready(&object) {
                    found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(state);
                }
            }
        });
        ReadyWatch { site, unready, task }
    }

    /// The cluster was Ready all the time that `watch` lasted.
    pub fn stayed_ready(&self, watch: &ReadyWatch) -> Result<(), Failure> {
        let unready = watch.unready.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let claim = "Ready never turns false because the writer is awaited";
        self.claim(watch.site, claim, unready.is_none(), || unready.unwrap_or_default())
    }
}

impl Drop for ReadyWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches whether the GarageCluster of a site ever has a phase. Ends when it is dropped.
#[derive(Debug)]
pub struct PhaseWatch {
    site: Site,
    phase: &'static str,
    seen: Arc<Mutex<bool>>,
    task: tokio::task::JoinHandle<()>,
}

impl World<'_> {
    /// Watches from now on whether the GarageCluster of `site` is ever in `phase`.
    #[must_use]
    pub fn watch_phase(&self, site: Site, phase: &'static str) -> PhaseWatch {
        let seen = Arc::new(Mutex::new(false));
        let found = seen.clone();
        let config = watcher::Config::default().fields(&format!("metadata.name={CLUSTER}"));
        let objects = watcher(self.clusters(site), config).backoff(WatchBackoff::default()).applied_objects();
        let task = tokio::spawn(async move {
            let mut objects = std::pin::pin!(objects);
            while let Some(object) = objects.next().await {
                let is = object.is_ok_and(|object| objects::text(&object, "/status/phase") == Some(phase));
                *found.lock().unwrap_or_else(PoisonError::into_inner) |= is;
            }
        });
        PhaseWatch { site, phase, seen, task }
    }

    /// The cluster was never in the phase that `watch` watches for.
    pub fn never_was(&self, watch: &PhaseWatch) -> Result<(), Failure> {
        let seen = *watch.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let claim = format!("the cluster is never {}", watch.phase);
        self.claim(watch.site, &claim, !seen, || "it was".to_owned())
    }
}

impl Drop for PhaseWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn not_ready(object: &DynamicObject) -> Option<String> {
    let (status, reason) = objects::condition(object, "Ready")?;
    // A pod that has only just been asked for is not ready yet, whoever writes the layout.
    let own = matches!(reason, "NotAllReplicasReady" | "GarageUnreachable");
    (status != "True" && !own).then(|| objects::conditions_in_words(object))
}
