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
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::directory::Resolved;
use super::listener::Never;
use super::shared::Shared;

type Body = BoxBody<Bytes, hyper::Error>;

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
pub async fn serve(listener: TcpListener, site: String, shared: Arc<Shared>, stop: CancellationToken) {
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
        let (site, shared, stop) = (Arc::clone(&site), Arc::clone(&shared), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (site, shared) = (Arc::clone(&site), Arc::clone(&shared));
                async move { Ok::<_, Never>(pass_on(request, &site, &shared).await) }
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

async fn pass_on(request: Request<Incoming>, site: &str, shared: &Shared) -> Response<Body> {
    match forward(request, site, shared).await {
        Ok(response) => response.map(BodyExt::boxed),
        Err(error) => refusal(&error),
    }
}

async fn forward(
    request: Request<Incoming>,
    site: &str,
    shared: &Shared,
) -> Result<Response<Incoming>, ProxyError> {
    if request.method() == Method::CONNECT {
        return Err(ProxyError::Connect);
    }
    let host = request.uri().host().ok_or(ProxyError::Relative)?;
    let port = request.uri().port_u16().unwrap_or(80);
    let address = SocketAddr::new(resolve(host, site, shared)?, port);
    let unreachable = || ProxyError::Unreachable { address };
    let stream = TcpStream::connect(address).await.map_err(|_| unreachable())?;
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
