//! The webhook server as a part of the program: certificate, listener, injection, renewal.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kube::Client;
use thiserror::Error;
use tokio::task::JoinSet;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::options::{Bind, RunOptions};
use crate::controller::error::chain;
use crate::webhook::certificate::Certificate;
use crate::webhook::injection::{Location, inject};
use crate::webhook::server::{TlsError, TlsListener, configuration};
use crate::webhook::{handlers, store};

/// How often the certificate is looked at.
const RENEWAL: Duration = Duration::from_hours(6);

/// The webhook server could not be started.
#[derive(Debug, Error)]
pub enum WebhookError {
    /// A file of `--webhook-cert-path` cannot be read.
    #[error("{path} cannot be read")]
    File {
        /// Which file.
        path: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The certificate cannot be used.
    #[error("the webhook server has no usable certificate")]
    Tls(#[source] TlsError),
    /// The operator's own certificate could not be had.
    #[error("the webhook server has no certificate of its own")]
    Store(#[source] store::StoreError),
    /// The API server could not be told.
    #[error("the API server could not be told about the webhook server")]
    Inject(#[source] Box<kube::Error>),
    /// The address is taken.
    #[error("the webhook server cannot listen at {address}")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// There is no namespace for the Secret and the Service.
    #[error("the webhook server needs POD_NAMESPACE for its Secret")]
    NoNamespace,
}

/// The configuration in force.
type Current = Arc<RwLock<Arc<ServerConfig>>>;

/// Starts the webhook server if the options ask for one.
pub async fn start(
    options: &RunOptions,
    client: &Client,
    stop: &CancellationToken,
    servers: &mut JoinSet<()>,
) -> Result<(), WebhookError> {
    let Bind::At(address) = options.webhook_bind_address else { return Ok(()) };
    let current: Current = if options.webhook_cert_path.is_empty() {
        own_certificate(options, client, stop, servers).await?
    } else {
        Arc::new(RwLock::new(files(Path::new(&options.webhook_cert_path))?))
    };
    let read = move || Arc::clone(&current.read().unwrap_or_else(PoisonError::into_inner));
    let listener =
        TlsListener::bind(address, read).await.map_err(|source| WebhookError::Listen { address, source })?;
    info!(%address, "serving webhooks");
    let stopped = stop.clone().cancelled_owned();
    servers.spawn(async move {
        if let Err(failure) = axum::serve(listener, handlers::routes()).with_graceful_shutdown(stopped).await
        {
            error!(error = %failure, "the webhook server ended");
        }
    });
    Ok(())
}

/// The files of a certificate that somebody else makes; its authority is injected by them, too.
fn files(folder: &Path) -> Result<Arc<ServerConfig>, WebhookError> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path)
            .map_err(|source| WebhookError::File { path: path.display().to_string(), source })
    };
    configuration(&read("tls.crt")?, &read("tls.key")?).map_err(WebhookError::Tls)
}

/// A certificate of the operator's own making, injected now and after each renewal.
async fn own_certificate(
    options: &RunOptions,
    client: &Client,
    stop: &CancellationToken,
    servers: &mut JoinSet<()>,
) -> Result<Current, WebhookError> {
    let namespace =
        options.pod_namespace.clone().filter(|name| !name.is_empty()).ok_or(WebhookError::NoNamespace)?;
    let location = match &options.webhook_url {
        Some(url) => Location::Url(url.clone()),
        None => Location::Service(namespace.clone()),
    };
    let names = location.names(&options.cluster_domain);
    let own = Own { client: client.clone(), namespace, location, names };
    let (certificate, config) = own.obtain().await?;
    own.announce(&certificate).await?;
    let current: Current = Arc::new(RwLock::new(config));
    let (kept, stop) = (Arc::clone(&current), stop.clone());
    servers.spawn(async move { own.keep(certificate, &kept, &stop).await });
    Ok(current)
}

/// The certificate of the operator's own making.
struct Own {
    client: Client,
    namespace: String,
    location: Location,
    names: Vec<String>,
}

impl Own {
    async fn obtain(&self) -> Result<(Certificate, Arc<ServerConfig>), WebhookError> {
        let certificate =
            store::obtain(&self.client, &self.namespace, &self.names).await.map_err(WebhookError::Store)?;
        let config = certificate.server_configuration().map_err(WebhookError::Tls)?;
        Ok((certificate, config))
    }

    async fn announce(&self, certificate: &Certificate) -> Result<(), WebhookError> {
        let injected = inject(&self.client, &self.location, &certificate.authority).await;
        injected.map_err(|error| WebhookError::Inject(Box::new(error)))
    }

    /// Takes a renewed certificate into use, whoever renewed it, and announces its authority.
    async fn keep(&self, mut certificate: Certificate, current: &Current, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RENEWAL) => {}
            }
            let renewed = match self.obtain().await {
                Ok((found, _)) if found == certificate => continue,
                Ok((found, config)) => {
                    *current.write().unwrap_or_else(PoisonError::into_inner) = config;
                    certificate = found;
                    self.announce(&certificate).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = renewed {
                warn!(error = %chain(&error), "the webhook's certificate was not renewed");
            }
        }
    }
}
