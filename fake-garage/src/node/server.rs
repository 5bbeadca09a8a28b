//! The process of a node, from start to end.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::Instant;

use super::configuration::{Configuration, DEFAULT_PATH};
use super::control::{Followed, HubCallError, HubClient, NodeStart};
use super::error::NodeError;
use super::secrets::{SecretFile, SecretOptions, Secrets};
use super::surroundings::Surroundings;
use super::{forward, ports};
use crate::hub::life::Ended;
use crate::hub::registry::NodeAddress;

/// First and longest pause between attempts to reach the hub.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long the hub may take to hear that the process ends: the whole end is to take less than a second.
const FAREWELL: Duration = Duration::from_millis(700);

/// What a process that was killed exits with, as a shell and a kubelet tell it.
const KILLED: u8 = 128;

/// Runs a node until `shutdown` resolves, its process ends in the hub, or the hub goes away. Returns the exit code.
///
/// `env` is the process's environment, `configuration` the file named on the command line.
pub async fn run(
    env: BTreeMap<String, String>,
    configuration: Option<PathBuf>,
    shutdown: impl Future<Output = ()>,
) -> Result<u8, NodeError> {
    let node = Node::read(&env, configuration)?;
    tokio::pin!(shutdown);
    let started = tokio::select! {
        started = node.start() => started,
        () = &mut shutdown => {
            // The hub may have started the node and not have said so yet.
            node.farewell().await;
            return Ok(0);
        }
    };
    let (address, followed) = started?;
    if let Err(error) = node.listen().await {
        node.farewell().await;
        return Err(error);
    }
    tracing::info!(target: "garage", node = node.name, id = address.node_id, mesh = address.mesh, "node started");
    // It is followed until after the farewell: whoever stops following kills the node.
    let end = followed.end();
    tokio::pin!(end);
    tokio::select! {
        end = &mut end => match end {
            Some(Ended::Exit(code)) => Ok(u8::try_from(code).unwrap_or(1)),
            Some(Ended::Signal(signal)) => Ok(KILLED.saturating_add(u8::try_from(signal).unwrap_or_default())),
            None => Err(NodeError::HubGone { hub: node.hub.clone(), node: node.name.clone() }),
        },
        () = &mut shutdown => {
            node.farewell().await;
            Ok(0)
        }
    }
}

/// Everything that is known before the hub is asked.
struct Node {
    name: String,
    hub: String,
    patience: Duration,
    client: Arc<HubClient>,
    start: NodeStart,
    admin: Option<SocketAddr>,
    others: Vec<(&'static str, SocketAddr)>,
}

impl Node {
    fn read(env: &BTreeMap<String, String>, path: Option<PathBuf>) -> Result<Self, NodeError> {
        let path = path
            .or_else(|| env.get("GARAGE_CONFIG_FILE").map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from(DEFAULT_PATH));
        let text = fs::read_to_string(&path)
            .map_err(|source| NodeError::ReadConfiguration { path: path.clone(), source })?;
        let bad = |source| NodeError::Configuration { path: path.clone(), source };
        let configuration = Configuration::parse(&text).map_err(bad)?;
        let (admin, others) =
            (configuration.admin_address().map_err(bad)?, configuration.other_addresses().map_err(bad)?);
        let secrets = Secrets::find(&configuration, &SecretOptions { env, read: &read_file })?;
        secrets.check()?;
        let around = Surroundings::read(env, &read_file, configuration.rpc_public_addr.as_deref())?;
        let client = HubClient::new(around.hub.clone(), around.token, &around.pod);
        Ok(Self {
            name: around.pod.path(),
            hub: around.hub,
            patience: around.patience,
            client: Arc::new(client),
            start: NodeStart {
                rpc_secret: secrets.rpc,
                admin_token: secrets.admin,
                metrics_token: secrets.metrics,
                replication_factor: configuration.replication_factor(),
                consistency_mode: configuration.consistency_mode,
                hostname: around.pod.pod,
                region: configuration.s3_api.s3_region.clone(),
                address: around.address,
                purge_layout: around.purge_layout,
            },
            admin,
            others,
        })
    }

    /// Has the hub start the node, as soon as there is a hub.
    async fn start(&self) -> Result<(NodeAddress, Followed), NodeError> {
        let until = Instant::now() + self.patience;
        let mut pause = PAUSES.0;
        loop {
            let source = match self.try_start().await {
                Ok(started) => return Ok(started),
                Err(error) => error,
            };
            let (hub, node) = (self.hub.clone(), self.name.clone());
            if !source.may_pass() {
                return Err(NodeError::Refused { hub, node, source });
            }
            if Instant::now() + pause > until {
                return Err(NodeError::NoHub { hub, node, patience: self.patience, source });
            }
            let error = &source as &dyn std::error::Error;
            tracing::warn!(target: "garage", hub, error, again_in = ?pause, "waiting for the hub");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn try_start(&self) -> Result<(NodeAddress, Followed), HubCallError> {
        let address = self.client.start(&self.start).await?;
        let followed = self.client.follow(address.boot).await?;
        Ok((address, followed))
    }

    /// Opens the pod's ports.
    async fn listen(&self) -> Result<(), NodeError> {
        if let Some(address) = self.admin {
            let listener = bind("admin.api_bind_addr", address).await?;
            tokio::spawn(forward::serve(listener, Arc::clone(&self.client)));
        }
        for (key, address) in &self.others {
            let listener = bind(key, *address).await?;
            tokio::spawn(ports::serve(listener, *key != "rpc_bind_addr"));
        }
        Ok(())
    }

    /// Tells the hub that the process ends.
    async fn farewell(&self) {
        match tokio::time::timeout(FAREWELL, self.client.stop()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(target: "garage", error = &error as &dyn std::error::Error, "the hub was not told of the end");
            }
            Err(_) => tracing::warn!(target: "garage", "the hub did not answer when it was told of the end"),
        }
    }
}

async fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, NodeError> {
    TcpListener::bind(address).await.map_err(|source| NodeError::Listen { address, key, source })
}

/// Reads a file with its permissions.
fn read_file(path: &str) -> io::Result<SecretFile> {
    let path = Path::new(path);
    let mode = fs::metadata(path)?.permissions().mode();
    Ok(SecretFile { text: fs::read_to_string(path)?, mode: Some(mode) })
}
