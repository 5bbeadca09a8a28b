//! What is to be written: the latest of each object, at most one write per object at a time, in the order of kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use crate::api::kind::MirroredKind;
use crate::decision::copy::{Copy, Key};
use crate::metrics::Metrics;

/// How many jobs of one kind may wait. Per kind, so that no kind waits for room behind one that waits for it.
const ROOM: usize = 500;

/// What is to be done with a copy.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// It is to look like this.
    Write(Box<Copy>),
    /// Its original is gone.
    Delete,
}

/// A task, and its story.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) task: Task,
    /// When the change arrived.
    pub(super) since: Instant,
    /// How often it failed.
    pub(super) attempts: u32,
    /// When it may be tried again.
    pub(super) not_before: Option<Instant>,
}

impl Job {
    pub(super) fn new(task: Task) -> Self {
        Self { task, since: Instant::now(), attempts: 0, not_before: None }
    }
}

#[derive(Debug, Default)]
struct State {
    pending: BTreeMap<Key, Job>,
    busy: BTreeSet<Key>,
    waiting: BTreeMap<MirroredKind, usize>,
    paused: bool,
}

impl State {
    /// The next job that may begin at `now`; or when the next one may.
    fn next(&self, now: Instant) -> Result<Key, Option<Instant>> {
        if self.paused {
            return Err(None);
        }
        let mut soonest = None;
        for (key, job) in &self.pending {
            if self.busy.contains(key) {
                continue;
            }
            match job.not_before {
                Some(then) if then > now => {
                    soonest = Some(soonest.map_or(then, |soonest: Instant| soonest.min(then)));
                }
                _ => return Ok(key.clone()),
            }
        }
        Err(soonest)
    }

    fn insert(&mut self, key: Key, job: Job) {
        let kind = key.kind;
        if self.pending.insert(key, job).is_none() {
            *self.waiting.entry(kind).or_default() += 1;
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Job> {
        let job = self.pending.remove(key)?;
        if let Some(waiting) = self.waiting.get_mut(&key.kind) {
            *waiting = waiting.saturating_sub(1);
        }
        Some(job)
    }
}

/// The queue of a mirror.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// There may be something to take.
    work: Notify,
    /// A job was taken, or a write has ended.
    progress: Notify,
    metrics: Arc<Metrics>,
}

impl Queue {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { state: Mutex::default(), work: Notify::new(), progress: Notify::new(), metrics }
    }

    /// Adds a job in place of what waits for the same object. Waits for room.
    pub(super) async fn push(&self, key: Key, job: Job) {
        loop {
            let progress = self.progress.notified();
            {
                let mut state = self.lock();
                let replaces = state.pending.contains_key(&key);
                if replaces || state.waiting.get(&key.kind).copied().unwrap_or(0) < ROOM {
                    // What arrived first counts for the lag.
                    let since =
                        state.pending.get(&key).map_or(job.since, |before| before.since.min(job.since));
                    state.insert(key, Job { since, ..job });
                    break;
                }
            }
            progress.await;
        }
        self.work.notify_one();
    }

    /// Takes the next job; its object is busy until [`Queue::finish`] or [`Queue::retry`]. Cancel safe.
    pub(super) async fn take(&self) -> (Key, Job) {
        loop {
            let work = self.work.notified();
            let next = {
                let mut state = self.lock();
                let next = state.next(Instant::now());
                if let Ok(key) = &next
                    && let Some(job) = state.remove(key)
                {
                    state.busy.insert(key.clone());
                    self.metrics.pending(state.pending.len());
                    drop(state);
                    self.progress.notify_waiters();
                    // There may be more for others.
                    self.work.notify_one();
                    return (key.clone(), job);
                }
                next
            };
            match next {
                Err(Some(then)) => {
                    tokio::select! {
                        () = work => {}
                        () = tokio::time::sleep_until(then.into()) => {}
                    }
                }
                _ => work.await,
            }
        }
    }

    /// The write of this object has ended.
    pub(super) fn finish(&self, key: &Key) {
        self.lock().busy.remove(key);
        self.progress.notify_waiters();
        self.work.notify_one();
    }

    /// The write of this object has failed: it is tried again, unless something newer waits for the object.
    pub(super) fn retry(&self, key: &Key, job: Job) {
        {
            let mut state = self.lock();
            state.busy.remove(key);
            if !state.pending.contains_key(key) {
                state.insert(key.clone(), job);
            }
        }
        self.progress.notify_waiters();
        self.work.notify_one();
    }

