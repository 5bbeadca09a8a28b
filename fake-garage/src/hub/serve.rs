//! Running a hub.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use onewriter_history::{Header, Journal, Source};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::control;
use super::error::ServeError;
use super::journal::Recorder;
use super::options::Options;
use super::proxy;
use super::registry::Registry;
use super::shared::Shared;

/// Runs a hub until `shutdown` resolves. When it is ready, it prints one line of JSON on standard output.
///
/// Returns once everything is closed and the history is complete.
pub async fn serve(options: Options, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
    let hub = Hub::start(options).await?;
    #[expect(clippy::print_stdout, reason = "the documented sign that the hub is ready")]
    {
        println!("{}", serde_json::json!({"ready": true, "control": hub.control_url()}));
    }
    hub.run(shutdown).await
}

/// A hub that is ready.
#[derive(Debug)]
pub struct Hub {
    control: SocketAddr,
    registry: Arc<Registry>,
    stop: CancellationToken,
}

impl Hub {
    /// Starts a hub: the addresses first, then the history, so that a failed start leaves no file behind.
    pub async fn start(options: Options) -> Result<Self, ServeError> {
        Self::start_by(Clock::Machine, options).await
    }

    /// Starts a hub that goes by `clock`.
    ///
    /// By a virtual clock, in a single-threaded runtime whose time is paused, and with in-process calls only
    /// ([`Hub::call`]), the same seed and the same calls give the same history, byte for byte.
    pub async fn start_by(clock: Clock, options: Options) -> Result<Self, ServeError> {
        Self::begin(clock, options, |options, header| {
            let journal =
                Journal::create(&options.journal, header, Source::hub()).map_err(ServeError::Begin)?;
            Ok(Recorder::new(journal, clock))
        })
        .await
    }

    /// Starts a hub that writes no history: only for measuring what recording costs.
    pub async fn start_unrecorded(options: Options) -> Result<Self, ServeError> {
        let clock = Clock::Machine;
        Self::begin(clock, options, |options, _| Ok(Recorder::silent(options.journal.clone(), clock))).await
    }

    async fn begin(
        clock: Clock,
        options: Options,
        recorder: impl FnOnce(&Options, &Header) -> Result<Recorder, ServeError>,
    ) -> Result<Self, ServeError> {
        let listener = listen(options.listen, "the control API").await?;
        let mut proxies = Vec::new();
        for (site, address) in &options.proxies {
            proxies.push((site.clone(), listen(*address, &format!("the proxy of {site}")).await?));
        }
        let control = listener.local_addr().unwrap_or(options.listen);
        let mut header = Header::new(&options.run);
        header.started_at = clock.moment().at;
        header.sites = options.proxies.keys().cloned().collect();
        header.versions.insert("fake-garage".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let recorder = recorder(&options, &header)?;
        let shared = Arc::new(Shared::new(recorder, options.pacing));
        let registry = Arc::new(Registry::new(Arc::clone(&shared), options.node_network, options.seed));
        let stop = CancellationToken::new();
        for (site, listener) in proxies {
            tokio::spawn(proxy::serve(listener, site, Arc::clone(&registry), stop.clone()));
        }
        let router = control::router(Arc::clone(&registry), options.control_token);
        let ended = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(ended).await {
                tracing::error!(%error, "the control API ended");
            }
        });
        Ok(Self { control, registry, stop })
    }

    /// Where the control API is.
    #[must_use]
    pub fn control_url(&self) -> String {
        format!("http://{}", self.control)
    }

    /// Its meshes and nodes.
    #[must_use]
    pub const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Runs until `shutdown` resolves or the history cannot be continued, then closes everything.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let recorder = &self.registry.shared().recorder;
        tokio::select! {
            () = shutdown => {}
            () = recorder.failed().cancelled() => {}
        }
        self.stop.cancel();
        for mesh in self.registry.meshes() {
            mesh.end();
        }
        recorder.end();
        recorder.take_failure().map_or(Ok(()), |error| Err(ServeError::Record(error)))
    }
}

async fn listen(address: SocketAddr, purpose: &str) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen {
        address,
        purpose: purpose.to_owned(),
        source,
    })
}
