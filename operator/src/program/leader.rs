//! Leader election on a Lease (coordination.k8s.io/v1).
//!
//! Others judge a Lease by when they last saw it change, never by the clock of its holder. A leader that cannot renew
//! within its deadline stops before anybody else may start; a leader that ends gives the Lease back.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::controller::error::chain;

/// Name of the Lease (operator contract §6.1).
pub const LEASE_NAME: &str = "150a9873.garage.rajsingh.info";

/// How long giving the Lease back may take: an API server that hangs must not keep the program from ending.
const RELEASE: Duration = Duration::from_secs(1);

/// Periods of the election.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    /// How long a Lease that is not renewed keeps others out.
    pub lease: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew: Duration,
    /// How often the leader renews; candidates look twice as often.
    pub retry: Duration,
}

/// A candidate.
pub struct Elector {
    leases: Api<Lease>,
    identity: String,
    periods: Periods,
    observed: Option<(LeaseSpec, Instant)>,
}

impl Elector {
    /// A candidate with this identity for the Lease in `namespace`.
    pub fn new(client: Client, namespace: &str, identity: String, periods: Periods) -> Self {
        Self { leases: Api::namespaced(client, namespace), identity, periods, observed: None }
    }

    /// Waits until it leads; answers false if `stop` came first.
    pub async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        info!(identity = %self.identity, lease = LEASE_NAME, "waiting to lead");
        loop {
            let attempt = tokio::select! {
                attempt = self.attempt() => attempt,
                () = stop.cancelled() => return false,
            };
            match attempt {
                Ok(true) => {
                    info!(identity = %self.identity, "leading");
                    return true;
                }
                Ok(false) => {}
                Err(error) => warn!(error = %chain(&error), "leader election failed, trying again"),
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(self.periods.retry / 2) => {}
            }
        }
    }

    /// Renews until `stop`, or until it cannot within its deadline: then it answers false, and must not act any more.
    pub async fn keep(&mut self, stop: &CancellationToken) -> bool {
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => return true,
                () = tokio::time::sleep(self.periods.retry) => {}
            }
            let left = self.periods.renew.saturating_sub(renewed.elapsed());
            let attempt = tokio::select! {
                attempt = tokio::time::timeout(left, self.attempt()) => attempt,
                () = stop.cancelled() => return true,
            };
            match attempt {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => return false,
                Ok(Err(error)) => warn!(error = %chain(&error), "the Lease was not renewed"),
                Err(_) => warn!("the Lease was not renewed in time"),
            }
            if renewed.elapsed() >= self.periods.renew {
                return false;
            }
        }
    }

    /// Gives the Lease back, so that the next leader need not wait.
    pub async fn release(&mut self) {
        let outcome = async {
            let Some(mut lease) = self.leases.get_opt(LEASE_NAME).await? else { return Ok(()) };
            let mine =
                lease.spec.as_ref().is_some_and(|spec| spec.holder_identity.as_ref() == Some(&self.identity));
            if mine {
                let spec = lease.spec.get_or_insert_default();
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = Some(1);
                spec.renew_time = Some(now());
                self.leases.replace(LEASE_NAME, &PostParams::default(), &lease).await?;
            }
            Ok::<(), kube::Error>(())
        };
        match tokio::time::timeout(RELEASE, outcome).await {
            Err(_) => warn!("the API server did not take the Lease back in time; it runs out by itself"),
            Ok(Ok(())) => info!("gave the Lease back"),
            Ok(Err(error)) => warn!(error = %chain(&error), "could not give the Lease back"),
        }
    }

    /// One attempt to take or renew the Lease. A conflict means that somebody else was faster.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let result = match self.leases.get_opt(LEASE_NAME).await? {
            None => self.create().await,
            Some(lease) => self.take(lease).await,
        };
        match result {
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
            other => other,
        }
    }

    async fn create(&self) -> Result<bool, kube::Error> {
        let lease = Lease {
            metadata: ObjectMeta { name: Some(LEASE_NAME.to_owned()), ..ObjectMeta::default() },
            spec: Some(self.claim(&LeaseSpec::default())),
        };
        self.leases.create(&PostParams::default(), &lease).await.map(|_| true)
    }

    async fn take(&mut self, mut lease: Lease) -> Result<bool, kube::Error> {
        let spec = lease.spec.clone().unwrap_or_default();
        if !self.may_take(&spec) {
            return Ok(false);
        }
        lease.spec = Some(self.claim(&spec));
        self.leases.replace(LEASE_NAME, &PostParams::default(), &lease).await.map(|_| true)
    }

    fn may_take(&mut self, spec: &LeaseSpec) -> bool {
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        if holder.is_empty() || holder == self.identity {
            return true;
        }
        let unchanged_for = match &self.observed {
            Some((seen, since)) if seen == spec => since.elapsed(),
            _ => {
                self.observed = Some((spec.clone(), Instant::now()));
                Duration::ZERO
            }
        };
        let valid = u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
        unchanged_for >= Duration::from_secs(valid)
    }

    fn claim(&self, before: &LeaseSpec) -> LeaseSpec {
        let same = before.holder_identity.as_ref() == Some(&self.identity);
        let transitions = before.lease_transitions.unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(
                i32::try_from(self.periods.lease.as_secs().max(1)).unwrap_or(i32::MAX),
            ),
            acquire_time: if same { before.acquire_time.clone() } else { Some(now()) },
            renew_time: Some(now()),
            lease_transitions: Some(if same { transitions } else { transitions.saturating_add(1) }),
            ..LeaseSpec::default()
        }
    }
}

fn now() -> MicroTime {
    MicroTime(Timestamp::now())
}
