//! Clients of API servers: one per role of this process, each with a user agent and, where that is on, an account of its
//! own. So audit logs tell who wrote without trusting the process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderName, HeaderValue, Request};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use thiserror::Error;
use tower::util::MapRequestLayer;

/// Header by which a request names its audit entry (Kubernetes API, package `audit`).
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// As whom a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientRole {
    /// Looks at what it starts from: the credential of the Active, definitions.
    Start,
    /// Renews the own Lease.
    Renewal,
    /// Promotes: the check of the own API server, the own Lease, the Event.
    Election,
    /// Reconciles.
    Reconcile,
    /// Writes copies.
    Mirror,
    /// Declares the hub on every `Cluster`.
    Publisher,
    /// Reads the Active.
    RemoteReader,
}

impl ClientRole {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Start,
        Self::Renewal,
        Self::Election,
        Self::Reconcile,
        Self::Mirror,
        Self::Publisher,
        Self::RemoteReader,
    ];

    /// Its name in user agents and accounts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Renewal => "renewal",
            Self::Election => "election",
            Self::Reconcile => "reconcile",
            Self::Mirror => "mirror",
            Self::Publisher => "publisher",
            Self::RemoteReader => "remote-reader",
        }
    }

    /// Its user agent.
    pub fn user_agent(self) -> String {
        format!("hub-controller-{}/{}", self.name(), env!("CARGO_PKG_VERSION"))
    }

    /// The ServiceAccount that it acts as in this namespace; `None` for those that act as the program itself.
    pub fn account(self, namespace: &str) -> Option<String> {
        match self {
            Self::Start | Self::RemoteReader => None,
            _ => Some(format!("system:serviceaccount:{namespace}:hub-controller-{}", self.name())),
        }
    }
}

/// Name of one request's audit entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditId(String);

impl AuditId {
    /// A new one.
    pub fn unique() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Names the audit entry of this request.
    pub fn name<B>(&self, request: &mut Request<B>) {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            request.headers_mut().insert(AUDIT_ID, value);
        }
    }
}

/// A client that could not be made.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig {} cannot be used", .path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What the loader says.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// There is no way to the API server.
    #[error("no Kubernetes API server is configured; set KUBECONFIG or --kubeconfig, or run in a pod")]
    NoCluster(#[source] Box<kube::config::InferConfigError>),
    /// The Kubernetes client could not be built.
    #[error("the Kubernetes client could not be set up")]
    Client(#[source] Box<kube::Error>),
}

/// Where this hub's API server is, and as whom it is asked.
#[derive(Clone)]
pub struct Clients {
    config: Config,
    impersonated_in: Option<String>,
}

impl Clients {
    /// From a kubeconfig, or from what the environment offers. Roles act as accounts in `impersonated_in`, if given.
    pub async fn new(
        kubeconfig: Option<&Path>,
        impersonated_in: Option<String>,
    ) -> Result<Self, ClientError> {
        let config = match kubeconfig {
            None => Config::infer().await.map_err(|error| ClientError::NoCluster(Box::new(error)))?,
            Some(path) => {
                let broken =
                    |source| ClientError::Kubeconfig { path: path.to_owned(), source: Box::new(source) };
                let file = Kubeconfig::read_from(path).map_err(broken)?;
                Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(broken)?
            }
        };
        Ok(Self { config, impersonated_in })
    }

    /// A client for this role. Requests that take longer than `patience` are given up; a watch may last.
    pub fn client(&self, role: ClientRole, patience: Option<Duration>) -> Result<Client, ClientError> {
        let mut config = self.config.clone();
        let account = self.impersonated_in.as_deref().and_then(|namespace| role.account(namespace));
        if account.is_some() {
            config.auth_info.impersonate = account;
        }
        config.read_timeout = patience;
        config.reset_reader_on_write = true;
        build(config, role)
    }
}

/// A client of another API server.
pub async fn remote(kubeconfig: Kubeconfig, dial: Duration) -> Result<Client, RemoteClientError> {
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| RemoteClientError::Kubeconfig(Box::new(error)))?;
    config.connect_timeout = Some(dial);
    build(config, ClientRole::RemoteReader).map_err(|error| RemoteClientError::Client(Box::new(error)))
}

/// A client of another API server that could not be made.
#[derive(Debug, Error)]
pub enum RemoteClientError {
    /// The kubeconfig is none, or names files that are not there.
    #[error("the kubeconfig of the Active cannot be used")]
    Kubeconfig(#[source] Box<kube::config::KubeconfigError>),
    /// The client could not be built.
    #[error("the client of the Active could not be set up")]
    Client(#[source] Box<ClientError>),
}

/// No request is sent twice by the client itself: every one is decided, recorded and bounded by whoever makes it.
fn build(mut config: Config, role: ClientRole) -> Result<Client, ClientError> {
    config.default_retry = false;
    if let Ok(agent) = HeaderValue::from_str(&role.user_agent()) {
        config.headers.push((USER_AGENT, agent));
    }
    let builder = ClientBuilder::try_from(config).map_err(|error| ClientError::Client(Box::new(error)))?;
    let named = MapRequestLayer::new(|mut request: Request<Body>| {
        if !request.headers().contains_key(AUDIT_ID) {
            AuditId::unique().name(&mut request);
        }
        request
    });
    Ok(builder.with_layer(&named).build())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{AuditId, ClientRole};

    #[test]
    fn every_role_has_a_user_agent_of_its_own() {
        let agents: BTreeSet<String> = ClientRole::ALL.iter().map(|role| role.user_agent()).collect();
        assert_eq!(agents.len(), ClientRole::ALL.len());
    }

    #[test]
    fn roles_that_write_act_as_accounts_of_their_own() {
        let accounts: BTreeSet<String> =
            ClientRole::ALL.iter().filter_map(|role| role.account("hub")).collect();
        assert_eq!(accounts.len(), 5);
        assert!(accounts.contains("system:serviceaccount:hub:hub-controller-mirror"));
    }

    #[test]
    fn an_audit_entry_is_named_once() {
        let mut request = http::Request::new(());
        let id = AuditId::unique();
        id.name(&mut request);
        assert_eq!(request.headers()["audit-id"], id.as_str());
        assert_ne!(AuditId::unique(), id);
    }
}
