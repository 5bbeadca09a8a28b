//! Watching what routes are made of, and publishing them when they change.

use std::{fmt::Debug, hash::Hash, sync::Arc, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api, Client, Resource,
    runtime::{
        WatchStreamExt as _, reflector,
        reflector::{Store, store::Writer},
        watcher::{self, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::{
    pods::Context,
    routes::{Endpoints, Names, Routes, names},
};
use crate::{
    failure::chain,
    site::{PerSite, Site},
    wait::WatchBackoff,
};

/// When a publication that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// What one site has at this moment.
#[derive(Debug)]
pub(super) struct Watched {
    services: Store<Service>,
    pods: Store<Pod>,
}

/// Tasks that keep a site's stores up to date; they run until they are dropped.
pub(super) struct Watches {
    services: Writer<Service>,
    pods: Writer<Pod>,
}

impl Watched {
    /// Empty stores, and what fills them.
    pub(super) fn new() -> (Self, Watches) {
        let (services, service_writer) = reflector::store();
        let (pods, pod_writer) = reflector::store();
        (Self { services, pods }, Watches { services: service_writer, pods: pod_writer })
    }

    fn endpoints(&self) -> Endpoints {
        Endpoints { services: self.services.state(), pods: self.pods.state() }
    }

    async fn filled(&self) {
        // An error means that the watch has ended, and so will this task.
        drop(futures::join!(self.services.wait_until_ready(), self.pods.wait_until_ready()));
    }
}

impl Watches {
    /// Fills the stores of a site and tells of every change. Never returns.
    pub(super) async fn run(self, client: Client, changed: &Notify) {
        futures::join!(
            follow(Api::all(client.clone()), self.services, changed),
            follow(Api::all(client), self.pods, changed),
        );
    }
}

async fn follow<K>(api: Api<K>, writer: Writer<K>, changed: &Notify)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Hash + Eq + Clone,
{
    let events = watcher(api, watcher::Config::default()).backoff(WatchBackoff::default()).reflect(writer);
    events
        .for_each(|event| async move {
            match event {
                Ok(_) => changed.notify_one(),
                Err(error) => {
                    tracing::warn!(kind = %K::kind(&()), error = chain(&error), "a watch was interrupted");
                }
            }
        })
        .await;
}

/// Publishes each site's names whenever they differ from those published last, and ends the processes of pods that
/// are gone. Never returns.
pub(super) async fn publish(
    watched: PerSite<Watched>,
    contexts: PerSite<Arc<Context>>,
    routes: Arc<dyn Routes>,
    changed: &Notify,
) {
    futures::join!(watched.east.filled(), watched.west.filled());
    let mut published: PerSite<Option<Names>> = PerSite::default();
    loop {
        let endpoints = PerSite::from_fn(|site| watched.at(site).endpoints());
        let mut complete = true;
        for site in Site::ALL {
            let current = names(site, &endpoints);
            if published.at(site).as_ref() != Some(&current) {
                match routes.replace(site, current.clone()).await {
                    Ok(()) => *published.at_mut(site) = Some(current),
                    Err(error) => {
                        complete = false;
                        tracing::warn!(%site, error = chain(&*error), "routes cannot be published");
                    }
                }
            }
            let (context, pods) = (contexts.at(site), &watched.at(site).pods);
            let is_gone = |name, uid: String| {
                let context = Arc::clone(context);
                async move { context.is_gone(&name, &uid).await }
            };
            if let Err(error) = context.running.sweep(|| pods.state(), is_gone).await {
                complete = false;
                tracing::warn!(%site, error = chain(&error), "the process of a pod that is gone cannot be ended");
            }
        }
        if complete {
            changed.notified().await;
        } else {
            drop(tokio::time::timeout(AGAIN, changed.notified()).await);
        }
    }
}
