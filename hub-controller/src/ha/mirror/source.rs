//! Lists and watches the Active, one task for each kind.
//!
//! A resync is a new list followed by a new watch from it: what a list shows is never older than what the watch before it
//! has shown. Copies without an original are deleted at the end of a whole list, and at no other moment.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use kube::api::{Api, DynamicObject, ListParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::super::remote::{ActiveHub, Way};
use super::Parts;
use super::known::{Known, Seen};
use super::queue::{Job, Queue, Task};
use crate::api::kind::MirroredKind;
use crate::decision::copy::{Copy, Key, copy};
use crate::decision::prune::{Listed, gone};
use crate::decision::scope::{Membership, News, Scope};
use crate::decision_log::{DecisionLog, Entry};
use crate::error::chain;
use crate::metrics::Metrics;
use crate::mutant::{self, Mutant};

/// Objects per page of a list.
const PAGE: u32 = 500;
/// Longest that the lists of one kind may take.
const LIST: Duration = Duration::from_mins(1);
/// Pause after a failure; doubled up to the longest.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A kind that is not followed at the moment.
#[derive(Debug, Error)]
enum SourceError {
    /// The copies on this hub cannot be listed: nothing is written without knowing what is here.
    #[error("the copies here cannot be listed")]
    Copies(#[source] Box<kube::Error>),
    /// The Active cannot be listed or watched.
    #[error("the Active cannot be listed or watched")]
    Active(#[source] Box<watcher::Error>),
    /// A list took too long.
    #[error("a list took more than {} s", LIST.as_secs())]
    TimedOut,
    /// The watch has ended.
    #[error("the watch of the Active has ended")]
    Ended,
}

/// What all kinds share.
pub(super) struct Sources {
    client: Client,
    way: Way,
    verified: watch::Receiver<Option<u64>>,
    resync: Duration,
    queue: Arc<Queue>,
    known: Arc<Known>,
    scope: Mutex<Scope>,
    parked: Mutex<BTreeMap<String, BTreeMap<Key, Copy>>>,
    /// Credential with which all namespaces have been listed.
    namespaces: watch::Sender<Option<u64>>,
    /// Counts reasons to list everything anew.
    rescan: watch::Sender<u64>,
    log: DecisionLog,
    metrics: Arc<Metrics>,
}

impl Sources {
    pub(super) fn new(parts: Parts, queue: Arc<Queue>, known: Arc<Known>) -> Arc<Self> {
        Arc::new(Self {
            scope: Mutex::new(Scope::new(&parts.hub_namespace)),
            client: parts.client,
            way: parts.way,
            verified: parts.verified,
            resync: parts.resync,
            queue,
            known,
            parked: Mutex::default(),
            namespaces: watch::Sender::new(None),
            rescan: watch::Sender::new(0),
            log: parts.log,
            metrics: parts.metrics,
        })
    }

    /// One task per kind, each until `stop`.
    pub(super) fn tasks(self: &Arc<Self>, stop: &CancellationToken) -> Vec<BoxFuture<'static, ()>> {
        let task = |kind: MirroredKind| {
            let (sources, stop) = (Arc::clone(self), stop.clone());
            async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = sources.follow(kind) => {}
                }
                sources.metrics.connected(kind.name(), false);
            }
            .boxed()
        };
        MirroredKind::all().into_iter().map(task).collect()
    }

    async fn follow(&self, kind: MirroredKind) {
        let mut failures = 0_u32;
        loop {
            let hub = self.reachable(kind).await;
            match self.cycle(kind, &hub).await {
                Ok(()) => failures = 0,
                Err(error) => {
                    self.metrics.connected(kind.name(), false);
                    let text = chain(&error);
                    if failures == 0 {
                        warn!(%kind, error = text, "the mirror does not follow a kind; trying again");
                    } else {
                        debug!(%kind, error = text, failures, "the mirror does not follow a kind yet");
                    }
                    let pause = PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
                    failures = failures.saturating_add(1);
                    tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..=1.0))).await;
                }
            }
        }
    }

    /// Waits for a credential that leads to another cluster, and, but for namespaces, for the list of namespaces.
    async fn reachable(&self, kind: MirroredKind) -> ActiveHub {
        let (mut way, mut verified, mut namespaces) =
            (self.way.clone(), self.verified.clone(), self.namespaces.subscribe());
        loop {
            let hub = way.borrow_and_update().clone();
            let same = |generation: &Option<u64>| *generation == hub.as_ref().map(|hub| hub.generation);
            let ready = same(&verified.borrow_and_update())
                && (kind == MirroredKind::Namespace || same(&namespaces.borrow_and_update()));
            if let Some(hub) = hub.filter(|_| ready) {
                return hub;
            }
            let closed = tokio::select! {
                changed = way.changed() => changed.is_err(),
                changed = verified.changed() => changed.is_err(),
                changed = namespaces.changed() => changed.is_err(),
            };
            if closed {
                std::future::pending::<()>().await;
            }
        }
    }

    /// One list and the watch that follows it, until the next resync is due or the credential changes.
    async fn cycle(&self, kind: MirroredKind, hub: &ActiveHub) -> Result<(), SourceError> {
        let (mut way, mut rescan) = (self.way.clone(), self.rescan.subscribe());
        way.borrow_and_update();
        rescan.borrow_and_update();
        let learning = tokio::time::timeout(LIST, self.learn(kind)).await;
        learning.unwrap_or(Err(SourceError::TimedOut))?;
        let originals: Api<DynamicObject> = Api::all_with(hub.client.clone(), &kind.resource());
        let config = watcher::Config::default().page_size(PAGE);
        let mut events = pin!(watcher(originals, config));
        let mut listing = Listing::default();
        let mut due = pin!(tokio::time::sleep(LIST));
        loop {
            let event = tokio::select! {
                event = events.try_next() => event,
                changed = way.changed() => {
                    self.metrics.connected(kind.name(), false);
                    return if changed.is_err() { std::future::pending().await } else { Ok(()) };
                }
                _ = rescan.changed(), if kind != MirroredKind::Namespace => return Ok(()),
                () = &mut due => return if listing.whole { Ok(()) } else { Err(SourceError::TimedOut) },
            };
            match event {
                Ok(Some(event)) => {
                    let finished = self.handle(kind, event, &mut listing).await;
                    if finished {
                        self.metrics.connected(kind.name(), true);
                        let jittered = self.resync.mul_f64(rand::random_range(0.9..=1.0));
                        due.as_mut().reset(tokio::time::Instant::now() + jittered);
                        if kind == MirroredKind::Namespace {
                            self.namespaces.send_replace(Some(hub.generation));
                        }
                    }
                }
                Ok(None) => return Err(SourceError::Ended),
                Err(error) => {
                    self.broken(kind, &listing, &error).await;
                    return Err(SourceError::Active(Box::new(error)));
                }
            }
        }
    }

    /// Learns what copies of the kind are here.
    async fn learn(&self, kind: MirroredKind) -> Result<(), SourceError> {
        let copies: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind.resource());
        let (mut listed, mut next) = (BTreeMap::new(), None);
        loop {
            let params = ListParams { limit: Some(PAGE), continue_token: next, ..ListParams::default() };
            let page = copies.list(&params).await.map_err(|error| SourceError::Copies(Box::new(error)))?;
            for live in &page.items {
                if let Some(seen) =
                    Seen::of(kind, live).filter(|_| live.metadata.deletion_timestamp.is_none())
                {
                    listed.insert(Key::of(kind, live), seen);
                }
            }
            next = page.metadata.continue_.filter(|token| !token.is_empty());
            if next.is_none() {
                break;
            }
        }
        self.known.learn(kind, listed);
        Ok(())
    }

    /// Answers whether a list is complete with this event.
    async fn handle(&self, kind: MirroredKind, event: Event<DynamicObject>, listing: &mut Listing) -> bool {
        match event {
            Event::Init => *listing = Listing::default(),
            Event::InitApply(original) => {
                listing.seen.insert(Key::of(kind, &original));
                self.changed(kind, &original).await;
            }
            Event::InitDone => {
                listing.whole = true;
                self.prune(kind, std::mem::take(&mut listing.seen)).await;
                return true;
            }
            Event::Apply(original) => self.changed(kind, &original).await,
            Event::Delete(original) => self.deleted(kind, &original).await,
        }
        false
    }

    /// An original is new, or looks otherwise.
    async fn changed(&self, kind: MirroredKind, original: &DynamicObject) {
        if kind == MirroredKind::Namespace {
            self.saw_namespace(original).await;
        }
        let wanted = copy(kind, original);
        match self.scope().membership(kind, original) {
            Membership::Inside => {}
            Membership::Outside => return,
            Membership::Unknown => {
                let mut parked = self.parked();
                parked.entry(wanted.key.namespace.clone()).or_default().insert(wanted.key.clone(), wanted);
                return;
            }
        }
        self.want(wanted).await;
    }

    async fn want(&self, wanted: Copy) {
        let up_to_date = self.known.get(&wanted.key).is_some_and(|seen| {
            seen.original == wanted.original && seen.print == wanted.print() && !self.queue.has(&wanted.key)
        });
        if !up_to_date {
            self.queue.push(wanted.key.clone(), Job::new(Task::Write(Box::new(wanted)))).await;
        }
    }

    /// What is in a namespace can arrive before the namespace.
    async fn saw_namespace(&self, namespace: &DynamicObject) {
        let news = self.scope().saw(namespace);
        let waiting = match news {
            News::Nothing => return,
            _ => self.parked().remove(&namespace.name_any()).unwrap_or_default(),
        };
        match news {
            News::Discovered => {
                for (_, wanted) in waiting {
                    self.want(wanted).await;
                }
            }
            News::Converted => {
                info!(namespace = namespace.name_any(), "a namespace has become a project's");
                self.rescan.send_modify(|count| *count += 1);
            }
            News::Foreign | News::Nothing => {}
        }
    }

    async fn deleted(&self, kind: MirroredKind, original: &DynamicObject) {
        let key = Key::of(kind, original);
        if kind == MirroredKind::Namespace {
            self.scope().lost(&key.name);
        }
        if let Some(waiting) = self.parked().get_mut(&key.namespace) {
            waiting.remove(&key);
        }
        if self.known.get(&key).is_some() || self.queue.has(&key) {
            self.queue.push(key, Job::new(Task::Delete)).await;
        }
    }

    /// A whole list shows which originals are gone.
    async fn prune(&self, kind: MirroredKind, originals: BTreeSet<Key>) {
        let count = originals.len();
        let listed = Listed::Whole(originals);
        let gone =
            if mutant::is(Mutant::NoPrune) { Vec::new() } else { gone(&listed, &self.known.copies(kind)) };
        self.resynced(kind, true, count, gone.len(), None);
        for key in gone {
            info!(%key, "the original of a copy is gone");
            self.queue.push(key, Job::new(Task::Delete)).await;
        }
    }

    /// What a broken list does not show may exist.
    async fn broken(&self, kind: MirroredKind, listing: &Listing, error: &watcher::Error) {
        if listing.whole {
            return;
        }
        self.resynced(kind, false, listing.seen.len(), 0, Some(chain(error)));
        if mutant::is(Mutant::PruneOnFailedList) {
            self.prune(kind, listing.seen.clone()).await;
        }
    }

    fn resynced(
        &self,
        kind: MirroredKind,
        whole: bool,
        originals: usize,
        pruned: usize,
        error: Option<String>,
    ) {
        debug!(%kind, whole, originals, pruned, "listed a kind anew");
        self.log.record(&Entry::Resync { kind: kind.name(), whole, originals, pruned, error });
    }

    fn scope(&self) -> MutexGuard<'_, Scope> {
        self.scope.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parked(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<Key, Copy>>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A list that is under way.
#[derive(Debug, Default)]
struct Listing {
    seen: BTreeSet<Key>,
    whole: bool,
}
