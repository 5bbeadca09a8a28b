//! The hub's control API, as far as a node's process needs it.

use std::io;
use std::net::IpAddr;

use http::header::{AUTHORIZATION, CONNECTION, HOST, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpStream;

use super::surroundings::PodIdentity;
use crate::hub::ControlToken;
use crate::hub::life::Ended;
use crate::hub::registry::NodeAddress;
use crate::hub::tunnel;
use crate::layout::ConsistencyMode;

/// No answer of the hub that is read here is longer.
const LONGEST_ANSWER: usize = 1 << 16;

/// A call that the hub did not answer as hoped.
#[derive(Debug, thiserror::Error)]
pub enum HubCallError {
    /// It cannot be reached.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] hyper::Error),
    /// It said something else than a hub says.
    #[error("what answers there is no hub: {0}")]
    NoHub(String),
    /// It does not take the token.
    #[error("the hub does not take the control token; give the pod the token that the hub was started with")]
    Token,
    /// It refused.
    #[error("the hub answered {status}: {reason}")]
    Refused {
        /// HTTP status.
        status: StatusCode,
        /// Its own words.
        reason: String,
    },
}

impl HubCallError {
    /// Whether the same call may go better later: the hub is not there yet, or does not know the mesh yet.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Broken(_) => true,
            Self::Refused { status, .. } => {
                *status == StatusCode::UNPROCESSABLE_ENTITY || status.is_server_error()
            }
            Self::NoHub(_) | Self::Token => false,
        }
    }
}

/// What the hub is told about a node: the body of its `PUT`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStart {
    pub(super) rpc_secret: String,
    pub(super) admin_token: Option<String>,
    pub(super) metrics_token: Option<String>,
    pub(super) replication_factor: usize,
    pub(super) consistency_mode: ConsistencyMode,
    pub(super) hostname: String,
    pub(super) region: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) purge_layout: Option<String>,
}

impl std::fmt::Debug for NodeStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeStart").field("hostname", &self.hostname).finish_non_exhaustive()
    }
}

/// Calls the hub about one pod.
#[derive(Debug)]
pub struct HubClient {
    hub: String,
    token: ControlToken,
    path: String,
}

/// A connection to the node's admin API: the stream, and what has come over it already.
pub type Tunnel = (TcpStream, Bytes);

/// The process of a node, followed until it ends.
#[derive(Debug)]
pub struct Followed(Incoming);

impl HubClient {
    /// A client of the hub at `host:port` for one pod.
    #[must_use]
    pub fn new(hub: String, token: ControlToken, pod: &PodIdentity) -> Self {
        Self { hub, token, path: format!("/control/v1/nodes/{}", pod.path()) }
    }

    /// Starts the node.
    pub async fn start(&self, node: &NodeStart) -> Result<NodeAddress, HubCallError> {
        let body = serde_json::to_vec(node).unwrap_or_default();
        let answer = self.call(Method::PUT, "", Bytes::from(body)).await?;
        read(answer).await
    }

    /// Tells that the process ended as after SIGTERM.
    pub async fn stop(&self) -> Result<(), HubCallError> {
        let answer = self.call(Method::DELETE, "", Bytes::new()).await?;
        read::<Value>(answer).await.map(drop)
    }

    /// Follows the process that was the node's `boot`-th.
    pub async fn follow(&self, boot: u64) -> Result<Followed, HubCallError> {
        let answer = self.call(Method::GET, &format!("/process?boot={boot}"), Bytes::new()).await?;
        Ok(Followed(accepted(answer, StatusCode::OK).await?.into_body()))
    }

    /// Opens a connection to the node's admin API.
    pub async fn tunnel(&self) -> Result<Tunnel, HubCallError> {
        let request = self.request(Method::GET, "/connection");
        let request = request.header(CONNECTION, "upgrade").header(UPGRADE, tunnel::PROTOCOL);
        let answer = self.send(request, Bytes::new()).await?;
        let answer = accepted(answer, StatusCode::SWITCHING_PROTOCOLS).await?;
        let upgraded = hyper::upgrade::on(answer).await.map_err(HubCallError::Broken)?;
        let foreign = |_| HubCallError::NoHub("a tunnel of another kind".to_owned());
        let parts = upgraded.downcast::<TokioIo<TcpStream>>().map_err(foreign)?;
        Ok((parts.io.into_inner(), parts.read_buf))
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, HubCallError> {
        self.send(self.request(method, path), body).await
    }

    fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let target = format!("{}{path}", self.path);
        let request = Request::builder().method(method).uri(target).header(HOST, &self.hub);
        request.header(AUTHORIZATION, format!("Bearer {}", self.token.text()))
    }

    async fn send(
        &self,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<Response<Incoming>, HubCallError> {
        let request = request.body(Full::new(body));
        let request =
            request.map_err(|error| HubCallError::NoHub(format!("the token is unusable: {error}")))?;
        let stream = TcpStream::connect(&self.hub).await.map_err(HubCallError::Connect)?;
        stream.set_nodelay(true).map_err(HubCallError::Connect)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(HubCallError::Broken)?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to the hub broke");
            }
        });
        sender.send_request(request).await.map_err(HubCallError::Broken)
    }
}

impl Followed {
    /// Waits for the end. `None` if the hub went away first.
    pub async fn end(mut self) -> Option<Ended> {
        let mut line = Vec::new();
        while let Some(Ok(frame)) = self.0.frame().await {
            line.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            if line.ends_with(b"\n") {
                return serde_json::from_slice(&line).ok();
            }
        }
        None
    }
}

async fn read<T: DeserializeOwned>(answer: Response<Incoming>) -> Result<T, HubCallError> {
    let body = text(accepted(answer, StatusCode::OK).await?).await?;
    serde_json::from_slice(&body).map_err(|error| HubCallError::NoHub(error.to_string()))
}

async fn accepted(answer: Response<Incoming>, hoped: StatusCode) -> Result<Response<Incoming>, HubCallError> {
    let status = answer.status();
    if status == hoped {
        return Ok(answer);
    }
    if status == StatusCode::UNAUTHORIZED {
        return Err(HubCallError::Token);
    }
    let body: Value = serde_json::from_slice(&text(answer).await?).unwrap_or_default();
    match body.get("error").and_then(Value::as_str) {
        Some(reason) => Err(HubCallError::Refused { status, reason: reason.to_owned() }),
        None => Err(HubCallError::NoHub(format!("it answered {status} without a reason"))),
    }
}

async fn text(answer: Response<Incoming>) -> Result<Bytes, HubCallError> {
    let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
    body.map(http_body_util::Collected::to_bytes).map_err(|error| HubCallError::NoHub(error.to_string()))
}
