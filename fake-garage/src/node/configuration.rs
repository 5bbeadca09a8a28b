//! `garage.toml`, as far as a node of the hub takes notice of it.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use crate::layout::{ConsistencyMode, LARGEST_FACTOR};

/// Where Garage looks for its configuration unless it is told (Garage documentation, "Configuration file format").
pub const DEFAULT_PATH: &str = "/etc/garage.toml";

/// The part of `garage.toml` that a node of the hub takes notice of. Other keys are read over, as Garage does; those
/// without which it does not start (seen with 2.5.0) are missed here, too.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Configuration {
    /// Where Garage keeps its metadata. The fake writes nothing there.
    pub metadata_dir: PathBuf,
    /// Where Garage keeps data: a folder, or several with their capacities. The fake writes nothing there.
    data_dir: DataDirectories,
    /// Copies of each partition.
    #[serde(default)]
    replication_factor: Option<usize>,
    /// How much the cluster gives up to stay available.
    #[serde(default)]
    pub consistency_mode: ConsistencyMode,
    /// Where RPC listens.
    pub rpc_bind_addr: String,
    /// Where others reach its RPC.
    #[serde(default)]
    pub rpc_public_addr: Option<String>,
    /// Whether files with secrets may be readable by others.
    #[serde(default)]
    pub allow_world_readable_secrets: Option<bool>,
    #[serde(default)]
    pub(super) rpc_secret: Option<String>,
    #[serde(default)]
    pub(super) rpc_secret_file: Option<String>,
    /// `[admin]`
    #[serde(default)]
    pub admin: AdminSection,
    /// `[s3_api]`
    pub s3_api: S3Section,
    /// `[k2v_api]`
    #[serde(default)]
    pub k2v_api: Option<ApiSection>,
    /// `[s3_web]`
    #[serde(default)]
    pub s3_web: Option<WebSection>,
}

/// `[admin]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct AdminSection {
    /// Where the admin API listens; without it there is none.
    #[serde(default)]
    pub api_bind_addr: Option<String>,
    #[serde(default)]
    pub(super) admin_token: Option<String>,
    #[serde(default)]
    pub(super) admin_token_file: Option<String>,
    #[serde(default)]
    pub(super) metrics_token: Option<String>,
    #[serde(default)]
    pub(super) metrics_token_file: Option<String>,
}

/// `data_dir`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum DataDirectories {
    One(PathBuf),
    Several(Vec<DataDirectory>),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct DataDirectory {
    #[serde(rename = "path")]
    _path: PathBuf,
}

/// `[s3_api]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct S3Section {
    /// The region that clients name, which error answers repeat.
    pub s3_region: String,
    /// Where it listens.
    #[serde(default)]
    pub api_bind_addr: Option<String>,
}

/// `[k2v_api]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct ApiSection {
    /// Where it listens.
    #[serde(default)]
    pub api_bind_addr: Option<String>,
}

/// `[s3_web]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct WebSection {
    /// Where it listens.
    #[serde(default)]
    pub bind_addr: Option<String>,
}

/// A text that is no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// It is no TOML, or a key has a value of another kind. The text is not quoted: it may hold secrets.
    #[error("TOML decode error: TOML parse error at line {line}, column {column}: {problem}")]
    Toml {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// How many copies to keep is not said. The text is Garage's.
    #[error("The option replication_factor is required.")]
    NoFactor,
    /// A key with a value that makes no sense.
    #[error("invalid {key}: {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong.
        problem: String,
    },
}

impl Configuration {
    /// Reads a configuration.
    pub fn parse(text: &str) -> Result<Self, ConfigurationError> {
        let configuration: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
            ConfigurationError::Toml { line, column, problem: error.message().to_owned() }
        })?;
        let factor = configuration.replication_factor.ok_or(ConfigurationError::NoFactor)?;
        if !(1..=LARGEST_FACTOR).contains(&factor) {
            let problem = format!("{factor} copies cannot be kept; set it to 1 to {LARGEST_FACTOR}");
            return Err(ConfigurationError::Value { key: "replication_factor", problem });
        }
        Ok(configuration)
    }

    /// Copies of each partition.
    #[must_use]
    pub fn replication_factor(&self) -> usize {
        // There is none without: `parse` refuses it.
        self.replication_factor.unwrap_or(1)
    }

    /// Where the admin API listens.
    pub fn admin_address(&self) -> Result<Option<SocketAddr>, ConfigurationError> {
        address("admin.api_bind_addr", self.admin.api_bind_addr.as_deref())
    }

    /// Where the other ports listen, each with the key that says so.
    pub fn other_addresses(&self) -> Result<Vec<(&'static str, SocketAddr)>, ConfigurationError> {
        let k2v = self.k2v_api.as_ref().and_then(|section| section.api_bind_addr.clone());
        let web = self.s3_web.as_ref().and_then(|section| section.bind_addr.clone());
        let ports = [
            ("rpc_bind_addr", Some(self.rpc_bind_addr.clone())),
            ("s3_api.api_bind_addr", self.s3_api.api_bind_addr.clone()),
            ("k2v_api.api_bind_addr", k2v),
            ("s3_web.bind_addr", web),
        ];
        let read = |(key, text): (&'static str, Option<String>)| {
            address(key, text.as_deref()).map(|address| address.map(|address| (key, address))).transpose()
        };
        ports.into_iter().filter_map(read).collect()
    }
}

