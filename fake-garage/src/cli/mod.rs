//! The command line.

mod node;
mod replay;
mod serve;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fake_garage::ServeError;
use fake_garage::node::NodeError;
use fake_garage::replay::ScriptError;

/// A recording fake of the Garage admin API and cluster layout.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXIT_CODES)]
pub(crate) struct Command {
    #[command(subcommand)]
    action: Action,
}

/// The command line, by the name under which the program is called: pods execute it as `garage`.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// `fake-garage …`
    FakeGarage(Command),
    /// `garage …`
    Garage(node::Garage),
}

impl Invocation {
    /// Reads the command line; a mistake in it ends the process.
    pub(crate) fn parse() -> Self {
        let name = std::env::args_os().next().map(PathBuf::from);
        if name.as_deref().and_then(Path::file_name).is_some_and(|name| name == "garage") {
            Self::Garage(node::Garage::parse())
        } else {
            Self::FakeGarage(Command::parse())
        }
    }

    /// What is logged unless `RUST_LOG` says otherwise.
    pub(crate) const fn default_log(&self) -> &'static str {
        match self {
            Self::FakeGarage(Command { action: Action::Serve(_) | Action::Replay(_) }) => "warn",
            Self::FakeGarage(_) | Self::Garage(_) => "warn,garage=info",
        }
    }

    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        match self {
            Self::FakeGarage(command) => command.run(),
            Self::Garage(garage) => garage.run(),
        }
    }
}

const EXIT_CODES: &str = "Exit codes: 0 fine · 1 error while running · 2 mistake in the command line or its files · \
                          3 a replay is not as recorded · 96 the hub could not start";

#[derive(Debug, Subcommand)]
enum Action {
    /// Run a hub: nodes of any number of meshes, a control API, proxies, one recorded history.
    Serve(serve::Serve),
    /// Run the process of a pod: a node of a hub, on the pod's own ports. Also run as `garage server`.
    Node(node::Node),
    /// Play recorded sessions with real Garage to the fake, and compare every answer.
    Replay(replay::Replay),
}

/// Why a command ended without success.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A file named on the command line cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file named on the command line does not hold what it should.
    #[error("{}: {problem}", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A site has one proxy.
    #[error("--proxy is given twice for {site}: {one} and {other}; a site has one")]
    TwoProxies {
        /// The site.
        site: String,
        /// What was given first.
        one: SocketAddr,
        /// What was given then.
        other: SocketAddr,
    },
    /// A file is no recorded session.
    #[error("cannot replay {}", .path.display())]
    Script {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ScriptError,
    },
    /// The runtime could not start.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// The hub could not start or go on.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A node's process could not start or go on.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        match self.action {
            Action::Serve(serve) => serve.run(),
            Action::Node(node) => node.run(),
            Action::Replay(replay) => replay.run(),
        }
    }
}

impl CliError {
    /// Prints the error with its causes, and gives the exit code.
    #[expect(clippy::print_stderr, reason = "errors are for the terminal")]
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("error: {self}");
        let mut cause = self.source();
        while let Some(error) = cause {
            eprintln!("  because: {error}");
            cause = error.source();
        }
        ExitCode::from(match self {
            Self::Read { .. } | Self::BadFile { .. } | Self::TwoProxies { .. } | Self::Script { .. } => 2,
            Self::Serve(ServeError::Listen { .. } | ServeError::Begin(_)) => 96,
            Self::Node(error) => error.exit_code(),
            Self::Runtime(_) | Self::Serve(ServeError::Record(_)) => 1,
        })
    }
}
