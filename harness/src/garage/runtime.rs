//! Garage nodes of the hub as the processes of pods.

use std::{io, net::IpAddr};

use fake_garage::node::{
    Configuration, ConfigurationError, SecretError, SecretOptions, Secrets, configuration::DEFAULT_PATH,
    secrets::SecretFile,
};
use futures::{FutureExt as _, future::BoxFuture};

use super::hub::{Hub, HubError, NodeName, NodeSpec};
use crate::{
    agent::{Names, PodName, PodRuntime, PodStart, Routes, RuntimeError},
    failure::BoxError,
    site::Site,
};

/// Init container that removes the layout file once, in a migration of the replication factor (operator contract §5.9).
const PURGE: &str = "purge-cluster-layout";

/// Plays pods with nodes of the hub, and tells the hub their Services' names.
#[derive(Debug, Clone)]
pub struct GarageRuntime {
    hub: Hub,
}

/// Why a pod cannot be played by a Garage node.
#[derive(Debug, thiserror::Error)]
pub enum GaragePodError {
    /// No configuration file.
    #[error("the pod has no Garage configuration at {path}: no ConfigMap or Secret is mounted there")]
    NoConfiguration {
        /// Where Garage would read it.
        path: String,
    },
    /// A configuration file that cannot be read.
    #[error("the Garage configuration {path} cannot be read")]
    Configuration {
        /// Where it is.
        path: String,
        /// Why.
        source: ConfigurationError,
    },
    /// A secret that cannot be had.
    #[error("a secret of the pod cannot be had")]
    Secret(#[from] SecretError),
    /// An address that is none.
    #[error("the hub gave {address:?} for an address")]
    Address {
        /// What it gave.
        address: String,
        /// Why.
        source: std::net::AddrParseError,
    },
    /// The hub.
    #[error("the hub did not start the node")]
    Hub(#[from] HubError),
}

impl GarageRuntime {
    /// A runtime whose nodes live in `hub`.
    pub fn new(hub: Hub) -> Self {
        Self { hub }
    }

    async fn start_node(&self, pod: &PodStart) -> Result<IpAddr, GaragePodError> {
        let spec = node_spec(pod)?;
        let node = self.hub.put_node(&node_name(&pod.name), &spec).await?;
        let address = node.address;
        address.parse().map_err(|source| GaragePodError::Address { address, source })
    }
}

impl PodRuntime for GarageRuntime {
    fn start(&self, pod: PodStart) -> BoxFuture<'_, Result<IpAddr, RuntimeError>> {
        async move {
            let started = self.start_node(&pod).await;
            started.map_err(|error| RuntimeError { action: "start", pod: pod.name, source: error.into() })
        }
        .boxed()
    }

    fn stop(&self, pod: PodName) -> BoxFuture<'_, Result<(), RuntimeError>> {
        async move {
            let stopped = self.hub.delete_node(&node_name(&pod)).await;
            stopped.map_err(|error| RuntimeError { action: "stop", pod, source: error.into() })
        }
        .boxed()
    }
}

impl Routes for GarageRuntime {
    fn replace(&self, site: Site, names: Names) -> BoxFuture<'_, Result<(), BoxError>> {
        async move { self.hub.put_routes(site.name(), &names).await.map_err(BoxError::from) }.boxed()
    }
}

fn node_name(pod: &PodName) -> NodeName {
    NodeName { site: pod.site.name().to_owned(), namespace: pod.namespace.clone(), pod: pod.pod.clone() }
}

/// What Garage would make of the pod's environment and files.
fn node_spec(pod: &PodStart) -> Result<NodeSpec, GaragePodError> {
    let configuration = configuration(pod)?;
    let read = |path: &str| read(pod, path);
    let secrets = Secrets::find(&configuration, &SecretOptions { env: &pod.env, read: &read })?;
    Ok(NodeSpec {
        rpc_secret: secrets.rpc,
        admin_token: secrets.admin,
        metrics_token: secrets.metrics,
        replication_factor: u32::try_from(configuration.replication_factor()).unwrap_or(u32::MAX),
        consistency_mode: configuration.consistency_mode.name().to_owned(),
        hostname: pod.name.pod.clone(),
        region: configuration.s3_api.s3_region.clone(),
        purge_layout: pod.init_commands.get(PURGE).map(|command| command.join(" ")),
    })
}

