//! The agent itself.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{join_all, try_join_all};
use kube::Client;
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    node,
    pods::{self, Context, SiteClient},
    publisher::{self, Watched},
    routes::Routes,
    running::Running,
    runtime::PodRuntime,
};
use crate::site::{PerSite, Site};

/// Runs the pods of both sites until it is stopped or dropped.
///
/// One agent for both, because a site's names include the other site's Services.
#[derive(Debug)]
pub struct Agent {
    shutdown: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// Why an agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The Node object.
    #[error("cannot create the Node of {site}")]
    Node {
        /// The site.
        site: Site,
        /// Why.
        source: kube::Error,
    },
}

impl Agent {
    /// Starts to run the pods of both sites; returns when both have their Node.
    ///
    /// The agent outlives restarts of the API servers: it watches again, and ends what vanished meanwhile.
    ///
    /// # Errors
    ///
    /// [`AgentError`], when a site's API server refuses its Node.
    pub async fn start(
        clients: PerSite<Client>,
        runtime: Arc<dyn PodRuntime>,
        routes: Arc<dyn Routes>,
    ) -> Result<Self, AgentError> {
        try_join_all(Site::ALL.map(|site| node::ensure(clients.at(site), site))).await?;
        let shutdown = CancellationToken::new();
        let contexts = PerSite::from_fn(|site| {
            let client = SiteClient(clients.at(site).clone());
            Arc::new(Context { site, client, running: Running::new(Arc::clone(&runtime)) })
        });
        let mut tasks = Vec::new();
        for site in Site::ALL {
            tasks.push(tokio::spawn(pods::run(Arc::clone(contexts.at(site)), shutdown.clone())));
        }
        tasks.push(tokio::spawn(watch(clients, contexts, routes, shutdown.clone())));
        Ok(Self { shutdown, tasks: Mutex::new(tasks) })
    }

    /// Stops, after what is under way. Pods and their processes stay as they are.
    pub async fn stop(&self) {
        self.shutdown.cancel();
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for ended in join_all(tasks).await {
            if let Err(error) = ended {
                tracing::error!(%error, "a part of the agent did not end well");
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Follows Services, pods and Nodes until `shutdown`.
async fn watch(
    clients: PerSite<Client>,
    contexts: PerSite<Arc<Context>>,
    routes: Arc<dyn Routes>,
    shutdown: CancellationToken,
) {
    let changed = Notify::new();
    let ((east, fill_east), (west, fill_west)) = (Watched::new(), Watched::new());
    let work = async {
        futures::join!(
            fill_east.run(clients.east.clone(), &changed),
            fill_west.run(clients.west.clone(), &changed),
            publisher::publish(PerSite { east, west }, contexts, routes, &changed),
            node::keep(clients.east.clone(), Site::East),
            node::keep(clients.west.clone(), Site::West),
        );
    };
    tokio::select! {
        () = work => {}
        () = shutdown.cancelled() => {}
    }
}
