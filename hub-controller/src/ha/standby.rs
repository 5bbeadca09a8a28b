//! The life of a Standby: look whether the wipe was done, mirror, watch, be promoted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::elector::Mark;
use super::events::{self, Telling};
use super::inspection::inspect;
use super::mirror::{Mirror, MirrorStopped, Parts};
use super::promotion::{Attempt, End, Means, announce};
use super::remote::{Remote, Way, is_same_cluster};
use crate::decision::staleness::{Finding, Verdict};
use crate::decision::standing::{Standing, WipeSkipped, judge};
use crate::decision_log::Entry;
use crate::error::chain;
use crate::mutant::{self, Mutant};
use crate::program::clients::AuditId;
use crate::program::server::Readiness;

/// How long a look at what is on the own API server may take.
const INSPECTION: Duration = Duration::from_secs(30);

/// Why a Standby ended by itself.
#[derive(Debug, Error)]
pub enum StandbyError {
    /// The kubeconfig of the Active leads back here.
    #[error(
        "the kubeconfig of the Active leads to this hub's own cluster; put the other hub's into the Secret \
         active-hub-kubeconfig"
    )]
    SameCluster,
}

/// What a Standby is made of.
pub struct Standby {
    /// What promotions use.
    pub means: Arc<Means>,
    /// Keeps the way to the Active.
    pub remote: Remote,
    /// What the mirror is started from; its way and its verification are the Standby's.
    pub mirror: MirrorPlan,
    /// Says what the hub may be counted on for.
    pub readiness: Readiness,
}

/// What a mirror is started from, besides the way to the Active.
#[derive(Clone)]
pub struct MirrorPlan {
    /// Client of the own API server, as the mirror.
    pub client: Client,
    /// Namespace of the hub.
    pub hub_namespace: String,
    /// How often everything is listed anew.
    pub resync: Duration,
    /// Writes at the same time.
    pub writers: u16,
}

impl Standby {
    /// Runs until `stop`, or until the hub leads: then its renewal runs among the tasks of the means.
    pub async fn run(self, stop: &CancellationToken) -> Result<(), StandbyError> {
        let ending = stop.child_token();
        let guard = ending.clone().drop_guard();
        let (way, verified) = (self.remote.way(), watch::Sender::new(None));
        let verification = verify(
            self.mirror.client.clone(),
            way.clone(),
            self.mirror.hub_namespace.clone(),
            self.means.dial,
            verified.clone(),
        );
        tokio::spawn(self.remote.run(ending.clone()));
        let life = Life { means: self.means, plan: self.mirror, readiness: self.readiness, way, verified };
        let result = tokio::select! {
            () = life.live(stop) => Ok(()),
            () = verification => Err(StandbyError::SameCluster),
        };
        if mutant::is(Mutant::MirrorNotStopped) {
            // A defect: what should have ended goes on, and needs its way.
            guard.disarm();
        }
        result
    }
}

