//! The operator under test as a child process.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Client;

use super::equipment::Equipment;
use super::lease;
use super::probe;
use super::secret_file;
use crate::failure::BoxError;
use crate::process::{Launch, LaunchError, Launcher, Revivable};
use crate::site::Site;

/// Namespace in which an operator lives, its Lease included (operator contract §6.1).
pub const NAMESPACE: &str = "garage-operator-system";

/// How long an operator may take to stop by itself.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// How long an operator may take until it says that it is ready.
const READY: Duration = Duration::from_secs(30);

/// What an operator is started with.
#[derive(Debug, Clone)]
pub struct OperatorLaunch {
    /// Its site.
    pub site: Site,
    /// The program.
    pub program: PathBuf,
    /// Its own arguments, after those that operators share.
    pub arguments: Vec<String>,
    /// Kubeconfig with the identity of its ServiceAccount.
    pub kubeconfig: PathBuf,
    /// Address of its site, for its metrics and health endpoints.
    pub address: Ipv4Addr,
    /// The HTTP proxy that resolves Service names.
    pub proxy: SocketAddr,
    /// The pair's folder.
    pub folder: PathBuf,
    /// Whether it is to serve webhooks.
    pub webhooks: bool,
}

/// An operator that runs.
#[derive(Debug)]
pub struct RunningOperator {
    /// Its program.
    pub program: Revivable,
    /// URL of its metrics.
    pub metrics: String,
    /// URL of its health endpoints.
    pub health: String,
    /// The arguments that operators share.
    shared: Vec<OsString>,
}

/// Starts an operator. It is not awaited: see [`RunningOperator::ready`].
pub async fn start(launcher: &Launcher, launch: &OperatorLaunch) -> Result<RunningOperator, BoxError> {
    let folder = launch.folder.join("sites").join(launch.site.name());
    secret_file::create_folder(&folder)?;
    let metrics = free_port(launch.address)?;
    let health = free_port(launch.address)?;
    let mut env = environment(&launch.kubeconfig, launch.proxy);
    if launch.webhooks {
        env.extend(webhooks(free_port(launch.address)?));
    }
    let shared: Vec<OsString> = arguments(metrics, health).collect();
    let own = launch.arguments.iter().map(OsString::from);
    let what = Launch {
        name: format!("{}-operator", launch.site),
        program: launch.program.clone(),
        args: shared.iter().cloned().chain(own).collect(),
        env,
        log: folder.join("operator.log"),
    };
    Ok(RunningOperator {
        program: Revivable::start(launcher, what).await?,
        metrics: format!("http://{metrics}/metrics"),
        health: format!("http://{health}"),
        shared,
    })
}

impl RunningOperator {
    /// Waits until an operator that was cut off from its API server, which came back after `since`, either goes on or has
    /// ended.
    pub async fn made_up_its_mind(&self, admin: Client, since: Timestamp) -> Result<(), BoxError> {
        let child = self.program.child();
        let decided = async {
            tokio::select! {
                _ = child.exited() => Ok(()),
                renewed = lease::renewed(admin, since) => renewed,
            }
        };
        let limit = humantime::format_duration(READY);
        tokio::time::timeout(READY, decided).await.map_err(|_elapsed| {
            format!("{} neither renewed its Lease nor ended within {limit}", child.name())
        })??;
        Ok(())
    }

    /// Waits until the operator says that it is ready.
    pub async fn ready(&self) -> Result<(), probe::ProbeError> {
        probe::until_success(&self.program.child(), &format!("{}/readyz", self.health), None, READY).await
    }

    /// Ends it and starts another one in its place, with the same addresses, and waits until that says that it is ready.
    pub async fn equip(&self, with: &Equipment, admin: Client) -> Result<(), BoxError> {
        self.program.end(GRACE).await;
        let own = with.operator_args.iter().map(OsString::from);
        let arguments = self.shared.iter().cloned().chain(own).collect();
        self.program.refit(|launch| {
            launch.program.clone_from(&with.operator_bin);
            launch.args = arguments;
        });
        self.revive(admin).await
    }

    /// Starts it again if it does not run, with the Lease of its site free, and waits until it says that it is ready.
    pub async fn revive(&self, admin: Client) -> Result<(), BoxError> {
        if self.program.child().status().is_some() {
            lease::release(admin).await?;
        }
        self.program.revive().await.map_err(|error: LaunchError| BoxError::from(error))?;
        Ok(self.ready().await?)
    }
}

/// The flags that operators of this API group share (operator contract §6.1).
fn arguments(metrics: SocketAddr, health: SocketAddr) -> impl Iterator<Item = OsString> {
    let flags = [
        "--leader-elect=true".to_owned(),
        "--cluster-domain=cluster.local".to_owned(),
        "--webhook-cert-path=".to_owned(),
        "--metrics-secure=false".to_owned(),
        format!("--metrics-bind-address={metrics}"),
        format!("--health-probe-bind-address={health}"),
    ];
    flags.into_iter().map(OsString::from)
}

/// What an operator logs is part of the history, so it is asked for structured lines; one that knows no `LOG_FORMAT` logs
/// as it does. Service names go through the proxy; pod addresses and the API server are loopback and go direct.
fn environment(kubeconfig: &Path, proxy: SocketAddr) -> Vec<(OsString, OsString)> {
    let proxy = format!("http://{proxy}");
    let direct = "127.0.0.0/8,localhost";
    let variables = [
        ("KUBECONFIG", kubeconfig.as_os_str()),
        ("POD_NAMESPACE", NAMESPACE.as_ref()),
        ("HTTP_PROXY", proxy.as_ref()),
        ("http_proxy", proxy.as_ref()),
        ("NO_PROXY", direct.as_ref()),
        ("no_proxy", direct.as_ref()),
        ("RUST_LOG", "info".as_ref()),
        ("LOG_FORMAT", "json".as_ref()),
    ];
    let waiting = WAITING.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    variables.into_iter().map(|(name, value)| (name.into(), value.into())).chain(waiting).collect()
}

/// Waiting periods in which nothing happens, shortened. As variables, because an operator that does not know them
/// overlooks them, where it would refuse an unknown flag.
pub(crate) const WAITING: [(&str, &str); 4] = [
    ("DRAIN_QUIET_PERIOD", "500ms"),
    ("TOMBSTONE_AGE", "1s"),
    ("REQUEUE_PENDING", "500ms"),
    ("REQUEUE_ERROR", "2s"),
];

/// Where the operator serves its webhooks, and how the API server reaches them.
fn webhooks(address: SocketAddr) -> [(OsString, OsString); 2] {
    [
        ("WEBHOOK_BIND_ADDRESS".into(), address.to_string().into()),
        ("WEBHOOK_URL".into(), format!("https://{address}").into()),
    ]
}

/// A port that is free now. The operator binds it a moment later; nobody else uses the site's address.
fn free_port(address: Ipv4Addr) -> std::io::Result<SocketAddr> {
    TcpListener::bind((address, 0))?.local_addr()
}
