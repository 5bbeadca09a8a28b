//! How requests get to Garage: over plain HTTP, through a proxy where the environment names one, or over HTTPS.
//!
//! HTTPS trusts what the system trusts, as the existing operator does: `SSL_CERT_FILE` and `SSL_CERT_DIR` name other
//! authorities. Its client is only set up when an endpoint asks for it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use axum::http;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use reqwest::Method;
use thiserror::Error;

use super::client::Deadlines;
use super::error::AdminError;
use super::token::Token;

/// Most of an answer that is read.
const BODY_LIMIT: usize = 10 * 1024 * 1024;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection that is not used is kept: each costs tens of kilobytes, and there is one for every node.
const KEEP: Duration = Duration::from_secs(15);
/// What the operator calls itself.
const USER_AGENT: &str = concat!("garage-operator/", env!("CARGO_PKG_VERSION"));

/// A request that got no answer; says why.
#[derive(Debug, Error)]
pub enum TransportError {
    /// Over plain HTTP.
    #[error(transparent)]
    Plain(reqwest::Error),
    /// Over HTTPS: not connected, or not trusted.
    #[error(transparent)]
    Secure(hyper_util::client::legacy::Error),
    /// The answer broke off or is too long.
    #[error("the answer could not be read to its end")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It took too long.
    #[error("there was no answer within {} ms", .0.as_millis())]
    Slow(Duration),
    /// The endpoint of the spec is no URL, or the token no header.
    #[error("the endpoint or its token cannot be used in a request")]
    Invalid(#[source] http::Error),
}

/// The HTTP clients that all admin clients share.
#[derive(Clone, Debug)]
pub struct Http {
    plain: reqwest::Client,
    secure: Arc<OnceLock<Secure>>,
}

type Secure = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A request.
pub(super) struct Request<'a> {
    /// Method.
    pub(super) method: Method,
    /// URL with its query.
    pub(super) url: String,
    /// Bearer token.
    pub(super) token: &'a Token,
    /// JSON.
    pub(super) body: Option<Vec<u8>>,
    /// How long its answer may take.
    pub(super) deadline: Duration,
}

/// An answer.
pub(super) struct Reply {
    /// HTTP status.
    pub(super) status: http::StatusCode,
    /// Body.
    pub(super) body: Bytes,
}

impl Http {
    /// Clients that honour `HTTP_PROXY` and `NO_PROXY` for plain HTTP.
    pub fn new() -> Result<Self, AdminError> {
        let plain = reqwest::Client::builder()
            .timeout(Deadlines::default().write)
            .connect_timeout(CONNECT)
            .pool_idle_timeout(KEEP)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(USER_AGENT)
            .build()
            .map_err(AdminError::Setup)?;
        Ok(Self { plain, secure: Arc::default() })
    }

    /// Sends a request and reads its answer within the deadline.
    pub(super) async fn send(&self, request: Request<'_>) -> Result<Reply, TransportError> {
        if request.url.starts_with("https:") {
            self.securely(request).await
        } else {
            self.plainly(request).await
        }
    }

    async fn plainly(&self, request: Request<'_>) -> Result<Reply, TransportError> {
        let unreachable = |error: reqwest::Error| TransportError::Plain(error.without_url());
        let mut builder = self
            .plain
            .request(request.method, request.url)
            .bearer_auth(request.token.expose())
            .timeout(request.deadline);
        if let Some(body) = request.body {
            builder = builder.header(http::header::CONTENT_TYPE, "application/json").body(body);
        }
        let mut response = builder.send().await.map_err(unreachable)?;
        let (status, mut body) = (response.status(), Vec::new());
        while body.len() < BODY_LIMIT {
            let Some(chunk) = response.chunk().await.map_err(unreachable)? else { break };
            body.extend_from_slice(&chunk);
        }
        body.truncate(BODY_LIMIT);
        Ok(Reply { status, body: body.into() })
    }

    async fn securely(&self, request: Request<'_>) -> Result<Reply, TransportError> {
        let mut builder = http::Request::builder()
            .method(request.method)
            .uri(request.url)
            .header(http::header::USER_AGENT, USER_AGENT)
            .header(http::header::AUTHORIZATION, format!("Bearer {}", request.token.expose()));
        if request.body.is_some() {
            builder = builder.header(http::header::CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(request.body.unwrap_or_default()));
        let sent =
            self.secure.get_or_init(secure).request(builder.body(body).map_err(TransportError::Invalid)?);
        let answered = async {
            let response = sent.await.map_err(TransportError::Secure)?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(TransportError::Body)?;
            Ok(Reply { status: parts.status, body: body.to_bytes() })
        };
        let slow = |_| Err(TransportError::Slow(request.deadline));
        tokio::time::timeout(request.deadline, answered).await.unwrap_or_else(slow)
    }
}

/// A client that trusts the authorities of the system. Where there are none, nobody is trusted, and every connection says
/// so.
fn secure() -> Secure {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(CONNECT));
    let trusting = HttpsConnectorBuilder::new().with_native_roots().unwrap_or_else(|error| {
        tracing::warn!(%error, "no certificate authority could be loaded; admin endpoints with https are not trusted");
        HttpsConnectorBuilder::new().with_tls_config(trusting_nobody())
    });
    let connector = trusting.https_only().enable_http1().wrap_connector(connector);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(KEEP)
        .build(connector)
}

fn trusting_nobody() -> tokio_rustls::rustls::ClientConfig {
    let roots = tokio_rustls::rustls::RootCertStore::empty();
    tokio_rustls::rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}
