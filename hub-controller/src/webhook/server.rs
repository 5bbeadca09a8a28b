//! HTTPS for the webhook.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Connections that are ready and not yet taken.
const BACKLOG: usize = 64;

/// TLS that could not be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("{} cannot be read", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Certificate or key are not PEM.
    #[error("the webhook's certificate or key is not PEM")]
    Pem(#[source] pem::Error),
    /// Certificate and key do not go together.
    #[error("the webhook's certificate cannot be used")]
    Rustls(#[source] tokio_rustls::rustls::Error),
}

/// Files of a certificate and its key, read again for each connection: whoever renews them need not restart the hub.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    folder: PathBuf,
}

impl TlsFiles {
    /// `tls.crt` and `tls.key` in this folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// A server configuration for what the files hold now.
    pub fn configuration(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let read = |name: &str| {
            let path = self.folder.join(name);
            std::fs::read(&path).map_err(|source| TlsError::File { path, source })
        };
        let (certificate, key) = (read("tls.crt")?, read("tls.key")?);
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&certificate).collect::<Result<_, _>>().map_err(TlsError::Pem)?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(TlsError::Pem)?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Rustls)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Rustls)?;
        Ok(Arc::new(config))
    }
}

/// A listener whose connections have finished their handshake. Slow clients do not hold up others.
pub struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

impl TlsListener {
    /// Binds now; accepts in the background until the listener is dropped.
    pub async fn bind(address: SocketAddr, files: TlsFiles) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (sender, ready) = mpsc::channel(BACKLOG);
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = sender.closed() => return,
                };
                match (accepted, files.configuration()) {
                    (Ok((stream, peer)), Ok(config)) => {
                        tokio::spawn(shake_hands(TlsAcceptor::from(config), stream, peer, sender.clone()));
                    }
                    (Ok(_), Err(error)) => warn!(%error, "the webhook has no certificate"),
                    (Err(error), _) => {
                        warn!(%error, "a webhook connection could not be accepted");
                        tokio::task::yield_now().await;
                    }
                }
            }
        });
        Ok(Self { address, ready })
    }
}

async fn shake_hands(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
    sender: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            if sender.send((stream, peer)).await.is_err() {
                debug!(%peer, "the webhook server ended before a connection was taken");
            }
        }
        Ok(Err(error)) => debug!(%peer, %error, "a TLS handshake failed"),
        Err(_) => debug!(%peer, "a TLS handshake took too long"),
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
