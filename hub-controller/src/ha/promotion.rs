//! One attempt to be promoted: carries out the steps that [`crate::decision::promotion`] orders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use super::elector::{Elector, Mark};
use super::events::{self, Telling};
use super::lease::{HeldLease, Leases};
use super::mirror::{Mirror, MirrorStopped};
use super::publisher::{Publisher, once};
use super::watcher::LeaseWatcher;
use crate::crash;
use crate::decision::promotion::{Next, Outcome, Step, follow};
use crate::decision::staleness::Finding;
use crate::decision_log::{DecisionLog, Entry, millis};
use crate::error::chain;
use crate::fence::Fence;
use crate::metrics::Metrics;
use crate::mutant::{self, Mutant};
use crate::program::clients::AuditId;
use crate::reconcile::requeue::Requeue;

/// What every attempt of a Standby uses.
pub struct Means {
    /// Name of this hub.
    pub identity: String,
    /// Looks at the Active's Lease.
    pub watcher: LeaseWatcher,
    /// The own Lease, to see whether the own API server answers.
    pub own: Leases,
    /// Client that Events are told through.
    pub events: Client,
    /// Holds the own Lease.
    pub elector: Arc<Mutex<Elector>>,
    /// The write fence.
    pub fence: Fence,
    /// Reconciles everything anew.
    pub requeue: Requeue,
    /// Declares the hub.
    pub publisher: Publisher,
    /// Bound of the check of the own API server.
    pub dial: Duration,
    /// Bound of every step that waits for somebody.
    pub grace: Duration,
    /// The decision log.
    pub log: DecisionLog,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Where the renewal of the own Lease runs from the opening of the fence on.
    pub tasks: TaskTracker,
    /// Ends it.
    pub stop: CancellationToken,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The hub leads.
    Promoted,
    /// It does not; the own Lease may be held.
    Aborted {
        /// Whether it has to be given back.
        give_back: bool,
    },
}

/// An attempt.
pub struct Attempt {
    means: Arc<Means>,
    mirror: Mirror,
    number: u64,
    /// The newest proof of life when the Active was found dead: any newer one ends the attempt.
    newest: Option<Timestamp>,
    stopped: Option<MirrorStopped>,
    held: Option<HeldLease>,
}

/// What a step has come to.
struct Report {
    outcome: Outcome,
    id: Option<AuditId>,
    detail: Option<String>,
}

impl Report {
    fn done() -> Self {
        Self { outcome: Outcome::Done, id: None, detail: None }
    }

    fn failed(detail: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed, id: None, detail: Some(detail.into()) }
    }

    fn timed_out() -> Self {
        Self { outcome: Outcome::TimedOut, id: None, detail: None }
    }

    fn renewed() -> Self {
        let detail = Some("the Active has renewed its Lease".to_owned());
        Self { outcome: Outcome::Renewed, id: None, detail }
    }
}

impl Attempt {
    /// The attempt with this number.
    pub fn new(means: Arc<Means>, mirror: Mirror, number: u64) -> Self {
        let newest = means.watcher.newest();
        Self { means, mirror, number, newest, stopped: None, held: None }
    }

    /// Takes step after step. Before the fence a failure ends the attempt and undoes what it has begun.
    pub async fn run(mut self) -> End {
        info!(attempt = self.number, "promoting this hub");
        let mut step = Step::SelfCheck;
        loop {
            crash::point(|| format!("before {step}"));
            let began = Instant::now();
            let report = self.take(step).await;
            self.tell(step, &report, began.elapsed());
            crash::point(|| format!("after {step}"));
            match follow(step, report.outcome) {
                Next::Take(next) => step = next,
                Next::Complete => return self.complete(),
                Next::Abort { restart_mirror, give_back } => {
                    return self.abort(step, restart_mirror, give_back);
                }
            }
        }
    }

    async fn take(&mut self, step: Step) -> Report {
        match step {
            Step::SelfCheck => self.self_check().await,
            Step::FinalRead => self.final_read().await,
            Step::StopMirror => self.stop_mirror().await,
            Step::AcquireLease => self.acquire_lease().await,
            Step::OpenFence => self.open_fence(),
            Step::Requeue => self.requeue().await,
            Step::Publish => self.publish().await,
            Step::Announce => self.announce().await,
            Step::Count => {
                self.means.metrics.promoted();
                Report::done()
            }
        }
    }

    /// The own API server answers: it is not one's own network that fails.
    async fn self_check(&self) -> Report {
        if mutant::is(Mutant::NoSelfCheck) {
            return Report::done();
        }
        let id = AuditId::unique();
        let answer = tokio::time::timeout(self.means.dial, self.means.own.read(&id)).await;
        let report = match answer {
            Err(_) => Report::timed_out(),
            Ok(Err(error)) => Report::failed(chain(&error)),
            Ok(Ok(_)) => Report::done(),
        };
        Report { id: Some(id), ..report }
    }

    /// A renewal between two polls is not missed. No protection against a partition, in which it fails likewise.
    async fn final_read(&self) -> Report {
        if mutant::is(Mutant::NoFinalRead) {
            return Report::done();
        }
        match self.means.watcher.look(true).await.finding {
            Finding::Advanced | Finding::First => Report::renewed(),
            Finding::Unread | Finding::Empty => Report::failed("the Active's Lease cannot be read"),
            Finding::Same | Finding::Older => Report::done(),
        }
    }

