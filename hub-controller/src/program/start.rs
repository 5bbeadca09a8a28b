//! From options to a running hub, and back.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use super::clients::{ClientError, ClientRole, Clients};
use super::options::{Bind, Mode, RunOptions};
use super::server::{self, Readiness};
use crate::api::kind::{HubKind, MirroredKind};
use crate::decision_log::{DecisionLog, Entry};
use crate::fence::Fence;
use crate::ha::elector::{Elector, OwnLease, Periods};
use crate::ha::lease::Leases;
use crate::ha::promotion::Means;
use crate::ha::publisher::{Declaration, Publisher};
use crate::ha::remote::{Remote, Source};
use crate::ha::standby::{MirrorPlan, Standby, StandbyError};
use crate::ha::watcher::{LeaseWatcher, Looking};
use crate::metrics::Metrics;
use crate::reconcile::pass::{Context, Settings};
use crate::reconcile::requeue::Requeue;
use crate::reconcile::run::Controllers;
use crate::webhook::{self, TlsError, TlsFiles, TlsListener};

/// Name of the Lease of the in-cluster election (hub contract, section 2).
const IN_CLUSTER_LEASE: &str = "6a2ced6b.kubeslice.io";
/// Longest that a request of a role may go unanswered before its connection is given up; a watch is told apart by its
/// bookmarks, which come every minute.
const PATIENCE: Duration = Duration::from_secs(90);

