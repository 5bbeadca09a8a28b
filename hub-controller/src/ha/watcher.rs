//! Looking at the Active's Lease: polls, each bounded by the dial timeout (design record, decision 5).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tracing::{debug, info, warn};

use super::lease::{LeaseError, Leases};
use super::remote::Way;
use crate::decision::lease;
use crate::decision::staleness::{Finding, ProofOfLife, Verdict};
use crate::decision_log::{DecisionLog, Entry, millis};
use crate::error::chain;
use crate::metrics::Metrics;
use crate::mutant::{self, Mutant};
use crate::program::clients::AuditId;

/// How looks are taken.
#[derive(Clone, Debug)]
pub struct Looking {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How often.
    pub interval: Duration,
    /// Longest that a look may take.
    pub dial: Duration,
    /// How long this hub believes that the Active's Lease lasts; a Lease that says longer is believed.
    pub lease_duration: Duration,
    /// What is added to that.
    pub padding: Duration,
}

impl Looking {
    /// Looks are due within this of each other.
    fn longest_gap(&self) -> Duration {
        self.interval + self.dial + self.dial
    }
}

/// What a look has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// What the Lease said.
    pub finding: Finding,
    /// What follows.
    pub verdict: Verdict,
}

#[derive(Debug)]
struct Known {
    proof: ProofOfLife,
    lease_uid: Option<String>,
    lease_duration: Duration,
    last: Option<(&'static str, Verdict)>,
}

/// Looks at the Active's Lease. Clones share what they know.
#[derive(Clone)]
pub struct LeaseWatcher {
    way: Way,
    looking: Arc<Looking>,
    known: Arc<Mutex<Known>>,
    log: DecisionLog,
    metrics: Arc<Metrics>,
}

impl LeaseWatcher {
    /// Knows nothing yet.
    pub fn new(way: Way, looking: Looking, log: DecisionLog, metrics: Arc<Metrics>) -> Self {
        let proof = ProofOfLife::new(Instant::now(), looking.longest_gap());
        let lease_duration = looking.lease_duration;
        let known = Known { proof, lease_uid: None, lease_duration, last: None };
        Self { way, looking: Arc::new(looking), known: Arc::new(Mutex::new(known)), log, metrics }
    }

    /// How often to look.
    pub fn interval(&self) -> Duration {
        self.looking.interval
    }

    /// Uid of the Lease that was read last.
    pub fn lease_uid(&self) -> Option<String> {
        self.known().lease_uid.clone()
    }

    /// The newest `renewTime` that was read.
    pub fn newest(&self) -> Option<Timestamp> {
        self.known().proof.newest()
    }

    /// Looks once. `last` says that a promotion hangs on it.
    pub async fn look(&self, last: bool) -> Look {
        let (id, began) = (AuditId::unique(), Instant::now());
        let read = async {
            let client = self.way.borrow().as_ref().map(|hub| hub.client.clone());
            let Some(client) = client else { return Answer::NoCredential };
            match Leases::new(client, &self.looking.namespace, &self.looking.name).read(&id).await {
                Ok(Some(lease)) => Answer::Read(Box::new(lease)),
                Ok(None) => Answer::Absent,
                Err(error) => Answer::Failed(error),
            }
        };
        let answer = if mutant::is(Mutant::UnboundedRead) {
            read.await
        } else {
            tokio::time::timeout(self.looking.dial, read).await.unwrap_or(Answer::TimedOut)
        };
        self.judge(last, &id, &answer, began)
    }

    fn judge(&self, last: bool, id: &AuditId, answer: &Answer, began: Instant) -> Look {
        let now = Instant::now();
        let (look, age, newest, news, uid) = {
            let mut known = self.known();
            let finding = known.note(answer, now, &self.looking);
            let window = known.lease_duration + self.looking.padding;
            let look = Look { finding, verdict: known.proof.verdict(window, now) };
            let news =
                known.last.replace((answer.name(), look.verdict)) != Some((answer.name(), look.verdict));
            (look, known.proof.age(now), known.proof.newest(), news, known.lease_uid.clone())
        };
        self.metrics.looked(answer.name(), age);
        self.log.record(&Entry::Poll {
            audit_id: id.as_str(),
            last,
            outcome: answer.name(),
            error: answer.error(),
            renew_time: answer.renew_time().map(|time| time.to_string()),
            lease_uid: uid.filter(|_| matches!(answer, Answer::Read(_))),
            finding: look.finding.name(),
            newest: newest.map(|time| time.to_string()),
            wall_age_ms: newest
                .map(|time| Timestamp::now().duration_since(time).as_millis().try_into().unwrap_or(i64::MAX)),
            seen_age_ms: age.map(millis),
            took_ms: millis(now.saturating_duration_since(began)),
            verdict: look.verdict.name(),
        });
        tell(answer, look, age, news);
        look
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, answer: &Answer, now: Instant, looking: &Looking) -> Finding {
        let Answer::Read(lease) = answer else { return self.proof.unread(now) };
        self.lease_uid = lease.uid();
        let says = lease.spec.as_ref().map(lease::duration).unwrap_or_default();
        self.lease_duration = looking.lease_duration.max(says);
        self.proof.read(answer.renew_time(), now)
    }
}

/// What became of a read.
enum Answer {
    Read(Box<Lease>),
    Absent,
    Failed(LeaseError),
    TimedOut,
    NoCredential,
}

impl Answer {
    fn name(&self) -> &'static str {
        match self {
            Self::Read(_) => "read",
            Self::Absent => "absent",
            Self::Failed(error) if error.status().is_some() => "refused",
            Self::Failed(_) => "unreachable",
            Self::TimedOut => "timeout",
            Self::NoCredential => "no-credential",
        }
    }

    fn error(&self) -> Option<String> {
        match self {
            Self::Failed(error) => Some(chain(error)),
            _ => None,
        }
    }

    fn renew_time(&self) -> Option<Timestamp> {
        let Self::Read(lease) = self else { return None };
        Some(lease.spec.as_ref()?.renew_time.as_ref()?.0)
    }
}

/// News are told loudly, the rest to whoever wants to know.
fn tell(answer: &Answer, look: Look, age: Option<Duration>, news: bool) {
    let (outcome, verdict) = (answer.name(), look.verdict.name());
    let age = age.map(|age| format!("{:.1}s", age.as_secs_f64())).unwrap_or_default();
    let error = answer.error().unwrap_or_default();
    match (look.verdict, answer) {
        _ if !news => debug!(outcome, verdict, age, error, "looked at the Active's Lease"),
        (Verdict::NeverRead, _) => warn!(
            outcome,
            error,
            "the Active's Lease was never read by this process: it will not be promoted before it was read once; check \
             the Secret active-hub-kubeconfig and the rights it gives"
        ),
        (Verdict::Alive, Answer::Read(_)) => info!(outcome, age, "the Active is alive"),
        (Verdict::Alive, _) => warn!(outcome, age, error, "the Active's Lease cannot be read"),
        (Verdict::Stale, _) => warn!(outcome, age, error, "the Active counts as dead"),
    }
}
