//! `fake-garage serve`.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use fake_garage::mesh::Pacing;
use fake_garage::{ControlToken, NodeNetwork, Options};
use tokio::signal::unix::{SignalKind, signal};

use super::CliError;

/// Run a hub: nodes of any number of meshes, a control API, proxies, one recorded history.
///
/// Prints one line of JSON once it is ready, and runs until SIGTERM or SIGINT.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Serve {
    /// Address of the control API; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    listen: SocketAddr,
    /// File with the token that the control API demands; others must not be able to read it.
    #[arg(long, value_name = "FILE")]
    control_token_file: PathBuf,
    /// File to write the history to; it must not exist.
    #[arg(long, value_name = "FILE")]
    journal: PathBuf,
    /// Name of the run, for the history's header.
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    run: String,
    /// Addresses that nodes may take: the first one, and how many.
    #[arg(long, value_name = "FIRST+COUNT")]
    node_network: NodeNetwork,
    /// Where the HTTP proxy of a site listens. May be repeated.
    #[arg(long = "proxy", value_name = "SITE=ADDRESS:PORT", value_parser = site_address)]
    proxies: Vec<(String, SocketAddr)>,
    /// How fast things happen in meshes.
    #[arg(long, value_enum, default_value_t = PacingName::Fast)]
    pacing: PacingName,
    /// Seed of everything that is left to chance, node identities included.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

const EXIT_CODES: &str = "Exit codes: 0 ended by a signal · 1 the history could not be continued · 2 mistake in the \
                          command line or the token's file · 96 an address is taken, or the history exists or cannot \
                          be created";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PacingName {
    /// Meshes settle in well under a second.
    Fast,
    /// As measured on real processes.
    Observed,
}

fn run_name(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        Err("expected a name, such as the date or the number of a job")
    } else {
        Ok(text.to_owned())
    }
}

fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "expected ADDRESS:PORT with a numeric address, such as 127.20.0.3:7070".to_owned())
}

fn site_address(text: &str) -> Result<(String, SocketAddr), String> {
    let (site, address) =
        text.split_once('=').ok_or("expected SITE=ADDRESS:PORT, such as east=127.20.0.4:3128")?;
    if site.is_empty() {
        return Err("the name of the site is missing before `=`".to_owned());
    }
    Ok((site.to_owned(), socket_address(address)?))
}

impl Serve {
    /// Runs the hub until SIGTERM or SIGINT.
    pub(super) fn run(self) -> Result<ExitCode, CliError> {
        let options = self.options()?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
        runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate()).map_err(CliError::Runtime)?;
            let mut interrupt = signal(SignalKind::interrupt()).map_err(CliError::Runtime)?;
            let shutdown = async move {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            };
            fake_garage::serve(options, shutdown).await?;
            Ok(ExitCode::SUCCESS)
        })
    }

    fn options(self) -> Result<Options, CliError> {
        let proxies = by_site(self.proxies)?;
        let control_token = control_token(self.control_token_file)?;
        Ok(Options {
            listen: self.listen,
            control_token,
            journal: self.journal,
            run: self.run,
            node_network: self.node_network,
            proxies,
            pacing: match self.pacing {
                PacingName::Fast => Pacing::fast(),
                PacingName::Observed => Pacing::observed(),
            },
            seed: self.seed,
        })
    }
}

fn by_site(proxies: Vec<(String, SocketAddr)>) -> Result<BTreeMap<String, SocketAddr>, CliError> {
    let mut by_site = BTreeMap::new();
    for (site, address) in proxies {
        if let Some(other) = by_site.insert(site.clone(), address) {
            return Err(CliError::TwoProxies { site, one: other, other: address });
        }
    }
    Ok(by_site)
}

fn control_token(path: PathBuf) -> Result<ControlToken, CliError> {
    let read = |source| CliError::Read { path: path.clone(), source };
    let mode = fs::metadata(&path).map_err(read)?.permissions().mode();
    let token = fs::read_to_string(&path).map_err(read)?;
    if mode & 0o007 != 0 {
        let problem = format!("anybody may read the token (mode 0{:o}); chmod 600 the file", mode & 0o777);
        return Err(CliError::BadFile { path, problem });
    }
    if token.trim().lines().count() > 1 {
        let problem = "the file holds several lines; it should hold the token alone".to_owned();
        return Err(CliError::BadFile { path, problem });
    }
    ControlToken::new(&token).ok_or_else(|| CliError::BadFile {
        path,
        problem: "the file holds no token; write a random text into it".to_owned(),
    })
}
