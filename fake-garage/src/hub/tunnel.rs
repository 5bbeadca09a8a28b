//! Connections to nodes that are reached through the hub: those of pods that have an address of their own.
//!
//! A forwarder accepts at the pod's admin port and asks for one tunnel per connection. The bytes go through as they
//! are, so `Host`, keep-alive, resets and half a request mean the same as on a direct connection.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::listener::{self, Port};
use super::registry::{ControlError, Place};

/// The name that the `Upgrade` header of a tunnel bears.
pub const PROTOCOL: &str = "garage-admin";

/// Opens a tunnel to a node: answers 101, and serves what comes over the connection from then on.
pub fn open(place: Place, request: Request) -> Result<Response, ControlError> {
    if !asks_for_tunnel(request.headers()) {
        let problem = format!("a tunnel needs the headers Connection: upgrade and Upgrade: {PROTOCOL}");
        return Err(ControlError::Malformed(problem));
    }
    let port = place.port()?;
    tokio::spawn(serve(hyper::upgrade::on(request), place, port));
    let headers = [(CONNECTION, "upgrade"), (UPGRADE, PROTOCOL)];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

fn asks_for_tunnel(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|value| value.eq_ignore_ascii_case(PROTOCOL))
}

async fn serve(upgrade: OnUpgrade, place: Place, port: Port) {
    match upgrade.await {
        Ok(stream) => {
            let served = listener::serve_stream(TokioIo::new(stream), place.actor, place.node);
            port.while_open(served).await;
        }
        Err(error) => tracing::debug!(%error, "a tunnel broke before it was open"),
    }
}