/// Why the hub did not start, or ended by itself.
#[derive(Debug, Error)]
pub enum StartError {
    /// A client could not be made.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The definitions are missing or the accounts may not read them.
    #[error(
        "{kind} objects cannot be listed; are the definitions of deploy/crd and the roles of deploy/rbac installed?"
    )]
    NotInstalled {
        /// Which kind.
        kind: HubKind,
        /// What the API server says.
        #[source]
        source: Box<kube::Error>,
    },
    /// A file could not be read or made.
    #[error("{what} {} cannot be used", .path.display())]
    File {
        /// What it is for.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
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
    /// The webhook has no certificate.
    #[error("the webhook cannot be served")]
    Webhook(#[source] TlsError),
    /// Signals cannot be received.
    #[error("signals cannot be received")]
    Signals(#[source] io::Error),
    /// The Standby cannot go on.
    #[error(transparent)]
    Standby(#[from] StandbyError),
    /// Another replica leads now.
    #[error("the in-cluster leadership was lost: its Lease was not renewed in time")]
    InClusterLeadershipLost,
}

/// What the parts of a hub share.
struct Hub {
    options: RunOptions,
    clients: Clients,
    metrics: Arc<Metrics>,
    log: DecisionLog,
    fence: Fence,
    readiness: Readiness,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Runs the hub until SIGTERM or SIGINT.
pub async fn run(options: RunOptions) -> Result<(), StartError> {
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    let (metrics, readiness) = (Arc::new(Metrics::new()), Readiness::default());
    let mut servers = JoinSet::new();
    let probes = server::probes(readiness.clone());
    listen("the probe server", options.health_probe_bind_address, probes, &stop, &mut servers).await?;
    let page = server::metrics(Arc::clone(&metrics));
    listen("the metrics server", options.metrics_bind_address, page, &stop, &mut servers).await?;
    serve_webhook(&options, &stop, &mut servers).await?;
    let log = DecisionLog::open(options.decision_log.as_deref(), options.identity()).map_err(|source| {
        let path = options.decision_log.clone().unwrap_or_default();
        StartError::File { what: "the decision log", path, source }
    })?;
    let impersonated_in = options.impersonate_roles.then(|| options.namespace.clone());
    let clients = Clients::new(options.kubeconfig.as_deref(), impersonated_in).await?;
    let fence = Fence::closed(Arc::clone(&metrics), log.clone());
    let tasks = TaskTracker::new();
    let hub = Hub { options, clients, metrics, log, fence, readiness, stop: stop.clone(), tasks };
    let result = Box::pin(hub.run()).await;
    stop.cancel();
    let servers_end = async { while servers.join_next().await.is_some() {} };
    if tokio::time::timeout(Duration::from_secs(1), servers_end).await.is_err() {
        warn!("a client kept a connection open");
    }
    result
}

impl Hub {
    async fn run(self) -> Result<(), StartError> {
        let reconcile = self.clients.client(ClientRole::Reconcile, Some(PATIENCE))?;
        tokio::select! {
            installed = installed(&reconcile) => installed?,
            () = self.stop.cancelled() => return Ok(()),
        }
        self.log.record(&Entry::Started {
            mode: match self.options.ha_mode {
                Mode::Active => "active",
                Mode::Standby => "standby",
                Mode::Standalone => "standalone",
            },
            pid: std::process::id(),
            window_seconds: (self.options.ha_lease_duration + self.options.ha_padding_seconds).as_secs_f64(),
        });
        info!(version = env!("CARGO_PKG_VERSION"), mode = ?self.options.ha_mode, "hub-controller is up");
        if !self.options.leader_elect {
            return Box::pin(self.serve(reconcile)).await;
        }
        Box::pin(self.serve_as_leader(reconcile)).await
    }

    /// Of several replicas of this hub one acts. The others wait with everything.
    async fn serve_as_leader(self, reconcile: Client) -> Result<(), StartError> {
        let client = self.clients.client(ClientRole::Election, Some(PATIENCE))?;
        let leases = Leases::new(client, &self.options.namespace, IN_CLUSTER_LEASE);
        let own = OwnLease { renewal: leases.clone(), election: leases };
        let nobody = Requeue::new(Vec::new(), tokio::sync::mpsc::unbounded_channel().0);
        let metrics = Arc::new(Metrics::new());
        let mut elector =
            Elector::new(own, &replica(), self.periods(), DecisionLog::off(), Arc::clone(&metrics), nobody);
        let gate = Fence::closed(metrics, DecisionLog::off());
        let mut terms = gate.terms();
        let stop = self.stop.clone();
        self.readiness.ready();
        let electing = async {
            elector.run(&gate, &stop).await;
            Ok(())
        };
        let serving = async {
            // The sender lives as long as this function.
            drop(terms.wait_for(Option::is_some).await);
            let lost = async { drop(terms.wait_for(Option::is_none).await) };
            tokio::select! {
                result = self.serve(reconcile) => result,
                () = lost => Err(StartError::InClusterLeadershipLost),
            }
        };
        tokio::select! {
            result = serving => result,
            result = electing => result,
        }
    }

    fn periods(&self) -> Periods {
        Periods {
            lease: self.options.ha_lease_duration,
            renew: self.options.ha_renew_deadline,
            retry: self.options.ha_retry_period,
        }
    }

    async fn serve(self, reconcile: Client) -> Result<(), StartError> {
        let context = Arc::new(Context::new(
            reconcile,
            settings(&self.options),
            self.fence.clone(),
            Arc::clone(&self.metrics),
        ));
        let controllers = Controllers::new(&context, &self.stop);
        let requeue = controllers.requeue();
        let running = tokio::spawn(controllers.run());
        let result = match self.options.ha_mode {
            Mode::Standalone => {
                self.fence.open_standalone();
                self.readiness.ready();
                self.stop.cancelled().await;
                Ok(())
            }
            Mode::Active => self.active(requeue).await,
            Mode::Standby => self.standby(requeue).await,
        };
        self.stop.cancel();
        let grace = self.options.graceful_shutdown_timeout;
        self.tasks.close();
        let finished = async {
            self.tasks.wait().await;
            running.await
        };
        match tokio::time::timeout(grace, finished).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => error!(error = %failure, "the controllers ended badly"),
            Err(_) => warn!("reconciles were still under way after the grace period"),
        }
        self.fence.close("the process ends");
        result
    }

    async fn active(&self, requeue: Requeue) -> Result<(), StartError> {
        let (elector, publisher) = self.leadership(requeue)?;
        self.readiness.ready();
        self.publish(publisher);
        elector.lock().await.run(&self.fence, &self.stop).await;
        Ok(())
    }

    async fn standby(&self, requeue: Requeue) -> Result<(), StartError> {
        let (elector, publisher) = self.leadership(requeue.clone())?;
        self.publish(publisher.clone());
        let options = &self.options;
        let source = match &options.ha_active_kubeconfig {
            Some(path) => Source::File(path.clone()),
            None => Source::Secret {
                client: self.clients.client(ClientRole::Start, Some(PATIENCE))?,
                namespace: options.namespace.clone(),
            },
        };
        let remote = Remote::new(source, options.ha_dial_timeout, options.ha_credential_interval);
        let looking = Looking {
            namespace: options.lease_namespace().to_owned(),
            name: options.ha_lease_name.clone(),
            interval: options.ha_poll_interval,
            dial: options.ha_dial_timeout,
            lease_duration: options.ha_lease_duration,
            padding: options.ha_padding_seconds,
        };
        let election = self.clients.client(ClientRole::Election, Some(PATIENCE))?;
        let means = Means {
            identity: options.identity().to_owned(),
            watcher: LeaseWatcher::new(remote.way(), looking, self.log.clone(), Arc::clone(&self.metrics)),
            own: Leases::new(election.clone(), options.lease_namespace(), &options.ha_lease_name),
            events: election,
            elector,
            fence: self.fence.clone(),
            requeue,
            publisher,
            dial: options.ha_dial_timeout,
            grace: options.ha_grace_period,
            log: self.log.clone(),
            metrics: Arc::clone(&self.metrics),
            tasks: self.tasks.clone(),
            stop: self.stop.clone(),
        };
        let mirror = MirrorPlan {
            client: self.clients.client(ClientRole::Mirror, Some(PATIENCE))?,
            hub_namespace: options.namespace.clone(),
            resync: options.ha_resync_interval,
            writers: options.ha_mirror_writers,
        };
        let standby = Standby { means: Arc::new(means), remote, mirror, readiness: self.readiness.clone() };
        standby.run(&self.stop).await?;
        self.stop.cancelled().await;
        Ok(())
    }

    /// Who holds the own Lease, and who declares the hub.
    fn leadership(&self, requeue: Requeue) -> Result<(Arc<Mutex<Elector>>, Publisher), StartError> {
        let options = &self.options;
        let lease = |role| {
            let client = self.clients.client(role, Some(PATIENCE))?;
            Ok::<_, ClientError>(Leases::new(client, options.lease_namespace(), &options.ha_lease_name))
        };
        let own = OwnLease { renewal: lease(ClientRole::Renewal)?, election: lease(ClientRole::Election)? };
        let (log, metrics) = (self.log.clone(), Arc::clone(&self.metrics));
        let elector =
            Elector::new(own, options.identity(), self.periods(), log.clone(), Arc::clone(&metrics), requeue);
        let declaration = Declaration {
            endpoint: options.controller_end_point.clone(),
            allow_loopback: options.allow_loopback_endpoint,
            ca_bundle: ca_bundle(options)?,
            identity: options.identity().to_owned(),
        };
        let publisher = Publisher::new(
            self.clients.client(ClientRole::Publisher, Some(PATIENCE))?,
            self.clients.client(ClientRole::Election, Some(PATIENCE))?,
            declaration,
            self.fence.clone(),
            elector.held(),
            log,
            metrics,
        );
        Ok((Arc::new(Mutex::new(elector)), publisher))
    }

    fn publish(&self, publisher: Publisher) {
        let (interval, grace) = (self.options.ha_publish_interval, self.options.ha_grace_period);
        self.tasks.spawn(publisher.run(interval, grace, self.stop.clone()));
    }
}

fn settings(options: &RunOptions) -> Settings {
    Settings {
        hub_namespace: options.namespace.clone(),
        project_namespace_prefix: options.project_namespace_prefix.clone(),
        rbac_resource_prefix: options.rbac_resource_prefix.clone(),
        endpoint: options.controller_end_point.clone(),
        deregister_timeout: options.deregister_timeout,
        worker_finalizer_timeout: options.worker_finalizer_timeout,
        rotation_day: options.rotation_day,
        reconcile_deadline: options.reconcile_deadline,
        concurrency: options.max_concurrent_reconciles,
    }
}

fn ca_bundle(options: &RunOptions) -> Result<Option<String>, StartError> {
    let Some(path) = &options.ha_self_ca_bundle_path else { return Ok(None) };
    let failed = |source| StartError::File { what: "the CA bundle", path: path.clone(), source };
    std::fs::read_to_string(path).map(Some).map_err(failed)
}

/// Unique per process, readable by people.
fn replica() -> String {
    let host = std::env::var("POD_NAME")
        .or_else(|_| std::env::var("HOSTNAME"))
        .unwrap_or_else(|_| "local".to_owned());
    format!("{host}_{:016x}", rand::random::<u64>())
}

/// Lists one object of each kind, so that a missing definition or role is an error at start.
async fn installed(client: &Client) -> Result<(), StartError> {
    for kind in HubKind::ALL {
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &MirroredKind::Hub(kind).resource());
        let listed = objects.list(&ListParams::default().limit(1)).await;
        listed.map_err(|source| StartError::NotInstalled { kind, source: Box::new(source) })?;
    }
    Ok(())
}

async fn serve_webhook(
    options: &RunOptions,
    stop: &CancellationToken,
    servers: &mut JoinSet<()>,
) -> Result<(), StartError> {
    let (true, Bind::At(address), Some(folder)) =
        (options.enable_webhooks, options.webhook_bind_address, &options.webhook_cert_path)
    else {
        return Ok(());
    };
    let files = TlsFiles::new(folder);
    files.configuration().map_err(StartError::Webhook)?;
    let listener = TlsListener::bind(address, files).await.map_err(|source| StartError::Listen {
        what: "the webhook",
        address,
        source,
    })?;
    let stop = stop.clone();
    servers.spawn(async move {
        if let Err(failure) = webhook::serve(listener, stop).await {
            error!(error = %failure, "the webhook ended");
        }
    });
    Ok(())
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
