//! The admin port of a node.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::actor::MeshActor;
use super::body::{PATIENCE, read_body};
use crate::admin::request::Attribution;
use crate::admin::route::takes_body;
use crate::admin::{Request, Response};
use crate::mesh::NodeIndex;

/// Port of the admin API.
pub const ADMIN_PORT: u16 = 3903;

/// An answer that will never be given: the connection closes instead.
#[derive(Debug, thiserror::Error)]
#[error("the process ended before it answered")]
struct NoAnswer;

/// Listens at the admin port of `address`.
pub async fn bind(address: IpAddr) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::new(address, ADMIN_PORT)).await
}

/// The open port of a node.
#[derive(Debug, Clone, Default)]
pub struct Port {
    close: CancellationToken,
    closed: CancellationToken,
}

impl Port {
    /// Begins to close the port with all its connections.
    pub fn close(&self) {
        self.close.cancel();
    }

    /// Waits until the port begins to close.
    pub async fn closing(&self) {
        self.close.cancelled().await;
    }

    /// Runs `work` for as long as the port is open.
    pub async fn while_open(&self, work: impl Future<Output = ()>) {
        tokio::select! {
            () = work => {}
            () = self.closing() => {}
        }
    }

    /// A port on which nothing listens: its node is reached through tunnels.
    pub(super) async fn serve_tunnels(self) {
        self.close.cancelled().await;
        self.closed.cancel();
    }

    /// Waits until nothing listens any more.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

/// Serves a node's admin port until it is closed; all its connections close with it.
pub async fn serve(listener: TcpListener, actor: Arc<MeshActor>, node: NodeIndex, port: Port) {
    accept(listener, actor, node, port.close.clone()).await;
    port.closed.cancel();
}

async fn accept(listener: TcpListener, actor: Arc<MeshActor>, node: NodeIndex, port: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = port.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                // Without it, small answers wait for acknowledgements.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "cannot set TCP_NODELAY");
                }
                let connection = serve_stream(stream, Arc::clone(&actor), node);
                let port = port.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = connection => {}
                        () = port.cancelled() => {}
                    }
                });
            }
            // Out of file descriptors, or a connection that went away at once: others may still come.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Serves the connections that come over `stream`, until it ends or breaks.
///
/// Whatever comes over it, this returns: a head that is not complete in time, a body that is not, and a connection on
/// which nothing is asked end after [`PATIENCE`]. A call whose answer the node withholds lasts as long as the caller.
pub async fn serve_stream<S>(stream: S, actor: Arc<MeshActor>, node: NodeIndex)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let actor = Arc::clone(&actor);
        async move { answer(&actor, node, request).await }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(
    actor: &Arc<MeshActor>,
    node: NodeIndex,
    request: http::Request<Incoming>,
) -> Result<http::Response<Full<Bytes>>, NoAnswer> {
    let (parts, body) = request.into_parts();
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    let mut request = Request {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().map(str::to_owned),
        authorization: authorization(&parts.headers),
        body: Vec::new(),
        origin: Attribution::default(),
    };
    // What is refused by its head, and endpoints without a body, are answered whatever the body is.
    if takes_body(&request.method, &request.path) {
        match read_body(body).await {
            Ok(body) => request.body = body,
            Err(error) => {
                let response = actor.call_cut_short(node, request, host.as_deref(), &error);
                return response.map(http_response).ok_or(NoAnswer);
            }
        }
    }
    actor.call(node, request, host).await.map(http_response).ok_or(NoAnswer)
}

/// The first header counts.
fn authorization(headers: &HeaderMap) -> Option<Vec<u8>> {
    headers.get(AUTHORIZATION).map(|value| value.as_bytes().trim_ascii().to_vec())
}

fn http_response(response: Response) -> http::Response<Full<Bytes>> {
    let mut answer = http::Response::new(Full::new(Bytes::from_owner(response.body)));
    *answer.status_mut() =
        http::StatusCode::from_u16(response.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in response.headers {
        answer.headers_mut().append(name, http::HeaderValue::from_static(value));
    }
    answer
}

/// Services that never fail have this error.
pub(super) type Never = Infallible;
