//! The way to the Active: its kubeconfig, from a Secret in the hub's own namespace or from a file (design record,
//! decision 2). It is looked at again all the time, so that a credential that was wrong or has been rotated is taken up
//! without a restart.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::config::Kubeconfig;
use kube::{Api, Client, ResourceExt};
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::api::naming::{ACTIVE_HUB_KEY, ACTIVE_HUB_SECRET};
use crate::error::chain;
use crate::program::clients::{self, RemoteClientError};

/// Why there is no way to the Active.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// The Secret could not be read.
    #[error("the Secret {ACTIVE_HUB_SECRET} in namespace {namespace} cannot be read")]
    Secret {
        /// Where it should be.
        namespace: String,
        /// What the API server says.
        #[source]
        source: Box<kube::Error>,
    },
    /// The Secret has no kubeconfig.
    #[error(
        "the Secret {ACTIVE_HUB_SECRET} in namespace {namespace} has no key {ACTIVE_HUB_KEY} with a kubeconfig"
    )]
    NoKey {
        /// Where it is.
        namespace: String,
    },
    /// The file could not be read.
    #[error("the kubeconfig {} cannot be read", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The kubeconfig is none.
    #[error("the kubeconfig of the Active cannot be read")]
    Kubeconfig(#[source] Box<kube::config::KubeconfigError>),
    /// The client could not be made.
    #[error(transparent)]
    Client(#[from] RemoteClientError),
    /// The API server did not answer in time.
    #[error("the Secret {ACTIVE_HUB_SECRET} was not read within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// Where the kubeconfig of the Active comes from.
#[derive(Clone)]
pub enum Source {
    /// The Secret in the hub's own namespace.
    Secret {
        /// Client of the own API server.
        client: Client,
        /// Namespace of the hub.
        namespace: String,
    },
    /// A file.
    File(PathBuf),
}

/// A client of the Active, and which one: a new credential makes a new generation.
#[derive(Clone)]
pub struct ActiveHub {
    /// Counts credentials.
    pub generation: u64,
    /// The client.
    pub client: Client,
}

/// The way to the Active as it changes.
pub type Way = watch::Receiver<Option<ActiveHub>>;

/// Keeps the way to the Active up to date.
pub struct Remote {
    source: Source,
    dial: Duration,
    interval: Duration,
    current: watch::Sender<Option<ActiveHub>>,
    text: Option<String>,
}

impl Remote {
    /// Looks at the source every `interval`; connections are given up after `dial`.
    pub fn new(source: Source, dial: Duration, interval: Duration) -> Self {
        Self { source, dial, interval, current: watch::Sender::new(None), text: None }
    }

    /// The way as it changes.
    pub fn way(&self) -> Way {
        self.current.subscribe()
    }

    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.refresh().await {
                warn!(error = %chain(&error), "there is no new way to the Active");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.interval) => {}
            }
        }
    }

    async fn refresh(&mut self) -> Result<(), RemoteError> {
        let reading = tokio::time::timeout(self.dial, self.read()).await;
        let text = reading.unwrap_or(Err(RemoteError::TimedOut(self.dial)))?;
        if self.text.as_ref() == Some(&text) {
            return Ok(());
        }
        let kubeconfig =
            Kubeconfig::from_yaml(&text).map_err(|error| RemoteError::Kubeconfig(Box::new(error)))?;
        let client = clients::remote(kubeconfig, self.dial).await?;
        let generation = self.current.borrow().as_ref().map_or(1, |hub| hub.generation + 1);
        info!(generation, "there is a credential for the Active");
        self.text = Some(text);
        self.current.send_replace(Some(ActiveHub { generation, client }));
        Ok(())
    }

    async fn read(&self) -> Result<String, RemoteError> {
        let (client, namespace) = match &self.source {
            Source::File(path) => {
                let read = tokio::fs::read_to_string(path).await;
                return read.map_err(|source| RemoteError::File { path: path.clone(), source });
            }
            Source::Secret { client, namespace } => (client, namespace),
        };
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let secret = secrets.get(ACTIVE_HUB_SECRET).await;
        let secret = secret.map_err(|source| RemoteError::Secret {
            namespace: namespace.clone(),
            source: Box::new(source),
        })?;
        let data = secret.data.unwrap_or_default();
        let text = data.get(ACTIVE_HUB_KEY).and_then(|bytes| String::from_utf8(bytes.0.clone()).ok());
        text.ok_or_else(|| RemoteError::NoKey { namespace: namespace.clone() })
    }
}

/// Whether both clients lead to one API server: the namespace of the hub is the same object.
///
/// Whoever mirrors a cluster into itself deletes it. Answers `None` where either side does not say.
pub async fn is_same_cluster(
    own: &Client,
    active: &Client,
    namespace: &str,
    limit: Duration,
) -> Option<bool> {
    let uid = async |client: &Client| {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let read = tokio::time::timeout(limit, namespaces.get(namespace)).await;
        read.ok()?.ok()?.uid()
    };
    let (own, active) = tokio::join!(uid(own), uid(active));
    Some(own? == active?)
}
