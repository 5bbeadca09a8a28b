//! `fake-garage node`, and `garage server`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand};
use fake_garage::admin::Profile;
use fake_garage::admin::node_info::FEATURES;
use fake_garage::node;
use tokio::signal::unix::{SignalKind, signal};

use super::CliError;

/// Run the process of a pod: a node of a hub, on the pod's own ports.
///
/// Reads `garage.toml` and Garage's environment, and from `ONEWRITER_HUB`, `ONEWRITER_HUB_TOKEN_FILE`,
/// `ONEWRITER_SITE`, `POD_NAMESPACE` and `HOSTNAME` which node of which hub it is. Also run as `garage server`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Node {
    #[command(flatten)]
    settings: Settings,
}

const EXIT_CODES: &str = "Exit codes: 0 after SIGTERM, or the hub stopped the node · 1 as Garage (configuration, \
                          secrets, a port taken, another replication factor), or the hub is gone · 2 mistake in the \
                          command line or the ONEWRITER_ environment · 96 the hub did not start the node · 137 killed \
                          by a fault";

/// What can be said on Garage's command line as well as in its environment.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// Configuration; else `$GARAGE_CONFIG_FILE`, else `/etc/garage.toml`.
    #[arg(short, long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// RPC secret, 64 hex digits.
    #[arg(long, value_name = "SECRET", global = true)]
    rpc_secret: Option<String>,
    /// File with the RPC secret.
    #[arg(long, value_name = "FILE", global = true)]
    rpc_secret_file: Option<String>,
    /// Admin token.
    #[arg(long, value_name = "TOKEN", global = true)]
    admin_token: Option<String>,
    /// File with the admin token.
    #[arg(long, value_name = "FILE", global = true)]
    admin_token_file: Option<String>,
    /// Metrics token.
    #[arg(long, value_name = "TOKEN", global = true)]
    metrics_token: Option<String>,
    /// File with the metrics token.
    #[arg(long, value_name = "FILE", global = true)]
    metrics_token_file: Option<String>,
    /// Whether files with secrets may be readable by others.
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true", global = true)]
    allow_world_readable_secrets: Option<bool>,
}

/// What `garage --version` prints behind the name, of the version that nodes pretend to be unless their mesh says
/// otherwise.
static GARAGE_VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} [features: {}]", Profile::default().version(), FEATURES.join(", ")));

/// The name `garage`: what the operator's pods execute.
#[derive(Debug, Parser)]
#[command(name = "garage", version = GARAGE_VERSION.as_str(), about = "A fake Garage: a node of a hub that records", after_help = EXIT_CODES)]
pub(crate) struct Garage {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    action: GarageAction,
}

#[derive(Debug, Subcommand)]
enum GarageAction {
    /// Run the node.
    Server,
}

impl Garage {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        match self.action {
            GarageAction::Server => self.settings.run(),
        }
    }
}

impl Node {
    /// Runs the command.
    pub(super) fn run(self) -> Result<ExitCode, CliError> {
        self.settings.run()
    }
}

impl Settings {
    fn run(self) -> Result<ExitCode, CliError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
        let env = self.environment(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        );
        let code = runtime.block_on(async {
            let signals = node::NodeError::Signals;
            let mut terminate = signal(SignalKind::terminate()).map_err(signals)?;
            let mut interrupt = signal(SignalKind::interrupt()).map_err(signals)?;
            let shutdown = async move {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            };
            node::run(env, self.config, shutdown).await
        });
        // Lookups of names cannot be interrupted, and nothing else is worth waiting for.
        runtime.shutdown_background();
        Ok(ExitCode::from(code?))
    }

    /// The environment, with what the command line says about the same things instead.
    fn environment(&self, inherited: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
        let mut env: BTreeMap<_, _> = inherited.collect();
        let pairs = [
            ("RPC_SECRET", &self.rpc_secret, &self.rpc_secret_file),
            ("ADMIN_TOKEN", &self.admin_token, &self.admin_token_file),
            ("METRICS_TOKEN", &self.metrics_token, &self.metrics_token_file),
        ];
        for (name, value, file) in pairs {
            for (variable, said) in [(format!("GARAGE_{name}"), value), (format!("GARAGE_{name}_FILE"), file)]
            {
                if let Some(said) = said {
                    env.insert(variable, said.clone());
                }
            }
        }
        if let Some(allowed) = self.allow_world_readable_secrets {
            env.insert("GARAGE_ALLOW_WORLD_READABLE_SECRETS".to_owned(), allowed.to_string());
        }
        env
    }
}