/// Ends when the way leads to the own cluster; notes each credential that leads to another one.
async fn verify(
    own: Client,
    mut way: Way,
    namespace: String,
    dial: Duration,
    verified: watch::Sender<Option<u64>>,
) {
    loop {
        let hub = way.borrow_and_update().clone();
        let known = hub.as_ref().is_none_or(|hub| *verified.borrow() == Some(hub.generation));
        if !known && let Some(hub) = hub {
            match is_same_cluster(&own, &hub.client, &namespace, dial).await {
                Some(true) => return,
                Some(false) => {
                    verified.send_replace(Some(hub.generation));
                }
                None => {
                    tokio::select! {
                        _ = way.changed() => {}
                        () = tokio::time::sleep(Duration::from_secs(1)) => {}
                    }
                }
            }
        } else if way.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

struct Life {
    means: Arc<Means>,
    plan: MirrorPlan,
    readiness: Readiness,
    way: Way,
    verified: watch::Sender<Option<u64>>,
}

impl Life {
    async fn live(&self, stop: &CancellationToken) {
        if self.stand(stop).await == Stand::Standby {
            let mirror = Mirror::start(Parts {
                client: self.plan.client.clone(),
                way: self.way.clone(),
                verified: self.verified.subscribe(),
                hub_namespace: self.plan.hub_namespace.clone(),
                resync: self.plan.resync,
                writers: self.plan.writers,
                log: self.means.log.clone(),
                metrics: Arc::clone(&self.means.metrics),
            });
            self.readiness.ready();
            self.watch(&mirror, stop).await;
            if self.means.fence.permit().is_err() {
                mirror.end();
            }
        }
    }

    /// Finds out what the hub may do, however long it takes.
    async fn stand(&self, stop: &CancellationToken) -> Stand {
        let mut told = None;
        loop {
            let standing = tokio::select! {
                standing = self.inspect() => standing,
                () = stop.cancelled() => return Stand::Ended,
            };
            let news = told.replace(standing.clone()) != Some(standing.clone());
            match standing {
                Some(Standing::Standby) => return Stand::Standby,
                Some(Standing::GiveBack) => {
                    info!("a promotion got as far as the Lease and no further; this hub is a Standby again");
                    self.means.elector.lock().await.give_back(self.means.grace).await;
                }
                Some(Standing::Resume) if self.resume().await => return Stand::Ended,
                Some(Standing::Refused(why)) if news => self.refuse(&why).await,
                _ => {}
            }
            tokio::select! {
                () = stop.cancelled() => return Stand::Ended,
                () = tokio::time::sleep(self.means.watcher.interval()) => {}
            }
        }
    }

    async fn inspect(&self) -> Option<Standing> {
        let mut way = self.way.clone();
        let credential = async { way.wait_for(Option::is_some).await.is_ok() };
        let there = tokio::time::timeout(self.means.dial, credential).await.unwrap_or(false);
        let read = there && self.means.watcher.look(false).await.finding != Finding::Unread;
        let active = self.means.watcher.lease_uid().filter(|_| read);
        match inspect(&self.means.events, &self.means.own, active, INSPECTION).await {
            Ok(found) => {
                let standing = judge(&found);
                let (name, why) = match &standing {
                    Standing::Standby => ("standby", None),
                    Standing::GiveBack => ("give-back", None),
                    Standing::Resume => ("resume", None),
                    Standing::Refused(why) => ("refused", Some(why.to_string())),
                };
                self.means.log.record(&Entry::Standing { standing: name, why });
                self.means.metrics.refused_to_mirror(matches!(standing, Standing::Refused(_)));
                Some(standing)
            }
            Err(failure) => {
                warn!(error = %chain(&failure), "this hub does not know yet whether it may mirror");
                None
            }
        }
    }

    /// Loud, and for people: in the log, in the probe, in the metric, and as an Event where there is a Lease for it.
    async fn refuse(&self, why: &WipeSkipped) {
        let text = why.to_string();
        error!(why = text, "this hub refuses to mirror and will not be promoted");
        self.readiness.not_ready(text.clone());
        let lease = tokio::time::timeout(self.means.dial, self.means.own.read(&AuditId::unique())).await;
        if let Ok(Ok(Some(lease))) = lease {
            let telling =
                Telling { type_: "Warning", reason: events::WIPE_SKIPPED, message: &text, once: "standby" };
            if let Err(failure) = events::tell(&self.means.events, &lease, &telling).await {
                warn!(error = %chain(&failure), "the Event about the missing wipe was not told");
            }
        }
    }

    /// A promoted hub that was restarted leads on (design record, decision 8).
    async fn resume(&self) -> bool {
        info!(
            "this hub was promoted before it was restarted, and leads on; run it with --ha-mode=active from now on"
        );
        let attempt = self.means.elector.lock().await.attempt(&Mark::Leads, self.means.grace).await;
        let held = match attempt {
            Ok(held) => held,
            Err(failure) => {
                warn!(error = %chain(&failure), "the own Lease is not held; nothing is written");
                return false;
            }
        };
        self.means.fence.open_promoted(&held, MirrorStopped::never_started());
        let (elector, fence, stop) =
            (Arc::clone(&self.means.elector), self.means.fence.clone(), self.means.stop.clone());
        self.means.tasks.spawn(async move { elector.lock().await.run(&fence, &stop).await });
        self.means.requeue.all(self.means.grace).await;
        let telling = announce(&self.means.events, &held, &self.means.identity);
        if !matches!(tokio::time::timeout(self.means.grace, telling).await, Ok(Ok(()))) {
            warn!("the Event of the promotion was not told");
        }
        self.readiness.ready();
        true
    }

    /// Polls, and starts an attempt whenever the Active is dead and none is under way. No step of an attempt delays a
    /// poll.
    async fn watch(&self, mirror: &Mirror, stop: &CancellationToken) {
        let (mut attempt, mut number, mut give_back): (Option<JoinHandle<End>>, u64, bool) = (None, 0, false);
        loop {
            let next = Instant::now() + self.means.watcher.interval();
            let look = tokio::select! {
                look = self.means.watcher.look(false) => look,
                () = stop.cancelled() => return,
            };
            let dead = look.verdict == Verdict::Stale;
            if attempt.is_none() && dead {
                number += 1;
                attempt =
                    Some(tokio::spawn(Attempt::new(Arc::clone(&self.means), mirror.clone(), number).run()));
                if mutant::is(Mutant::UnboundedStop) {
                    // A defect: polls wait with the attempt.
                    attempt = self.settle(attempt, &mut give_back).await;
                }
            } else if attempt.is_none() && give_back && look.finding.is_life() {
                give_back = !self.means.elector.lock().await.give_back(self.means.dial).await;
            }
            let ended = tokio::select! {
                () = stop.cancelled() => return,
                ended = finished(&mut attempt) => Some(ended),
                () = tokio::time::sleep_until(next.into()) => None,
            };
            match ended {
                Some(Some(End::Promoted)) => return self.witness(stop).await,
                // Whatever became of the rest of the attempt.
                Some(_) if self.means.fence.permit().is_ok() => return,
                Some(end) => {
                    attempt = None;
                    give_back |= end.is_none_or(|end| end == End::Aborted { give_back: true });
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep_until(next.into()) => {}
                    }
                }
                None => {}
            }
        }
    }

    async fn settle(
        &self,
        attempt: Option<JoinHandle<End>>,
        give_back: &mut bool,
    ) -> Option<JoinHandle<End>> {
        let end = attempt?.await.ok();
        *give_back |= end != Some(End::Promoted);
        end.filter(|end| *end == End::Promoted).map(|end| tokio::spawn(async move { end }))
    }

    /// The life of a Standby is over. A defect looks on, and steps back when the Active is seen again.
    async fn witness(&self, stop: &CancellationToken) {
        while mutant::is(Mutant::AutoDemotion) && !stop.is_cancelled() {
            if self.means.watcher.look(false).await.finding.is_life() {
                self.means.fence.close("the Active is back");
            }
            tokio::time::sleep(self.means.watcher.interval()).await;
        }
    }
}

/// What came of standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// Mirror and watch.
    Standby,
    /// The hub leads, or the process ends.
    Ended,
}

/// The end of the attempt that is under way, if there is one; `None` if it panicked.
async fn finished(attempt: &mut Option<JoinHandle<End>>) -> Option<End> {
    match attempt {
        Some(attempt) => attempt.await.ok(),
        None => std::future::pending().await,
    }
}
