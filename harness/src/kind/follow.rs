//! The operator's log, from whichever pod it runs in, and its end without being told to.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{AsyncBufReadExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::LogParams;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, ResourceExt as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::operator::DeployedOperator;
use crate::wait::WatchBackoff;

/// Follows the log of an operator into a file until it is dropped.
#[derive(Debug)]
pub struct LogFollower {
    task: JoinHandle<()>,
    /// The file.
    pub path: PathBuf,
    excused: Arc<AtomicBool>,
    died: watch::Receiver<Option<String>>,
}

struct Following {
    pods: Api<Pod>,
    log: Arc<Mutex<std::fs::File>>,
    /// Containers whose log is, or was, followed.
    known: BTreeSet<String>,
    /// Containers whose end has been seen.
    over: BTreeSet<String>,
    excused: Arc<AtomicBool>,
    died: watch::Sender<Option<String>>,
}

impl LogFollower {
    /// Begins to follow the log of `operator` into `path`.
    pub fn start(operator: &DeployedOperator, path: &Path) -> io::Result<Self> {
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let (sender, died) = watch::channel(None);
        let excused = Arc::new(AtomicBool::new(false));
        let following = Following {
            pods: operator.pods(),
            log: Arc::new(Mutex::new(log)),
            known: BTreeSet::new(),
            over: BTreeSet::new(),
            excused: excused.clone(),
            died: sender,
        };
        let task = tokio::spawn(following.run(operator.selector.clone()));
        Ok(Self { task, path: path.to_owned(), excused, died })
    }

    /// From now on it may end.
    pub fn excuse(&self) {
        self.excused.store(true, Ordering::SeqCst);
    }

    /// From now on it must run.
    pub fn expect(&self) {
        self.excused.store(false, Ordering::SeqCst);
    }

    /// Resolves when the operator has ended without an excuse, with how.
    pub async fn died(&self) -> String {
        let mut died = self.died.clone();
        let how = died.wait_for(Option::is_some).await.map(|how| how.clone().unwrap_or_default());
        match how {
            Ok(how) => how,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for LogFollower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Following {
    async fn run(mut self, selector: String) {
        let config = watcher::Config::default().labels(&selector);
        let events = watcher(self.pods.clone(), config).backoff(WatchBackoff::default()).applied_objects();
        let mut pods = std::pin::pin!(events);
        while let Some(pod) = pods.next().await {
            match pod {
                Ok(pod) => self.look_at(&pod),
                Err(error) => tracing::debug!(%error, "the operator's pods cannot be watched now"),
            }
        }
    }

    fn look_at(&mut self, pod: &Pod) {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        for status in statuses.into_iter().flatten() {
            let running = status.state.as_ref().is_some_and(|state| state.running.is_some());
            if let Some(container) = status.container_id.clone().filter(|_| running)
                && self.known.insert(container)
            {
                tokio::spawn(copy(self.pods.clone(), pod.name_any(), status.name.clone(), self.log.clone()));
            }
            // An end that was excused stays excused, however long the pod speaks of it.
            if let Some((container, how)) = ended(pod, status)
                && self.over.insert(container)
                && !self.excused.load(Ordering::SeqCst)
            {
                self.died.send_if_modified(|died| died.is_none() && died.replace(how).is_none());
            }
        }
    }
}

/// Which container ended that should not have, and how: a pod that is being deleted may.
fn ended(pod: &Pod, status: &ContainerStatus) -> Option<(String, String)> {
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let of = |state: &Option<k8s_openapi::api::core::v1::ContainerState>| state.as_ref()?.terminated.clone();
    let terminated =
        of(&status.state).or_else(|| of(&status.last_state).filter(|_| status.restart_count > 0))?;
    let reason = terminated.reason.unwrap_or_default();
    let container =
        terminated.container_id.unwrap_or_else(|| format!("{}-{}", pod.name_any(), status.restart_count));
    Some((container, format!("exit code {} ({reason})", terminated.exit_code)))
}

/// Copies the log of a container, line by line, until the container ends.
async fn copy(pods: Api<Pod>, pod: String, container: String, log: Arc<Mutex<std::fs::File>>) {
    let parameters = LogParams { follow: true, container: Some(container), ..LogParams::default() };
    let copied = async {
        let mut lines = pods.log_stream(&pod, &parameters).await?.lines();
        while let Some(line) = lines.next().await {
            let line = line? + "\n";
            log.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())?;
        }
        Ok::<_, crate::failure::BoxError>(())
    };
    if let Err(error) = copied.await {
        tracing::warn!(%pod, error = %crate::failure::chain(error.as_ref()), "the operator's log is not whole");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(deleted: bool) -> Pod {
        let mut metadata = json!({"name": "op"});
        if deleted {
            metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
        }
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn status(state: &str, last: &str, restarts: i32) -> ContainerStatus {
        let in_json = |state: &str| {
            if state.is_empty() {
                json!({})
            } else {
                json!({state: {"exitCode": 3, "reason": "Error", "containerID": "c"}})
            }
        };
        let running = json!({"name": "op", "image": "", "imageID": "", "ready": true, "restartCount": restarts,
            "state": in_json(state), "lastState": in_json(last)});
        serde_json::from_value(running).unwrap()
    }

    #[test]
    fn a_container_that_ended_or_was_started_again_is_told() {
        let told = Some(("c".to_owned(), "exit code 3 (Error)".to_owned()));
        assert_eq!(ended(&pod(false), &status("terminated", "", 0)), told);
        assert_eq!(ended(&pod(false), &status("", "terminated", 1)), told);
        assert_eq!(ended(&pod(false), &status("", "", 0)), None);
    }

    #[test]
    fn a_pod_that_is_being_deleted_may_end() {
        assert_eq!(ended(&pod(true), &status("terminated", "", 0)), None);
    }
}
