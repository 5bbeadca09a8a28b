//! Which pods have a process.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Mutex;

use super::runtime::{PodName, PodRuntime, PodStart, RuntimeError};

/// The processes of one site's pods. One of a name at a time: a successor's begins when its predecessor's has ended.
#[derive(Debug)]
pub struct Running {
    runtime: Arc<dyn PodRuntime>,
    /// Unique identifiers of the pods that have a process, and its address. Held during starts and ends, so that none
    /// overtakes another.
    uids: Mutex<BTreeMap<PodName, (String, IpAddr)>>,
    /// Unique identifiers of the pods whose process was ended here: a late reconcile of one ends nothing again.
    ended: Mutex<BTreeSet<String>>,
}

impl Running {
    /// No processes yet.
    pub fn new(runtime: Arc<dyn PodRuntime>) -> Self {
        Self { runtime, uids: Mutex::default(), ended: Mutex::default() }
    }

    /// Whether this very pod has a process that was started here.
    pub async fn has(&self, name: &PodName, uid: &str) -> bool {
        self.uids.lock().await.get(name).is_some_and(|(running, _)| running == uid)
    }

    /// Starts a pod's process, unless it has one; ends that of a predecessor first.
    pub async fn start(&self, pod: PodStart) -> Result<IpAddr, RuntimeError> {
        let mut uids = self.uids.lock().await;
        let (name, uid) = (pod.name.clone(), pod.uid.clone());
        match uids.get(&name) {
            Some((running, address)) if *running == uid => return Ok(*address),
            Some(_) => {
                self.runtime.stop(name.clone()).await?;
                uids.remove(&name);
            }
            None => {}
        }
        let address = self.runtime.start(pod).await?;
        uids.insert(name, (uid, address));
        Ok(address)
    }

    /// Ends the process of a pod, even one that an earlier agent started; but not that of a successor.
    pub async fn stop(&self, name: &PodName, uid: &str) -> Result<(), RuntimeError> {
        let mut uids = self.uids.lock().await;
        let mut ended = self.ended.lock().await;
        if !ended.contains(uid) && uids.get(name).is_none_or(|(running, _)| running == uid) {
            self.runtime.stop(name.clone()).await?;
            uids.remove(name);
            ended.insert(uid.to_owned());
        }
        Ok(())
    }

    /// Ends the processes of pods that are gone: those that were deleted without grace, or while no watch ran.
    ///
    /// `present` is asked once no other start or end is under way. It may be behind the watch by which a pod was started, so
    /// `is_gone` is asked about each pod that it does not have; nobody waits for that answer but the sweep.
    pub async fn sweep<F>(
        &self,
        present: impl Fn() -> Vec<Arc<Pod>>,
        is_gone: impl Fn(PodName, String) -> F,
    ) -> Result<(), RuntimeError>
    where
        F: Future<Output = Result<bool, RuntimeError>>,
    {
        for (name, uid) in self.absent(present).await {
            if is_gone(name.clone(), uid.clone()).await? {
                self.stop(&name, &uid).await?;
            }
        }
        Ok(())
    }

    /// Pods with a process that `present` does not have.
    async fn absent(&self, present: impl Fn() -> Vec<Arc<Pod>>) -> Vec<(PodName, String)> {
        let uids = self.uids.lock().await;
        let present = present();
        let present: BTreeSet<&str> = present.iter().filter_map(|pod| pod.metadata.uid.as_deref()).collect();
        let absent = uids.iter().filter(|(_, (uid, _))| !present.contains(uid.as_str()));
        absent.map(|(name, (uid, _))| (name.clone(), uid.clone())).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Mutex as SyncMutex;

    use futures::{FutureExt as _, future::BoxFuture};
    use serde_json::json;

    use super::*;
    use crate::site::Site;

    /// Notes what it is asked to do.
    #[derive(Debug, Default)]
    pub(crate) struct Noting(pub(crate) SyncMutex<Vec<String>>);

    impl PodRuntime for Noting {
        fn start(&self, pod: PodStart) -> BoxFuture<'_, Result<IpAddr, RuntimeError>> {
            self.0.lock().unwrap().push(format!("start {} {}", pod.name, pod.uid));
            async { Ok(IpAddr::from([127, 20, 1, 1])) }.boxed()
        }

        fn stop(&self, pod: PodName) -> BoxFuture<'_, Result<(), RuntimeError>> {
            self.0.lock().unwrap().push(format!("stop {pod}"));
            async { Ok(()) }.boxed()
        }
    }

    fn name() -> PodName {
        PodName { site: Site::East, namespace: "cell".into(), pod: "garage-0".into() }
    }

    fn start(uid: &str) -> PodStart {
        let (labels, env, init_commands, files) = Default::default();
        PodStart { name: name(), uid: uid.into(), labels, env, init_commands, files }
    }

    fn present(uids: &[&str]) -> Vec<Arc<Pod>> {
        let pod = |uid: &&str| serde_json::from_value(json!({"metadata": {"uid": uid}})).unwrap();
        uids.iter().map(pod).map(Arc::new).collect()
    }

    async fn gone(_: PodName, _: String) -> Result<bool, RuntimeError> {
        Ok(true)
    }

    #[tokio::test]
    async fn a_successor_starts_when_its_predecessor_has_ended() {
        let runtime = Arc::new(Noting::default());
        let running = Running::new(runtime.clone());
        running.start(start("one")).await.unwrap();
        running.start(start("two")).await.unwrap();
        // The late end of the first must not hit the second.
        running.stop(&name(), "one").await.unwrap();
        let seen = runtime.0.lock().unwrap().clone();
        assert_eq!(
            seen,
            ["start east/cell/garage-0 one", "stop east/cell/garage-0", "start east/cell/garage-0 two"]
        );
    }

    #[tokio::test]
    async fn a_pod_that_vanished_loses_its_process() {
        let runtime = Arc::new(Noting::default());
        let running = Running::new(runtime.clone());
        running.start(start("one")).await.unwrap();
        running.sweep(|| present(&["one"]), gone).await.unwrap();
        assert!(running.has(&name(), "one").await);
        running.sweep(|| present(&["another"]), gone).await.unwrap();
        assert!(!running.has(&name(), "one").await);
        assert_eq!(runtime.0.lock().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_pod_that_was_started_before_the_other_watch_knew_it_keeps_its_process() {
        let running = Running::new(Arc::new(Noting::default()));
        running.start(start("one")).await.unwrap();
        running.sweep(|| present(&[]), async |_, _| Ok(false)).await.unwrap();
        assert!(running.has(&name(), "one").await);
    }

    #[tokio::test]
    async fn a_pod_that_was_swept_is_not_ended_again_by_a_late_reconcile() {
        let noting = Arc::new(Noting::default());
        let running = Running::new(noting.clone());
        running.start(start("a")).await.unwrap();
        running.sweep(|| present(&[]), gone).await.unwrap();
        running.stop(&name(), "a").await.unwrap();
        let stops = noting.0.lock().unwrap().iter().filter(|note| note.starts_with("stop")).count();
        assert_eq!(stops, 1);
    }

    #[tokio::test]
    async fn a_pod_that_has_a_process_is_not_started_again() {
        let noting = Arc::new(Noting::default());
        let running = Running::new(noting.clone());
        let first = running.start(start("a")).await.unwrap();
        assert_eq!(running.start(start("a")).await.unwrap(), first);
        assert_eq!(noting.0.lock().unwrap().len(), 1);
    }
}
