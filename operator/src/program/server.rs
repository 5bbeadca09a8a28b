//! `/healthz`, `/readyz` and `/metrics`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// Content type of the page, as the `OpenMetrics` text format demands.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether the program is ready to be counted on: the API server has answered. A replica that waits for the Lease is
/// ready, too.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Says that it is ready.
    pub fn ready(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The probes.
pub fn probes(readiness: Readiness) -> Router {
    let ready = |State(readiness): State<Readiness>| async move {
        if readiness.is_ready() {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "starting")
        }
    };
    Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready)).with_state(readiness)
}

/// The metrics.
pub fn metrics(metrics: Arc<Metrics>) -> Router {
    let page = |State(metrics): State<Arc<Metrics>>| async move {
        match metrics.page() {
            Ok(page) => ([(CONTENT_TYPE, OPEN_METRICS)], page).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    Router::new().route("/metrics", get(page)).with_state(metrics)
}

/// Binds now, so that an address that is taken is an error at start; serves until `stop`.
pub async fn serve(
    address: SocketAddr,
    routes: Router,
    stop: CancellationToken,
) -> io::Result<impl Future<Output = io::Result<()>>> {
    let listener = TcpListener::bind(address).await?;
    Ok(async move { axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned()).await })
}
