//! What plays the pods.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;

use crate::{failure::BoxError, site::Site};

/// A pod's name: unique as long as it lives; its successor has it, too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodName {
    /// Its site.
    pub site: Site,
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub pod: String,
}

/// Everything that a pod's process may know.
#[derive(Clone, PartialEq, Eq)]
pub struct PodStart {
    /// The pod.
    pub name: PodName,
    /// Its unique identifier.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Environment of its first container. Values that depend on the pod's address are not in it.
    pub env: BTreeMap<String, String>,
    /// Command lines of its init containers, by their names.
    pub init_commands: BTreeMap<String, Vec<String>>,
    /// Content of ConfigMap and Secret volumes of its first container, by absolute path.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// The runtime did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {pod}")]
pub struct RuntimeError {
    /// What it was asked to do.
    pub action: &'static str,
    /// To which pod.
    pub pod: PodName,
    /// Why.
    pub source: BoxError,
}

/// Plays pods.
pub trait PodRuntime: fmt::Debug + Send + Sync + 'static {
    /// Starts the process of a pod and returns its address. For one that runs already, just the address.
    fn start(&self, pod: PodStart) -> BoxFuture<'_, Result<IpAddr, RuntimeError>>;

    /// Ends the process of a pod. For one that does not run, nothing.
    fn stop(&self, pod: PodName) -> BoxFuture<'_, Result<(), RuntimeError>>;
}

impl PodName {
    /// The name of a pod of `site`.
    pub fn of(site: Site, pod: &Pod) -> Self {
        let metadata = &pod.metadata;
        Self {
            site,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            pod: metadata.name.clone().unwrap_or_default(),
        }
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.site, self.namespace, self.pod)
    }
}

/// Names only: values may be secret.
impl fmt::Debug for PodStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodStart")
            .field("name", &self.name.to_string())
            .field("env", &self.env.keys())
            .field("files", &self.files.keys())
            .finish_non_exhaustive()
    }
}