    /// No job begins from now on.
    pub(super) fn pause(&self) {
        self.lock().paused = true;
    }

    /// Jobs begin again.
    pub(super) fn resume(&self) {
        self.lock().paused = false;
        self.work.notify_one();
    }

    /// Waits until no write is under way. Cancel safe.
    pub(super) async fn idle(&self) {
        loop {
            let progress = self.progress.notified();
            if self.lock().busy.is_empty() {
                return;
            }
            progress.await;
        }
    }

    /// Whether something waits or is under way for this object.
    pub(super) fn has(&self, key: &Key) -> bool {
        let state = self.lock();
        state.pending.contains_key(key) || state.busy.contains(key)
    }

    /// How many jobs wait, and how many writes are under way.
    pub(super) fn backlog(&self) -> (usize, usize) {
        let state = self.lock();
        (state.pending.len(), state.busy.len())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use futures::FutureExt as _;

    use super::{Job, Queue, ROOM, Task};
    use crate::api::kind::{HubKind, MirroredKind};
    use crate::decision::copy::Key;
    use crate::metrics::Metrics;

    fn queue() -> Queue {
        Queue::new(Arc::new(Metrics::new()))
    }

    fn key(kind: MirroredKind, name: &str) -> Key {
        Key::new(kind, "ns", name)
    }

    fn cluster(name: &str) -> Key {
        key(MirroredKind::Hub(HubKind::Cluster), name)
    }

    #[tokio::test]
    async fn what_others_need_is_taken_first() {
        let queue = queue();
        queue.push(cluster("c"), Job::new(Task::Delete)).await;
        queue.push(key(MirroredKind::Namespace, "ns"), Job::new(Task::Delete)).await;
        assert_eq!(queue.take().await.0.kind, MirroredKind::Namespace);
    }

    #[tokio::test]
    async fn an_object_is_written_once_at_a_time() {
        let queue = queue();
        queue.push(cluster("c"), Job::new(Task::Delete)).await;
        let (taken, _) = queue.take().await;
        queue.push(cluster("c"), Job::new(Task::Delete)).await;
        assert!(queue.take().now_or_never().is_none());
        queue.finish(&taken);
        assert_eq!(queue.take().await.0, cluster("c"));
    }

    #[tokio::test]
    async fn a_failed_write_does_not_undo_what_is_newer() {
        let queue = queue();
        queue.push(cluster("c"), Job::new(Task::Delete)).await;
        let (key, old) = queue.take().await;
        queue.push(cluster("c"), Job::new(Task::Delete)).await;
        queue.retry(&key, Job { attempts: 7, ..old });
        assert_eq!(queue.take().await.1.attempts, 0);
    }

    #[tokio::test]
    async fn a_paused_queue_is_idle_once_what_was_under_way_has_ended() {
        let queue = queue();
        queue.push(cluster("a"), Job::new(Task::Delete)).await;
        queue.push(cluster("b"), Job::new(Task::Delete)).await;
        let (taken, _) = queue.take().await;
        queue.pause();
        assert!(queue.idle().now_or_never().is_none());
        assert!(queue.take().now_or_never().is_none());
        queue.finish(&taken);
        queue.idle().await;
        assert_eq!(queue.backlog(), (1, 0));
        queue.resume();
        assert_eq!(queue.take().await.0, cluster("b"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_is_not_taken_before_its_time() {
        let queue = queue();
        let later =
            Job { not_before: Some(Instant::now() + Duration::from_millis(20)), ..Job::new(Task::Delete) };
        queue.push(cluster("late"), later).await;
        assert!(queue.take().now_or_never().is_none());
        queue.push(cluster("x"), Job::new(Task::Delete)).await;
        assert_eq!(queue.take().await.0, cluster("x"));
    }

    #[tokio::test]
    async fn a_full_kind_makes_its_source_wait_and_no_other() {
        let queue = queue();
        for number in 0..ROOM {
            queue.push(cluster(&number.to_string()), Job::new(Task::Delete)).await;
        }
        assert!(queue.push(cluster("one more"), Job::new(Task::Delete)).now_or_never().is_none());
        queue.push(cluster("1"), Job::new(Task::Delete)).await;
        queue.push(key(MirroredKind::Secret, "s"), Job::new(Task::Delete)).await;
    }
}
