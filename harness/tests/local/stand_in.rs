//! A runtime and a name service in memory, whose doings can be awaited.

use std::{fmt::Debug, net::IpAddr};

use futures::{FutureExt as _, future::BoxFuture};
use harness::{
    agent::{Names, PodName, PodRuntime, PodStart, Routes, RuntimeError},
    failure::BoxError,
    site::{PerSite, Site},
};
use tokio::sync::watch;

use crate::world::DEADLINE;

/// Plays pods by noting them, and takes names by keeping them.
#[derive(Debug, Default)]
pub(crate) struct StandIn {
    pub(crate) started: watch::Sender<Vec<PodStart>>,
    pub(crate) stopped: watch::Sender<Vec<PodName>>,
    pub(crate) names: watch::Sender<PerSite<Names>>,
}

impl PodRuntime for StandIn {
    fn start(&self, pod: PodStart) -> BoxFuture<'_, Result<IpAddr, RuntimeError>> {
        self.started.send_modify(|started| started.push(pod));
        let number = u8::try_from(self.started.borrow().len()).unwrap();
        async move { Ok(IpAddr::from([127, 100, 1, number])) }.boxed()
    }

    fn stop(&self, pod: PodName) -> BoxFuture<'_, Result<(), RuntimeError>> {
        self.stopped.send_modify(|stopped| stopped.push(pod));
        async { Ok(()) }.boxed()
    }
}

impl Routes for StandIn {
    fn replace(&self, site: Site, names: Names) -> BoxFuture<'_, Result<(), BoxError>> {
        self.names.send_modify(|all| *all.at_mut(site) = names);
        async { Ok(()) }.boxed()
    }
}

/// Waits until what is kept satisfies `condition`; shows it when it does not in time.
pub(crate) async fn until<T: Debug>(kept: &watch::Sender<T>, what: &str, condition: impl FnMut(&T) -> bool) {
    let mut kept = kept.subscribe();
    let waited = tokio::time::timeout(DEADLINE, kept.wait_for(condition)).await.is_ok();
    assert!(waited, "not in time: {what}; last seen: {:?}", kept.borrow());
}
