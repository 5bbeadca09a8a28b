//! Holding the own Lease, and the leadership with it (design record, decisions 1 and 3).
//!
//! The Lease is on the hub's own API server and names the hub, not the process: a restarted hub sees itself as holder
//! and resumes. It is not given back at the end of the process, for whether the Active is dead is judged by its renewals
//! alone. A hub that cannot renew within its deadline stops writing, goes on trying, and leads again when it can.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::lease::{HeldLease, LeaseError, Leases};
use crate::api::naming::PROMOTED_OVER_ANNOTATION;
use crate::decision::lease::{Holder, Strangers, claim, holder, unheld};
use crate::decision_log::{DecisionLog, Entry};
use crate::error::chain;
use crate::fence::Fence;
use crate::metrics::Metrics;
use crate::program::clients::AuditId;
use crate::reconcile::requeue::Requeue;

/// Annotation of a Lease that was renewed with the fence open: its holder has led.
pub const LED_ANNOTATION: &str = "controller.kubeslice.io/leading";

/// Periods of holding a Lease.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    /// How long the Lease lasts without a renewal.
    pub lease: Duration,
    /// How long the hub tries to renew before it stops writing.
    pub renew: Duration,
    /// How often it renews.
    pub retry: Duration,
}

/// The Lease was not acquired.
#[derive(Debug, Error)]
pub enum AcquireError {
    /// It could not be read or written.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// Somebody else holds it.
    #[error(
        "the hub's own Lease is held by {holder}, which is not this hub; is another hub on this cluster?"
    )]
    Stranger {
        /// Who.
        holder: String,
    },
    /// The API server did not answer in time.
    #[error("the hub's own Lease was not written within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// What a write of the Lease says besides its renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The holder writes.
    Leads,
    /// The holder is being promoted over the hub whose Lease has this uid; nothing is written yet.
    Promoted {
        /// Uid of the Active's Lease.
        over: String,
    },
}

/// The own Lease, as the two roles of the process that write it.
#[derive(Clone)]
pub struct OwnLease {
    /// Renews it.
    pub renewal: Leases,
    /// Acquires it in a promotion, and gives it back.
    pub election: Leases,
}

impl OwnLease {
    fn as_whom(&self, mark: &Mark) -> &Leases {
        match mark {
            Mark::Leads => &self.renewal,
            Mark::Promoted { .. } => &self.election,
        }
    }
}

/// The elector of this process.
pub struct Elector {
    leases: OwnLease,
    identity: String,
    periods: Periods,
    strangers: Strangers,
    log: DecisionLog,
    metrics: Arc<Metrics>,
    held: watch::Sender<Option<HeldLease>>,
    requeue: Requeue,
}

impl Elector {
    /// The elector of the hub `identity`; asks `requeue` whenever it has opened the fence.
    pub fn new(
        leases: OwnLease,
        identity: &str,
        periods: Periods,
        log: DecisionLog,
        metrics: Arc<Metrics>,
        requeue: Requeue,
    ) -> Self {
        let (identity, strangers, held) =
            (identity.to_owned(), Strangers::default(), watch::Sender::new(None));
        Self { leases, identity, periods, strangers, log, metrics, held, requeue }
    }

    /// The Lease as it was last written.
    pub fn held(&self) -> watch::Receiver<Option<HeldLease>> {
        self.held.subscribe()
    }

    /// Leads whenever it can, until `stop`. The fence may be open already: then it is kept open.
    pub async fn run(&mut self, fence: &Fence, stop: &CancellationToken) {
        if fence.permit().is_err() {
            info!(identity = %self.identity, lease = self.leases.renewal.name(), "waiting for the own Lease");
        }
        // A hub that was just promoted says at once that it leads: a process that is started after a crash must know.
        let mut at_once = fence.permit().is_ok();
        loop {
            if fence.permit().is_err() && !self.acquire(fence, stop).await {
                return;
            }
            if self.keep(fence, stop, at_once).await {
                return;
            }
            at_once = false;
        }
    }

    /// Waits for the Lease and opens the fence; answers false if `stop` came first.
    async fn acquire(&mut self, fence: &Fence, stop: &CancellationToken) -> bool {
        loop {
            let limit = self.periods.renew;
            let attempt = tokio::select! {
                attempt = self.attempt(&Mark::Leads, limit) => attempt,
                () = stop.cancelled() => return false,
            };
            match attempt {
                Ok(held) => {
                    fence.open_for(&held);
                    let (requeue, limit) = (self.requeue.clone(), self.periods.lease);
                    tokio::spawn(async move { requeue.all(limit).await });
                    return true;
                }
                Err(error) => warn!(error = %chain(&error), "the own Lease is not held; nothing is written"),
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(self.periods.retry) => {}
            }
        }
    }

