//! Why a node's process ends without having been told to.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::configuration::ConfigurationError;
use super::control::HubCallError;
use super::secrets::SecretError;

/// A variable of the environment that is missing or wrong.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// It is not there.
    #[error("{name} is not set: it says {what}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// What it says.
        what: &'static str,
    },
    /// It makes no sense.
    #[error("{name} is `{value}`; expected {expected}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The file with the hub's token cannot be read.
    #[error("cannot read the file {path} that ONEWRITER_HUB_TOKEN_FILE names")]
    TokenFile {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The hub's token is empty.
    #[error("the hub's control token is empty; write the token of the hub into it")]
    NoToken,
}

/// Why a node's process ends without having been told to.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration cannot be read.
    #[error("Failed to read config file {}", .path.display())]
    ReadConfiguration {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The configuration is none.
    #[error("Invalid config file {}", .path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ConfigurationError,
    },
    /// A secret cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The environment does not say what it should.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The hub refuses the node.
    #[error("the hub at {hub} did not start the node {node}")]
    Refused {
        /// The hub.
        hub: String,
        /// The node.
        node: String,
        /// Why.
        source: HubCallError,
    },
    /// The hub did not come.
    #[error("the hub at {hub} did not start the node {node} within {} s", .patience.as_secs())]
    NoHub {
        /// The hub.
        hub: String,
        /// The node.
        node: String,
        /// How long it was waited for.
        patience: Duration,
        /// What the last attempt said.
        source: HubCallError,
    },
    /// A port is taken.
    #[error("cannot listen on {address} ({key})")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The key of the configuration that says so.
        key: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The hub has gone away while the node ran.
    #[error("the hub at {hub} is gone, and the node {node} with it")]
    HubGone {
        /// The hub.
        hub: String,
        /// The node.
        node: String,
    },
    /// Signals cannot be received.
    #[error("cannot receive signals")]
    Signals(#[source] io::Error),
}

impl NodeError {
    /// The exit code: 1 where Garage would exit with it too and where the hub is gone, 2 for the environment that
    /// only the fake has, 96 where the hub did not start the node.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Environment(_) => 2,
            Self::Refused { .. } | Self::NoHub { .. } => 96,
            Self::ReadConfiguration { .. }
            | Self::Configuration { .. }
            | Self::Secret(_)
            | Self::Listen { .. }
            | Self::HubGone { .. }
            | Self::Signals(_) => 1,
        }
    }
}
