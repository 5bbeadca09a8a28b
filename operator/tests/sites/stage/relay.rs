//! A relay between an operator and its API server, which can break what goes through it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use harness::site::Site;
use http_body_util::BodyExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::scene::Scene;

/// How a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 409: somebody else was faster.
    Conflict,
    /// 429: there is too much to do.
    Throttled,
}

/// What is broken.
#[derive(Default)]
struct Faults {
    /// Ends all watches.
    cut: CancellationToken,
    /// So many watches more are told that their version is gone.
    gone: u32,
    /// So many writes more are refused.
    refused: u32,
    refusal: Option<Refusal>,
}

/// A relay that runs as long as its runtime.
#[derive(Clone)]
pub struct Relay {
    client: Client,
    faults: Arc<Mutex<Faults>>,
    kubeconfig: PathBuf,
}

impl Relay {
    /// Starts a relay to the API server of `site`, for its operator.
    pub async fn start(scene: &Scene, site: Site) -> Self {
        let file = Kubeconfig::read_from(&scene.description().sites.at(site).operator).unwrap();
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        // What it refuses has to reach the operator as it is.
        config.default_retry = false;
        let kubeconfig = scene.folder().join(format!("relay-{site}.kubeconfig"));
        let relay = Self { client: Client::try_from(config).unwrap(), faults: Arc::default(), kubeconfig };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        relay.write_kubeconfig(listener.local_addr().unwrap());
        let routes = Router::new().fallback(forward).with_state(relay.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        relay
    }

    fn write_kubeconfig(&self, address: SocketAddr) {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "relay",
            "clusters": [{"name": "relay", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "relay", "user": {}}],
            "contexts": [{"name": "relay", "context": {"cluster": "relay", "user": "relay"}}],
        });
        std::fs::write(&self.kubeconfig, config.to_string()).unwrap();
    }

    /// The option with which an operator goes through it.
    pub fn option(&self) -> String {
        format!("--kubeconfig={}", self.kubeconfig.display())
    }

    fn faults(&self) -> std::sync::MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all watches as the API server does when their time is over.
    pub fn end_watches(&self) {
        std::mem::take(&mut self.faults().cut).cancel();
    }

    /// Ends all watches; the next `count` are told that their version is gone: every other one by its status, the others
    /// by an event.
    pub fn expire_watches(&self, count: u32) {
        self.faults().gone = count;
        self.end_watches();
    }

    /// Refuses the next `count` writes.
    pub fn refuse(&self, refusal: Refusal, count: u32) {
        let mut faults = self.faults();
        (faults.refusal, faults.refused) = (Some(refusal), count);
    }

    /// How many watches and writes it still has to refuse.
    pub fn left(&self) -> u32 {
        let faults = self.faults();
        faults.gone + faults.refused
    }

    fn refusal_of(&self, request: &Request) -> Option<Response> {
        let mut faults = self.faults();
        if is_watch(request) && faults.gone > 0 {
            faults.gone -= 1;
            return Some(gone(faults.gone.is_multiple_of(2)));
        }
        if request.method() == Method::GET || faults.refused == 0 {
            return None;
        }
        faults.refused -= 1;
        Some(match faults.refusal? {
            Refusal::Conflict => refused(StatusCode::CONFLICT, "Conflict"),
            Refusal::Throttled => refused(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
        })
    }
}

fn is_watch(request: &Request) -> bool {
    request.uri().query().is_some_and(|query| query.contains("watch=true"))
}

fn status(code: StatusCode, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": format!("the relay says {reason}"),
    })
}

fn refused(code: StatusCode, reason: &str) -> Response {
    (code, axum::Json(status(code, reason))).into_response()
}

fn gone(by_status: bool) -> Response {
    if by_status {
        return refused(StatusCode::GONE, "Expired");
    }
    let event = json!({"type": "ERROR", "object": status(StatusCode::GONE, "Expired")});
    ([(header::CONTENT_TYPE, "application/json")], format!("{event}\n")).into_response()
}

async fn forward(State(relay): State<Relay>, request: Request) -> Response {
    if let Some(refusal) = relay.refusal_of(&request) {
        return refusal;
    }
    let cut = is_watch(&request).then(|| relay.faults().cut.clone());
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path_and_query().unwrap().as_str();
    let mut builder = http::Request::builder().method(parts.method).uri(path);
    for name in [header::CONTENT_TYPE, header::ACCEPT] {
        if let Some(value) = parts.headers.get(&name) {
            builder = builder.header(name, value);
        }
    }
    let request = builder.body(kube::client::Body::from(body.to_vec())).unwrap();
    let Ok(answer) = relay.client.send(request).await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let (parts, body) = answer.into_parts();
    let body = match cut {
        Some(cut) => Body::from_stream(body.into_data_stream().take_until(cut.cancelled_owned())),
        None => Body::new(body),
    };
    let kind = parts.headers.get(header::CONTENT_TYPE).cloned();
    let mut response = (parts.status, body).into_response();
    if let Some(kind) = kind {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}