    /// Renews until `stop` (then it answers true), or until it cannot within its deadline: then the fence is closed.
    async fn keep(&mut self, fence: &Fence, stop: &CancellationToken, at_once: bool) -> bool {
        let mut until = self.held.borrow().as_ref().map_or_else(Instant::now, HeldLease::valid_until);
        let mut pause = if at_once { Duration::ZERO } else { self.periods.retry };
        loop {
            let wait = pause.min(until.saturating_duration_since(Instant::now()));
            pause = self.periods.retry;
            tokio::select! {
                () = stop.cancelled() => return true,
                () = tokio::time::sleep(wait) => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                fence.close("the own Lease was not renewed in time");
                return false;
            }
            let attempt = tokio::select! {
                attempt = self.attempt(&Mark::Leads, left) => attempt,
                () = stop.cancelled() => return true,
            };
            match attempt {
                Ok(held) => {
                    until = held.valid_until();
                    fence.prolong(&held);
                }
                Err(AcquireError::Stranger { holder }) => {
                    warn!(holder, "another hub has taken this hub's Lease");
                    fence.close("another hub has taken the own Lease");
                    return false;
                }
                Err(error) => warn!(error = %chain(&error), "the own Lease was not renewed"),
            }
        }
    }

    /// One bounded attempt to take or renew the Lease. What it answers counts from when the attempt began.
    pub async fn attempt(&mut self, mark: &Mark, limit: Duration) -> Result<HeldLease, AcquireError> {
        let began = Instant::now();
        let (read, write) = (AuditId::unique(), AuditId::unique());
        let work = tokio::time::timeout(limit, self.take(mark, &read, &write)).await;
        let result = work.unwrap_or(Err(AcquireError::TimedOut(limit)));
        let outcome = match &result {
            Ok(_) => "renewed",
            Err(AcquireError::Stranger { .. }) => "held-by-another",
            Err(_) => "failed",
        };
        let id = if matches!(result, Err(AcquireError::Stranger { .. })) { &read } else { &write };
        let error = result.as_ref().err().map(|error| chain(error));
        self.log.record(&Entry::Renewal { audit_id: id.as_str(), outcome, error });
        self.metrics.renewed(outcome);
        let held = HeldLease::new(result?, began + self.periods.renew);
        self.held.send_replace(Some(held.clone()));
        Ok(held)
    }

    async fn take(&mut self, mark: &Mark, read: &AuditId, write: &AuditId) -> Result<Lease, AcquireError> {
        let leases = self.leases.as_whom(mark).clone();
        let Some(mut lease) = leases.read(read).await? else {
            let mut lease = Lease {
                metadata: ObjectMeta { name: Some(leases.name().to_owned()), ..ObjectMeta::default() },
                spec: Some(claim(
                    &LeaseSpec::default(),
                    &self.identity,
                    self.periods.lease,
                    Timestamp::now(),
                )),
            };
            annotate(&mut lease, mark);
            return Ok(leases.create(write, &lease).await?);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        if !self.strangers.may_take(&spec, &self.identity, Instant::now()) {
            let Holder::Stranger(holder) = holder(&spec, &self.identity) else { return Ok(lease) };
            return Err(AcquireError::Stranger { holder });
        }
        if let Holder::Stranger(before) = holder(&spec, &self.identity) {
            warn!(
                before,
                "taking over the hub's own Lease, which its holder has not renewed for as long as it lasts"
            );
        }
        lease.spec = Some(claim(&spec, &self.identity, self.periods.lease, Timestamp::now()));
        annotate(&mut lease, mark);
        Ok(leases.replace(write, &lease).await?)
    }

    /// Gives the Lease back after a promotion that was given up. Answers whether nobody holds it now.
    pub async fn give_back(&self, limit: Duration) -> bool {
        let (id, leases) = (AuditId::unique(), &self.leases.election);
        let work = async {
            let Some(mut lease) = leases.read(&AuditId::unique()).await? else { return Ok(()) };
            let spec = lease.spec.clone().unwrap_or_default();
            if holder(&spec, &self.identity) != Holder::Oneself {
                return Ok(());
            }
            lease.spec = Some(unheld(&spec));
            for annotation in [PROMOTED_OVER_ANNOTATION, LED_ANNOTATION] {
                lease.annotations_mut().remove(annotation);
            }
            leases.replace(&id, &lease).await.map(drop)
        };
        let result = tokio::time::timeout(limit, work).await;
        let done = matches!(result, Ok(Ok(())));
        let outcome = if done { "done" } else { "failed" };
        self.log.record(&Entry::GaveBack { audit_id: id.as_str(), outcome });
        match result {
            Ok(Ok(())) => info!("the own Lease is nobody's again"),
            Ok(Err(error)) => {
                warn!(error = %chain(&error), "the own Lease could not be given back; trying again");
            }
            Err(_) => warn!("the own Lease was not given back in time; trying again"),
        }
        done
    }
}

/// A Lease says how far its holder has come, so that the process that is started after a crash knows.
fn annotate(lease: &mut Lease, mark: &Mark) {
    let annotations = lease.annotations_mut();
    match mark {
        Mark::Leads => {
            annotations.insert(LED_ANNOTATION.to_owned(), "true".to_owned());
        }
        Mark::Promoted { over } => {
            annotations.remove(LED_ANNOTATION);
            annotations.insert(PROMOTED_OVER_ANNOTATION.to_owned(), over.clone());
        }
    }
}