    /// No write of the mirror is under way, and none begins.
    async fn stop_mirror(&mut self) -> Report {
        if mutant::is(Mutant::MirrorNotStopped) {
            self.stopped = Some(self.mirror.presumed_stopped());
            return Report::done();
        }
        self.mirror.pause();
        if mutant::is(Mutant::StopNotConfirmed) {
            self.stopped = Some(self.mirror.presumed_stopped());
            return Report::done();
        }
        let bound = if mutant::is(Mutant::UnboundedStop) { Duration::MAX } else { self.means.grace };
        if let Ok(stopped) = tokio::time::timeout(bound, self.mirror.stopped()).await {
            self.stopped = Some(stopped);
            return Report::done();
        }
        let (_, in_flight) = self.mirror.backlog();
        Report { detail: Some(format!("{in_flight} writes are under way")), ..Report::timed_out() }
    }

    /// The own Lease is held, and the Active has not renewed its own meanwhile.
    async fn acquire_lease(&mut self) -> Report {
        if self.renewed() {
            return Report::renewed();
        }
        let mark = Mark::Promoted { over: self.means.watcher.lease_uid().unwrap_or_default() };
        let attempt = async { self.means.elector.lock().await.attempt(&mark, self.means.grace).await };
        match attempt.await {
            Ok(held) => {
                let detail = Some(held.uid());
                self.held = Some(held);
                if self.renewed() { Report::renewed() } else { Report { detail, ..Report::done() } }
            }
            Err(super::elector::AcquireError::TimedOut(_)) => Report::timed_out(),
            Err(error) => Report::failed(chain(&error)),
        }
    }

    fn renewed(&self) -> bool {
        self.means.watcher.newest() > self.newest
    }

    /// From here on the hub leads, whatever becomes of the rest; its Lease is renewed at once.
    fn open_fence(&mut self) -> Report {
        let (Some(held), Some(stopped)) = (&self.held, self.stopped.take()) else {
            return Report::failed("the Lease is not held, or the mirror has not stopped");
        };
        self.means.fence.open_promoted(held, stopped);
        let (elector, fence, stop) =
            (Arc::clone(&self.means.elector), self.means.fence.clone(), self.means.stop.clone());
        self.means.tasks.spawn(async move { elector.lock().await.run(&fence, &stop).await });
        Report::done()
    }

    /// The fence drops what it refuses: what exists is not reconciled unless it is asked for.
    async fn requeue(&self) -> Report {
        if mutant::is(Mutant::NoRequeue) {
            return Report::done();
        }
        let requeued = self.means.requeue.all(self.means.grace).await;
        self.means
            .log
            .record(&Entry::Requeued { objects: requeued.objects, incomplete: &requeued.incomplete });
        let detail = Some(format!("{} objects", requeued.objects));
        if requeued.incomplete.is_empty() {
            return Report { detail, ..Report::done() };
        }
        let incomplete = requeued.incomplete.join(", ");
        Report {
            detail: Some(format!("not yet listed, and reconciled once they are: {incomplete}")),
            ..Report::timed_out()
        }
    }

    async fn publish(&self) -> Report {
        match tokio::time::timeout(self.means.grace, self.means.publisher.publish()).await {
            Err(_) => Report::timed_out(),
            Ok(Err(error)) => Report::failed(chain(&error)),
            Ok(Ok(written)) => Report { detail: Some(format!("{written} Clusters")), ..Report::done() },
        }
    }

    async fn announce(&self) -> Report {
        let Some(held) = &self.held else { return Report::failed("the Lease is not held") };
        let telling = announce(&self.means.events, held, &self.means.identity);
        match tokio::time::timeout(self.means.grace, telling).await {
            Err(_) => Report::timed_out(),
            Ok(Err(error)) => Report::failed(chain(&error)),
            Ok(Ok(())) => Report::done(),
        }
    }

    fn tell(&self, step: Step, report: &Report, took: Duration) {
        let outcome = match report.outcome {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::TimedOut => "timed-out",
            Outcome::Renewed => "renewed",
        };
        let (attempt, detail) = (self.number, report.detail.clone());
        let says = detail.as_deref().unwrap_or_default();
        match report.outcome {
            Outcome::Done => info!(attempt, %step, outcome, detail = says, "promotion"),
            _ if step.is_after_fence() => {
                error!(attempt, %step, outcome, detail = says, "promotion: a step failed; this hub leads");
            }
            _ => warn!(attempt, %step, outcome, detail = says, "promotion"),
        }
        let audit_id = report.id.as_ref().map(AuditId::as_str);
        self.means.log.record(&Entry::Step {
            attempt,
            step: step.name(),
            outcome,
            audit_id,
            took_ms: millis(took),
            detail,
        });
    }

    fn complete(&self) -> End {
        let uid = self.held.as_ref().map(HeldLease::uid).unwrap_or_default();
        self.means.log.record(&Entry::Promoted { attempt: self.number, lease_uid: &uid });
        info!(attempt = self.number, "this hub is the active one");
        End::Promoted
    }

    fn abort(&self, step: Step, restart_mirror: bool, give_back: bool) -> End {
        if restart_mirror {
            warn!(attempt = self.number, %step, "the promotion was given up after the mirror had been stopped: mirroring again");
            self.mirror.resume();
        } else {
            warn!(attempt = self.number, %step, "the promotion was given up; the next poll decides anew");
        }
        self.means.metrics.aborted(step.name());
        self.means.log.record(&Entry::Aborted {
            attempt: self.number,
            step: step.name(),
            mirror_restarted: restart_mirror,
        });
        End::Aborted { give_back }
    }
}

/// Tells that this hub was promoted, once for each time that it acquired its Lease.
pub(super) async fn announce(client: &Client, held: &HeldLease, identity: &str) -> Result<(), kube::Error> {
    let message = format!("hub {identity} was promoted: the Active has not renewed its Lease");
    let once = once(Some(held));
    let telling = Telling { type_: "Normal", reason: events::PROMOTED, message: &message, once: &once };
    events::tell(client, held.lease(), &telling).await
}
