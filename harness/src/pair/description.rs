//! Where the parts of a running pair are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::site::PerSite;

/// A running pair: where its parts listen and log. Secrets are named by the files that hold them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PairDescription {
    /// Name of the pair.
    pub name: String,
    /// Which provider made it.
    pub provider: String,
    /// The pair's folder.
    pub dir: PathBuf,
    /// Both sites.
    pub sites: PerSite<SiteDescription>,
    /// The hub.
    pub hub: HubDescription,
    /// Versions of what runs: program to version.
    pub versions: BTreeMap<String, String>,
    /// Milliseconds that the phases of the start took.
    pub durations_ms: BTreeMap<String, u64>,
}

/// One site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteDescription {
    /// URL of the API server.
    pub api_server: String,
    /// Kubeconfig of an administrator; mode 0600, never the user's own.
    pub kubeconfig: PathBuf,
    /// The API server's audit log.
    pub audit_log: PathBuf,
    /// Logs of the site's programs, by program.
    pub logs: BTreeMap<String, PathBuf>,
    /// The operator under test.
    pub operator: OperatorDescription,
}

/// An operator under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorDescription {
    /// The program.
    pub program: PathBuf,
    /// Where it serves its metrics: a URL, or a path at its site's API server.
    pub metrics: String,
    /// Its log.
    pub log: PathBuf,
}

/// The hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HubDescription {
    /// URL of its control API.
    pub control: String,
    /// File with the token of the control API; mode 0600.
    pub token_file: PathBuf,
    /// Its journal.
    pub journal: PathBuf,
    /// Its log.
    pub log: PathBuf,
    /// URL of the HTTP proxy through which this machine reaches nodes by their addresses; none where it reaches them
    /// without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
}
