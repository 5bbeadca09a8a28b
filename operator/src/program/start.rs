//! From options to a running operator, and back.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Config, Resource};
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::leader::{Elector, Periods};
use super::options::{Bind, RunOptions};
use super::server::{self, Readiness};
use super::webhooks::{self, WebhookError};
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::controller::error::chain;
use crate::controller::run::{Shared, run_scope};
use crate::garage::{AdminError, Http};
use crate::metrics::Metrics;

/// Why the operator did not start, or ended by itself.
#[derive(Debug, Error)]
pub enum StartError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig {} cannot be used", .path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What the loader says.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// There is no way to the API server.
    #[error("no Kubernetes API server is configured; set KUBECONFIG or --kubeconfig, or run in a pod")]
    NoCluster(#[source] Box<kube::config::InferConfigError>),
    /// The Kubernetes client could not be built.
    #[error("the Kubernetes client could not be set up")]
    Client(#[source] Box<kube::Error>),
    /// The definitions are missing or the ServiceAccount may not read them.
    #[error(
        "{kind} objects cannot be listed; are the definitions of deploy/crd and the roles of deploy/rbac installed?"
    )]
    NotInstalled {
        /// Which kind.
        kind: &'static str,
        /// What the API server says.
        #[source]
        source: Box<kube::Error>,
    },
    /// The HTTP client for Garage could not be built.
    #[error("the client of the Garage admin API could not be set up")]
    Http(#[source] Box<AdminError>),
    /// A listener could not be opened.
    #[error("{what} cannot listen at {address}")]
    Listen {
        /// What listens there.
        what: &'static str,
        /// Where.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The webhook server did not start.
    #[error("the webhooks cannot be served")]
    Webhooks(#[source] Box<WebhookError>),
    /// Signals cannot be received.
    #[error("signals cannot be received")]
    Signals(#[source] io::Error),
    /// Somebody else leads now.
    #[error("the leadership was lost: the Lease was not renewed in time")]
    LeadershipLost,
}

/// Runs the operator until SIGTERM or SIGINT, or until it loses its leadership.
pub async fn run(options: RunOptions) -> Result<(), StartError> {
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    let (metrics, readiness) = (Arc::new(Metrics::new()), Readiness::default());
    let mut servers = JoinSet::new();
    let probes = server::probes(readiness.clone());
    listen("the probe server", options.health_probe_bind_address, probes, &stop, &mut servers).await?;
    let page = server::metrics(Arc::clone(&metrics));
    listen("the metrics server", options.metrics_bind_address, page, &stop, &mut servers).await?;
    let client = tokio::select! {
        client = connect(&options) => client?,
        () = stop.cancelled() => return Ok(()),
    };
    webhooks::start(&options, &client, &stop, &mut servers)
        .await
        .map_err(|error| StartError::Webhooks(Box::new(error)))?;
    let http = Http::new().map_err(|error| StartError::Http(Box::new(error)))?;
    let shared = Shared { client, http, settings: options.settings(), metrics };
    info!(version = env!("CARGO_PKG_VERSION"), "garage-operator is up");
    readiness.ready();
    let result = lead(&options, shared, &stop).await;
    stop.cancel();
    if tokio::time::timeout(Duration::from_secs(1), async { while servers.join_next().await.is_some() {} })
        .await
        .is_err()
    {
        warn!("a client kept a connection open");
    }
    result
}

/// Waits for the leadership, runs the controllers, and gives the leadership back.
async fn lead(options: &RunOptions, shared: Shared, stop: &CancellationToken) -> Result<(), StartError> {
    let Some(namespace) = options.lease_namespace().filter(|_| options.leader_elect) else {
        shared.metrics.leads(true);
        controllers(options, shared, stop.clone()).await;
        return Ok(());
    };
    let periods = Periods {
        lease: options.leader_elect_lease_duration,
        renew: options.leader_elect_renew_deadline,
        retry: options.leader_elect_retry_period,
    };
    let mut elector = Elector::new(shared.client.clone(), namespace, identity(), periods);
    if !elector.acquire(stop).await {
        return Ok(());
    }
    let metrics = Arc::clone(&shared.metrics);
    metrics.leads(true);
    let work = stop.child_token();
    let (kept, ()) = tokio::join!(
        async {
            let kept = elector.keep(stop).await;
            work.cancel();
            kept
        },
        controllers(options, shared, work.clone()),
    );
    metrics.leads(false);
    if !kept {
        error!("another replica may lead now; ending at once");
        return Err(StartError::LeadershipLost);
    }
    elector.release().await;
    Ok(())
}

/// Runs the controllers of every scope until `stop`, and then for the grace period at most.
async fn controllers(options: &RunOptions, shared: Shared, stop: CancellationToken) {
    let mut scopes: JoinSet<()> =
        options.scopes().into_iter().map(|scope| run_scope(shared.clone(), scope, stop.clone())).collect();
    let finished = async { while scopes.join_next().await.is_some() {} };
    let grace = async {
        stop.cancelled().await;
        tokio::time::sleep(options.graceful_shutdown_timeout).await;
    };
    tokio::select! {
        () = finished => {}
        () = grace => warn!("reconciles were still under way after the grace period"),
    }
}

/// Unique per process, readable by people.
fn identity() -> String {
    let host = std::env::var("POD_NAME")
        .or_else(|_| std::env::var("HOSTNAME"))
        .unwrap_or_else(|_| "local".to_owned());
    format!("{host}_{:016x}", rand::random::<u64>())
}

async fn listen(
    what: &'static str,
    bind: Bind,
    routes: Router,
    stop: &CancellationToken,
    servers: &mut JoinSet<()>,
) -> Result<(), StartError> {
    let Bind::At(address) = bind else { return Ok(()) };
    let serving = server::serve(address, routes, stop.clone())
        .await
        .map_err(|source| StartError::Listen { what, address, source })?;
    servers.spawn(async move {
        if let Err(failure) = serving.await {
            error!(what, error = %failure, "the server ended");
        }
    });
    Ok(())
}

async fn connect(options: &RunOptions) -> Result<Client, StartError> {
    let mut config = match &options.kubeconfig {
        None => Config::infer().await.map_err(|error| StartError::NoCluster(Box::new(error)))?,
        Some(path) => {
            let broken = |source| StartError::Kubeconfig { path: path.clone(), source: Box::new(source) };
            let file = Kubeconfig::read_from(path).map_err(broken)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(broken)?
        }
    };
    // A refused request goes back to the queue: retried by the client it would hold its reconcile for minutes.
    config.default_retry = false;
    let client = client(config).map_err(|error| StartError::Client(Box::new(error)))?;
    let scope = options.scopes().into_iter().next().flatten();
    probe::<GarageCluster>(&client, scope.as_deref(), "GarageCluster").await?;
    probe::<GarageNode>(&client, scope.as_deref(), "GarageNode").await?;
    Ok(client)
}

#[cfg(not(feature = "crash-after-write"))]
fn client(config: Config) -> Result<Client, kube::Error> {
    Client::try_from(config)
}

/// All mutations are counted.
#[cfg(feature = "crash-after-write")]
fn client(config: Config) -> Result<Client, kube::Error> {
    let builder = kube::client::ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(&crate::crash::CountWrites).build())
}

/// Lists one object, so that a missing definition or role is an error at start.
async fn probe<K>(client: &Client, namespace: Option<&str>, kind: &'static str) -> Result<(), StartError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let listed = api.list(&ListParams::default().limit(1)).await;
    listed.map(drop).map_err(|source| StartError::NotInstalled { kind, source: Box::new(source) })
}

fn stop_on_signal(stop: CancellationToken) -> Result<(), StartError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(StartError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(StartError::Signals)?;
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        info!(signal = name, "stopping");
        stop.cancel();
    });
    Ok(())
}

/// The error with its causes, in one line.
pub fn explain(failure: &StartError) -> String {
    chain(failure)
}