fn address(key: &'static str, text: Option<&str>) -> Result<Option<SocketAddr>, ConfigurationError> {
    let parse = |text: &str| {
        text.parse().map_err(|_| ConfigurationError::Value {
            key,
            problem: format!("`{text}` is not ADDRESS:PORT; sockets in the file system are not offered here"),
        })
    };
    text.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const FULL: &str = r#"
metadata_dir = "/data/metadata"
data_dir = [{ path = "/data/data", capacity = "1G" }]
db_engine = "lmdb"
replication_factor = 2
consistency_mode = "degraded"
rpc_bind_addr = "[::]:3901"
rpc_public_addr = "10.0.0.7:3901"
bootstrap_peers = []

[s3_api]
s3_region = "garage"
api_bind_addr = "[::]:3900"

[s3_web]
bind_addr = "[::]:3902"
root_domain = ".web"

[admin]
api_bind_addr = "[::]:3903"
"#;

    #[test]
    fn a_whole_configuration_is_read_and_what_is_of_no_use_read_over() {
        let configuration = Configuration::parse(FULL).unwrap();
        assert_eq!(
            (configuration.replication_factor(), configuration.consistency_mode),
            (2, ConsistencyMode::Degraded)
        );
        assert_eq!(configuration.admin_address().unwrap(), Some("[::]:3903".parse().unwrap()));
        let ports: Vec<_> =
            configuration.other_addresses().unwrap().into_iter().map(|(_, address)| address.port()).collect();
        assert_eq!(ports, [3901, 3900, 3902]);
    }

    /// What Garage does not start without, with `more` behind it.
    fn whole(more: &str) -> String {
        format!(
            "metadata_dir = '/m'\ndata_dir = '/d'\nrpc_bind_addr = '[::]:3901'\ns3_api.s3_region = 'r'\n{more}"
        )
    }

    #[rstest]
    #[case::nothing(
        String::new(),
        "TOML decode error: TOML parse error at line 1, column 1: missing field `metadata_dir`"
    )]
    #[case::no_data(
        whole("").replace("data_dir = '/d'", ""),
        "TOML decode error: TOML parse error at line 1, column 1: missing field `data_dir`"
    )]
    #[case::no_rpc(
        whole("").replace("rpc_bind", "rpc_find"),
        "TOML decode error: TOML parse error at line 1, column 1: missing field `rpc_bind_addr`"
    )]
    #[case::no_s3(whole("").replace("s3_api", "s4_api"), "TOML decode error: TOML parse error at line 1, column 1: missing field `s3_api`")]
    #[case::no_factor(whole(""), "The option replication_factor is required.")]
    #[case::no_toml(
        whole("replication_factor = 1\nrpc_secret = 'top-secret' x\n"),
        "TOML decode error: TOML parse error at line 6, column "
    )]
    #[case::another_kind(
        whole("\nreplication_factor = 'two'\n"),
        "TOML decode error: TOML parse error at line 6, column 22: invalid type: string"
    )]
    #[case::unknown_mode(
        whole("replication_factor = 1\nconsistency_mode = 'lax'\n"),
        "TOML decode error: TOML parse error at line 6, column 20: unknown variant `lax`"
    )]
    #[case::no_copies(whole("replication_factor = 0"), "invalid replication_factor: 0 copies")]
    #[case::negative(
        whole("replication_factor = -1"),
        "TOML decode error: TOML parse error at line 5, column 22: invalid value"
    )]
    fn what_is_no_configuration_is_refused_with_its_line(#[case] text: String, #[case] expected: &str) {
        let error = Configuration::parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected) && !error.contains("top-secret"), "{error}");
    }

    #[test]
    fn an_address_that_is_none_is_named_by_its_key() {
        let text = whole("replication_factor = 1\n[admin]\napi_bind_addr = '/run/garage.sock'\n");
        let error = Configuration::parse(&text).unwrap().admin_address().unwrap_err().to_string();
        assert!(error.starts_with("invalid admin.api_bind_addr: `/run/garage.sock`"), "{error}");
    }
}
