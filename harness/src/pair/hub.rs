//! The hub as a child process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::RngCore as _;

use super::probe::{self, ProbeError};
use super::secret_file;
use crate::entry;
use crate::failure::BoxError;
use crate::garage::hub::Hub;
use crate::process::{Child, Launch, Launcher};
use crate::supervisor::PairAddresses;

/// The hidden subcommand under which the executable is a hub; it takes the arguments of `fake-garage`.
pub const COMMAND: &str = "__hub";

/// How long a hub may take to answer.
const READY: Duration = Duration::from_secs(10);

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
) -> Result<RunningHub, BoxError> {
    let folder = folder.join("hub");
    secret_file::create_folder(&folder)?;
    let token = secret();
    let token_file = folder.join("control-token");
    secret_file::write(&token_file, token.as_bytes())?;
    let journal = folder.join("journal.jsonl");
    let launch = Launch {
        name: "hub".to_owned(),
        program: entry::executable()?,
        args: arguments(addresses, &token_file, &journal, run),
        env: vec![("RUST_LOG".into(), "info".into())],
        log: folder.join("hub.log"),
    };
    let child = launcher.launch(launch).await?;
    let control = format!("http://{}", addresses.hub());
    ready(&child, &control, &token).await?;
    let client = Hub::new(&control, &token)?;
    Ok(RunningHub { child, client, control, token_file, journal })
}

fn arguments(addresses: PairAddresses, token_file: &Path, journal: &Path, run: &str) -> Vec<OsString> {
    let text = |text: String| OsString::from(text);
    vec![
        COMMAND.into(),
        "serve".into(),
        "--listen".into(),
        text(addresses.hub().to_string()),
        "--control-token-file".into(),
        token_file.into(),
        "--journal".into(),
        journal.into(),
        "--run".into(),
        run.into(),
        "--node-network".into(),
        text(format!("{}/17", addresses.first_node())),
        "--proxy".into(),
        text(format!("east={}", addresses.east_proxy())),
        "--proxy".into(),
        text(format!("west={}", addresses.west_proxy())),
    ]
}

async fn ready(child: &Child, control: &str, token: &str) -> Result<(), ProbeError> {
    probe::until_success(child, &format!("{control}/control/v1/state"), Some(token), READY).await
}

/// 32 random bytes in hex.
fn secret() -> String {
    let mut bytes = [0_u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    hex::encode(bytes)
}
