//! The HTTP proxy of a site, which stands for its cluster DNS and Service routing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{HeaderName, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::directory::Resolved;
use super::listener::{self, ADMIN_PORT, Never};
use super::registry::{Place, Registry};
use super::shared::Shared;

type Body = BoxBody<Bytes, hyper::Error>;

/// Bytes under way to a node that is reached through the hub.
const TUNNEL_BUFFER: usize = 64 * 1024;

/// Why a request could not be passed on.
#[derive(Debug, thiserror::Error)]
enum ProxyError {
    #[error("the proxy passes on plain HTTP only")]
    Connect,
    #[error("the proxy needs an absolute URI, such as GET http://service:3903/path")]
    Relative,
    #[error("no such service {name} at {site}")]
    Unknown { name: String, site: String },
    #[error("service {name} at {site} has no ready endpoint")]
    Empty { name: String, site: String },
    #[error("cannot reach {address}")]
    Unreachable { address: SocketAddr },
}

impl ProxyError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Connect => StatusCode::NOT_IMPLEMENTED,
            Self::Relative => StatusCode::BAD_REQUEST,
            Self::Unknown { .. } | Self::Unreachable { .. } => StatusCode::BAD_GATEWAY,
            Self::Empty { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Serves the proxy of `site` until `stop` is cancelled.
pub async fn serve(listener: TcpListener, site: String, registry: Arc<Registry>, stop: CancellationToken) {
    let site: Arc<str> = site.into();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::task::yield_now().await;
            continue;
        };
        let (site, registry, stop) = (Arc::clone(&site), Arc::clone(&registry), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (site, registry) = (Arc::clone(&site), Arc::clone(&registry));
                async move { Ok::<_, Never>(pass_on(request, &site, &registry).await) }
            });
            tokio::select! {
                result = http1::Builder::new().serve_connection(TokioIo::new(stream), service) => {
                    if let Err(error) = result {
                        tracing::debug!(%error, "a proxy connection ended early");
                    }
                }
                () = stop.cancelled() => {}
            }
        });
    }
}

async fn pass_on(request: Request<Incoming>, site: &str, registry: &Registry) -> Response<Body> {
    match forward(request, site, registry).await {
        Ok(response) => response.map(BodyExt::boxed),
        Err(error) => refusal(&error),
    }
}

async fn forward(
    request: Request<Incoming>,
    site: &str,
    registry: &Registry,
) -> Result<Response<Incoming>, ProxyError> {
    if request.method() == Method::CONNECT {
        return Err(ProxyError::Connect);
    }
    let host = request.uri().host().ok_or(ProxyError::Relative)?;
    let port = request.uri().port_u16().unwrap_or(80);
    let address = SocketAddr::new(resolve(host, site, registry.shared())?, port);
    if port == ADMIN_PORT
        && let Some(place) = registry.at_own_address(address.ip())
    {
        return send(request, tunnel(place).ok_or(ProxyError::Unreachable { address })?, address).await;
    }
    let stream = TcpStream::connect(address).await.map_err(|_| ProxyError::Unreachable { address })?;
    send(request, stream, address).await
}

/// A connection to a node that is reached through the hub only: the process in its pod would ask for the same.
fn tunnel(place: Place) -> Option<DuplexStream> {
    let port = place.port().ok()?;
    let (ours, theirs) = tokio::io::duplex(TUNNEL_BUFFER);
    tokio::spawn(async move {
        port.while_open(listener::serve_stream(theirs, place.actor, place.node)).await;
    });
    Some(ours)
}

async fn send(
    request: Request<Incoming>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: SocketAddr,
) -> Result<Response<Incoming>, ProxyError> {
    let unreachable = || ProxyError::Unreachable { address };
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .handshake::<_, Incoming>(TokioIo::new(stream))
        .await
        .map_err(|_| unreachable())?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection of the proxy ended early");
        }
    });
    sender.send_request(origin_form(request)).await.map_err(|_| unreachable())
}

/// A ready address behind a name, a different one from request to request.
fn resolve(host: &str, site: &str, shared: &Shared) -> Result<IpAddr, ProxyError> {
    if let Ok(address) = host.trim_matches(['[', ']']).parse() {
        return Ok(address);
    }
    let (name, at) = (host.to_owned(), site.to_owned());
    match shared.directory.resolve(site, host) {
        Resolved::Addresses(addresses) => {
            let place = shared.next_route() % addresses.len().max(1);
            addresses.get(place).copied().ok_or(ProxyError::Empty { name, site: at })
        }
        Resolved::Empty => Err(ProxyError::Empty { name, site: at }),
        Resolved::Unknown => Err(ProxyError::Unknown { name, site: at }),
    }
}

/// The request as a server expects it. `Host` stays, so that the server sees which way the request came.
fn origin_form(mut request: Request<Incoming>) -> Request<Incoming> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().unwrap_or_else(|_| Uri::from_static("/"));
    let hop_by_hop = [
        HeaderName::from_static("proxy-connection"),
        http::header::CONNECTION,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in hop_by_hop {
        request.headers_mut().remove(name);
    }
    request
}

fn refusal(error: &ProxyError) -> Response<Body> {
    let body = Full::new(Bytes::from(error.to_string())).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = error.status();
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
