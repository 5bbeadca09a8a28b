//! `/healthz`, `/readyz` and `/metrics`.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Whether the program is ready to be counted on, and why not: a Standby that must not mirror never is.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<Mutex<Option<String>>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some("starting".to_owned()))))
    }
}

impl Readiness {
    /// Says that it is ready.
    pub fn ready(&self) {
        *self.lock() = None;
    }

    /// Says why it is not.
    pub fn not_ready(&self, why: String) {
        *self.lock() = Some(why);
    }

    fn objection(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The probes.
pub fn probes(readiness: Readiness) -> Router {
    let ready = |State(readiness): State<Readiness>| async move {
        match readiness.objection() {
            None => (StatusCode::OK, "ok".to_owned()),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
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
