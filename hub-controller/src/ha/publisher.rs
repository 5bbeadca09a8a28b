//! Declaring the hub on every `Cluster` of its own API server, for as long as it leads (design record, decision 7).

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use super::events::{self, Telling};
use super::lease::HeldLease;
use crate::api::active_controller::ActiveController;
use crate::api::controller::Cluster;
use crate::api::naming::OWNER;
use crate::decision::endpoint::{self, Unpublishable};
use crate::decision_log::{DecisionLog, Entry};
use crate::error::chain;
use crate::fence::{Fence, Fenced, WritePermit};
use crate::metrics::Metrics;
use crate::mutant::{self, Mutant};

/// What a hub says about itself.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// URL under which workers reach its API server.
    pub endpoint: String,
    /// Whether a loopback address is such a URL.
    pub allow_loopback: bool,
    /// PEM bundle for it.
    pub ca_bundle: Option<String>,
    /// Name of the hub.
    pub identity: String,
}

/// A declaration that was not made.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The hub does not lead.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// Nobody could reach its endpoint.
    #[error("the endpoint {endpoint} is not declared: {why}")]
    Unpublishable {
        /// The endpoint.
        endpoint: String,
        /// Why not.
        why: Unpublishable,
    },
    /// The API server refused or did not answer.
    #[error("the API server did not let the hub {what}")]
    Kube {
        /// What was attempted.
        what: String,
        /// What the client says.
        #[source]
        source: Box<kube::Error>,
    },
}

impl PublishError {
    fn kube(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Kube { what, source: Box::new(source) }
    }
}

/// The publisher of this process. Clones are the same one.
#[derive(Clone)]
pub struct Publisher {
    client: Client,
    event_client: Client,
    declaration: Arc<Declaration>,
    fence: Fence,
    held: watch::Receiver<Option<HeldLease>>,
    log: DecisionLog,
    metrics: Arc<Metrics>,
    told: Arc<std::sync::Mutex<Option<String>>>,
}

impl Publisher {
    /// Declares through `client`, tells Events through `event_client`.
    pub fn new(
        client: Client,
        event_client: Client,
        declaration: Declaration,
        fence: Fence,
        held: watch::Receiver<Option<HeldLease>>,
        log: DecisionLog,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (declaration, told) = (Arc::new(declaration), Arc::default());
        Self { client, event_client, declaration, fence, held, log, metrics, told }
    }

    /// Looks at every `Cluster` each `interval` while the hub leads, until `stop`. Each round takes `limit` at most.
    pub async fn run(self, interval: Duration, limit: Duration, stop: CancellationToken) {
        let mut terms = self.fence.terms();
        loop {
            if self.fence.permit().is_ok() && !mutant::is(Mutant::PublishedOnce) {
                match tokio::time::timeout(limit, self.publish()).await {
                    Ok(Ok(written)) => debug!(written, "declared this hub"),
                    Ok(Err(PublishError::Fenced(_) | PublishError::Unpublishable { .. })) => {}
                    Ok(Err(failure)) => {
                        warn!(error = %chain(&failure), "this hub is not declared everywhere");
                    }
                    Err(_) => warn!("declaring this hub took too long"),
                }
            }
            let changed = async { terms.changed().await.is_err() };
            tokio::select! {
                () = stop.cancelled() => return,
                closed = changed => if closed { return },
                () = tokio::time::sleep(interval) => {}
            }
        }
    }

    /// Declares the hub on every `Cluster` that does not say so yet; answers how many were written.
    pub async fn publish(&self) -> Result<usize, PublishError> {
        let permit = self.fence.permit()?;
        self.check().await?;
        let acquired = self.held.borrow().as_ref().and_then(HeldLease::acquired);
        let wanted = ActiveController {
            endpoint: Some(self.declaration.endpoint.clone()),
            ca_bundle: self.declaration.ca_bundle.clone(),
            identity: Some(self.declaration.identity.clone()),
            acquire_time: acquired,
            last_updated: None,
        };
        let clusters: Api<Cluster> = Api::all(self.client.clone());
        let listed =
            clusters.list(&ListParams::default()).await.map_err(PublishError::kube("list Clusters"))?;
        let mut written = 0;
        for cluster in listed.items {
            let declared = cluster.status.as_ref().and_then(|status| status.active_controller.as_ref());
            if !declared.is_some_and(|declared| declared.agrees_with(&wanted)) {
                self.write(&permit, &cluster, &wanted).await?;
                written += 1;
            }
        }
        if written > 0 {
            info!(written, endpoint = %self.declaration.endpoint, "declared this hub as the active one");
            self.log.record(&Entry::Published { written, refused: None });
        }
        Ok(written)
    }

    async fn write(
        &self,
        permit: &WritePermit,
        cluster: &Cluster,
        wanted: &ActiveController,
    ) -> Result<(), PublishError> {
        let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        let said = ActiveController { last_updated: Some(MicroTime(Timestamp::now())), ..wanted.clone() };
        let patch = json!({ "status": { "activeController": said } });
        let api: Api<Cluster> = Api::namespaced(self.client.clone(), &namespace);
        let write = async { api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await };
        match permit.write(write).await? {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => {
                Err(PublishError::kube(format!("declare itself on Cluster {namespace}/{name}"))(error))
            }
        }
    }

    /// A hub that nobody reaches must not be declared: workers would leave one they reach.
    async fn check(&self) -> Result<(), PublishError> {
        let endpoint = &self.declaration.endpoint;
        let checked = endpoint::check(endpoint, self.declaration.allow_loopback);
        let Err(why) = checked else {
            self.metrics.refused_to_publish(false);
            return Ok(());
        };
        if mutant::is(Mutant::PlaceholderPublished) {
            return Ok(());
        }
        self.metrics.refused_to_publish(true);
        self.tell_refusal(&why).await;
        Err(PublishError::Unpublishable { endpoint: endpoint.clone(), why })
    }

    /// Once per leadership: in the log, and as an Event.
    async fn tell_refusal(&self, why: &Unpublishable) {
        let held = self.held.borrow().clone();
        let lease = held.as_ref().map_or_else(Lease::default, |held| held.lease().clone());
        let once = once(held.as_ref());
        {
            let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if told.as_ref() == Some(&once) {
                return;
            }
            *told = Some(once.clone());
        }
        let endpoint = &self.declaration.endpoint;
        error!(endpoint, why = %why, "this hub leads and does not declare itself: workers will not find it");
        self.log.record(&Entry::Published { written: 0, refused: Some(why.to_string()) });
        let message = format!("this hub leads, but its endpoint {endpoint} is not declared: {why}");
        let telling =
            Telling { type_: "Warning", reason: events::PLACEHOLDER, message: &message, once: &once };
        if let Err(failure) = events::tell(&self.event_client, &lease, &telling).await {
            warn!(error = %chain(&failure), component = OWNER, "the Event about the endpoint was not told");
        }
    }
}

/// What makes Events of one leadership the same.
pub(super) fn once(held: Option<&HeldLease>) -> String {
    let acquired = held.and_then(HeldLease::acquired);
    acquired.map_or_else(|| "0".to_owned(), |time| format!("{:x}", time.0.as_microsecond()))
}
