//! The hub as a child process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fake_garage::mesh::Pacing;
use fake_garage::{ControlToken, NodeNetwork, Options};
use rand::RngCore as _;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::{probe, secret_file};
use crate::entry;
use crate::failure::{BoxError, chain};
use crate::garage::hub::Hub;
use crate::process::{Child, Launch, Launcher};
use crate::supervisor::PairAddresses;

/// The hidden subcommand under which the executable is a hub; its argument is a file with a [`HubConfig`].
pub const COMMAND: &str = "__hub";

/// How long a hub may take to answer.
const READY: Duration = Duration::from_secs(10);

/// How many nodes a hub can have addresses for.
const NODES: u32 = 60_000;

/// What a hub process is started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HubConfig {
    listen: SocketAddr,
    token_file: PathBuf,
    journal: PathBuf,
    run: String,
    #[serde(default)]
    seed: u64,
    first_node: std::net::Ipv4Addr,
    proxies: BTreeMap<String, SocketAddr>,
}

/// A hub that runs.
#[derive(Debug)]
pub struct RunningHub {
    /// Its process.
    pub child: Child,
    /// A client of its control API.
    pub client: Hub,
    /// URL of its control API.
    pub control: String,
    /// File with the control token.
    pub token_file: PathBuf,
    /// Its journal.
    pub journal: PathBuf,
}

/// Starts the hub of a pair in `folder`, and waits until it answers.
pub async fn start(
    launcher: &Launcher,
    folder: &Path,
    addresses: PairAddresses,
    run: &str,
    seed: u64,
) -> Result<RunningHub, BoxError> {
    let folder = folder.join("hub");
    secret_file::create_folder(&folder)?;
    let token = secret();
    let token_file = folder.join("control-token");
    secret_file::write(&token_file, token.as_bytes())?;
    let config = HubConfig {
        listen: addresses.hub(),
        token_file: token_file.clone(),
        journal: folder.join("journal.jsonl"),
        run: run.to_owned(),
        seed,
        first_node: addresses.first_node(),
        proxies: [("east".to_owned(), addresses.east_proxy()), ("west".to_owned(), addresses.west_proxy())]
            .into(),
    };
    let config_file = folder.join("hub.json");
    secret_file::write(&config_file, &serde_json::to_vec_pretty(&config)?)?;
    let launch = Launch {
        name: "hub".to_owned(),
        program: entry::executable()?,
        args: vec![COMMAND.into(), config_file.into()],
        env: vec![("RUST_LOG".into(), "info".into())],
        log: folder.join("hub.log"),
    };
    let child = launcher.launch(launch).await?;
    let control = format!("http://{}", addresses.hub());
    probe::until_success(&child, &format!("{control}/control/v1/state"), Some(&token), READY).await?;
    let client = Hub::new(&control, &token)?;
    Ok(RunningHub { child, client, control, token_file, journal: config.journal })
}

/// What the hidden subcommand does: runs a hub until SIGTERM, and returns the exit code.
#[must_use]
pub fn host(args: &[OsString]) -> u8 {
    let hosted = match args {
        [config] => host_with(Path::new(config)),
        _ => Err("a hub takes one argument, the file with its configuration".into()),
    };
    match hosted {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!("{}", chain(error.as_ref()));
            1
        }
    }
}

fn host_with(config: &Path) -> Result<(), BoxError> {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let config: HubConfig = serde_json::from_slice(&std::fs::read(config)?)?;
    let token = std::fs::read_to_string(&config.token_file)?;
    let options = Options {
        listen: config.listen,
        control_token: ControlToken::new(&token).ok_or("the control token is empty")?,
        journal: config.journal,
        run: config.run,
        node_network: NodeNetwork { first: config.first_node, count: NODES },
        proxies: config.proxies,
        pacing: Pacing::fast(),
        seed: config.seed,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let shutdown = async move {
            terminate.recv().await;
        };
        Ok(fake_garage::serve(options, shutdown).await?)
    })
}

/// 32 random bytes in hex.
pub(crate) fn secret() -> String {
    let mut bytes = [0_u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    hex::encode(bytes)
}