fn configuration(pod: &PodStart) -> Result<Configuration, GaragePodError> {
    let path = pod.env.get("GARAGE_CONFIG_FILE").map_or(DEFAULT_PATH, String::as_str).to_owned();
    let Some(file) = pod.files.get(&path) else { return Err(GaragePodError::NoConfiguration { path }) };
    let text = String::from_utf8_lossy(file);
    Configuration::parse(&text).map_err(|source| GaragePodError::Configuration { path, source })
}

/// A file that is mounted into the pod. It has no permissions: nobody else is there to read it.
fn read(pod: &PodStart, path: &str) -> io::Result<SecretFile> {
    let data = pod.files.get(path).ok_or(io::ErrorKind::NotFound)?;
    Ok(SecretFile { text: String::from_utf8_lossy(data).into_owned(), mode: None })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn pod(env: &[(&str, &str)], files: &[(&str, &str)]) -> PodStart {
        PodStart {
            name: PodName { site: Site::East, namespace: "cell".into(), pod: "garage-0".into() },
            uid: "u".into(),
            labels: BTreeMap::new(),
            env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            init_commands: BTreeMap::new(),
            files: files.iter().map(|(path, text)| ((*path).into(), text.as_bytes().to_vec())).collect(),
        }
    }

    const CONFIGURATION: &str = "metadata_dir = \"/m\"\ndata_dir = \"/d\"\nreplication_factor = 2\nrpc_bind_addr = \"[::]:3901\"\nrpc_secret_file = \"/secrets/rpc\"\n[s3_api]\ns3_region = \"garage\"\n[admin]\napi_bind_addr = \"[::]:3903\"\n";

    #[test]
    fn a_node_is_what_environment_and_configuration_say() {
        let env = [
            ("GARAGE_CONFIG_FILE", "/etc/garage/garage.toml"),
            ("GARAGE_RPC_SECRET", "r"),
            ("GARAGE_ADMIN_TOKEN", "a"),
        ];
        let spec = node_spec(&pod(&env, &[("/etc/garage/garage.toml", CONFIGURATION)])).unwrap();
        let expected = NodeSpec {
            rpc_secret: "r".into(),
            admin_token: Some("a".into()),
            metrics_token: None,
            replication_factor: 2,
            consistency_mode: "consistent".into(),
            hostname: "garage-0".into(),
            region: "garage".into(),
            purge_layout: None,
        };
        assert!(spec == expected, "{spec:?}");
    }

    #[test]
    fn an_init_container_that_purges_the_layout_is_known_by_its_command_line() {
        let files = [("/etc/garage.toml", CONFIGURATION), ("/secrets/rpc", "r")];
        let mut pod = pod(&[], &files);
        pod.init_commands.insert("other".into(), vec!["rm".into()]);
        assert_eq!(node_spec(&pod).unwrap().purge_layout, None);
        pod.init_commands.insert(PURGE.into(), vec!["purge-layout".into(), "--once=2-7".into()]);
        assert_eq!(node_spec(&pod).unwrap().purge_layout.as_deref(), Some("purge-layout --once=2-7"));
    }

    #[test]
    fn a_secret_may_come_from_a_file() {
        let files = [("/etc/garage.toml", CONFIGURATION), ("/secrets/rpc", "from-file\n")];
        assert_eq!(node_spec(&pod(&[], &files)).unwrap().rpc_secret, "from-file");
    }

    #[test]
    fn a_pod_that_is_no_garage_says_what_it_lacks() {
        let error = node_spec(&pod(&[], &[])).unwrap_err();
        assert!(error.to_string().contains("/etc/garage.toml"), "{error}");
        let without_secret = CONFIGURATION.replace("rpc_secret_file", "another_file");
        let error = node_spec(&pod(&[], &[("/etc/garage.toml", without_secret.as_str())])).unwrap_err();
        assert!(matches!(error, GaragePodError::Secret(SecretError::NoRpcSecret)));
    }

    #[test]
    fn an_unreadable_configuration_is_not_quoted() {
        let error = node_spec(&pod(&[], &[("/etc/garage.toml", "rpc_secret = 'top-secret' x")])).unwrap_err();
        let text = crate::failure::chain(&error);
        assert!(text.contains("/etc/garage.toml") && !text.contains("top-secret"), "{text}");
    }
}
