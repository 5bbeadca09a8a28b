//! The state mirror: copies of the Active's state, on a Standby (design record, decision 6).
//!
//! | module | what it does |
//! |---|---|
//! | `source` | lists and watches the Active, one task for each kind |
//! | `queue` | what is to be written, at most one write per object at a time |
//! | `known` | what the copies look like that are there |
//! | `writer` | writes one copy |
//!
//! Everything that is written rests on the version of the copy that was seen last: a write that was overtaken is refused
//! by the API server, also one that arrives late.

mod known;
mod queue;
mod source;
mod writer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use self::known::Known;
use self::queue::{Job, Queue, Task};
use self::source::Sources;
use self::writer::Writer;
use super::remote::Way;
use crate::decision::copy::Key;
use crate::decision_log::{DecisionLog, Entry};
use crate::error::chain;
use crate::metrics::Metrics;

/// What a mirror is started from.
pub struct Parts {
    /// Client of the own API server, as the mirror.
    pub client: Client,
    /// The way to the Active.
    pub way: Way,
    /// Which credential of the way leads to another cluster than the own one.
    pub verified: watch::Receiver<Option<u64>>,
    /// Namespace of the hub, with its Projects.
    pub hub_namespace: String,
    /// How often everything is listed anew.
    pub resync: Duration,
    /// Writes at the same time.
    pub writers: u16,
    /// The decision log.
    pub log: DecisionLog,
    /// Metrics.
    pub metrics: Arc<Metrics>,
}

/// A running mirror. Clones are the same one.
#[derive(Clone)]
pub struct Mirror {
    queue: Arc<Queue>,
    stop: CancellationToken,
    tasks: TaskTracker,
    log: DecisionLog,
}

/// The mirror is paused and no write of it is under way: the condition under which the fence may be opened (design record,
/// decision 5). Only [`Mirror::stopped`] makes one.
pub struct MirrorStopped(Option<Mirror>);

impl MirrorStopped {
    /// No mirror has run in this process.
    pub fn never_started() -> Self {
        Self(None)
    }

    /// Ends the mirror for good.
    pub(crate) fn end(self) {
        if let Some(mirror) = self.0 {
            mirror.end();
        }
    }

    /// No mirror.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        Self(None)
    }
}

impl Mirror {
    /// Starts it.
    pub fn start(parts: Parts) -> Self {
        let queue = Arc::new(Queue::new(Arc::clone(&parts.metrics)));
        let (stop, tasks, known) = (CancellationToken::new(), TaskTracker::new(), Arc::new(Known::default()));
        let mirror = Self { queue: Arc::clone(&queue), stop, tasks, log: parts.log.clone() };
        let writer = Writer::new(parts.client.clone(), Arc::clone(&known), Arc::clone(&parts.metrics));
        for _ in 0..parts.writers {
            let work = work(Arc::clone(&queue), writer.clone(), Arc::clone(&parts.metrics));
            let stop = mirror.stop.clone();
            mirror.tasks.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = work => {}
                }
            });
        }
        let sources = Sources::new(parts, queue, known);
        for task in sources.tasks(&mirror.stop) {
            mirror.tasks.spawn(task);
        }
        mirror.tell("started");
        mirror
    }

    /// From now on no write begins.
    pub fn pause(&self) {
        self.queue.pause();
        self.tell("paused");
    }

    /// Waits until no write is under way. Cancel safe.
    pub async fn stopped(&self) -> MirrorStopped {
        self.queue.idle().await;
        self.tell("stopped");
        MirrorStopped(Some(self.clone()))
    }

    /// Takes the mirror's word for it that it has stopped, as only a defect does.
    pub(super) fn presumed_stopped(&self) -> MirrorStopped {
        let without_end = MirrorStopped(None);
        self.tell("stopped");
        without_end
    }

    /// Writes go on.
    pub fn resume(&self) {
        self.queue.resume();
        self.tell("resumed");
    }

    /// Ends it for good.
    pub fn end(&self) {
        self.stop.cancel();
        self.tell("ended");
    }

    /// Copies that wait to be written, and writes that are under way.
    pub fn backlog(&self) -> (usize, usize) {
        self.queue.backlog()
    }

    fn tell(&self, state: &'static str) {
        let (pending, in_flight) = self.queue.backlog();
        info!(state, pending, in_flight, "the mirror");
        self.log.record(&Entry::Mirror { state, in_flight });
    }
}

/// One writer: takes what is next, writes it, and puts back what failed.
async fn work(queue: Arc<Queue>, writer: Writer, metrics: Arc<Metrics>) {
    loop {
        let (key, job) = queue.take().await;
        let result = match &job.task {
            Task::Write(copy) => writer.write(copy).await,
            Task::Delete => writer.delete(&key).await,
        };
        match result {
            Ok(()) => {
                metrics.synced(job.since.elapsed());
                queue.finish(&key);
            }
            Err(error) => {
                complain(&key, &job, &error);
                let delay = delay(job.attempts, error.is_lasting());
                queue.retry(
                    &key,
                    Job { attempts: job.attempts + 1, not_before: Some(Instant::now() + delay), ..job },
                );
            }
        }
    }
}

/// Tenths of a second at first, ten seconds at most; at once that long where only a person can help.
fn delay(attempts: u32, lasting: bool) -> Duration {
    let most = Duration::from_secs(10);
    if lasting {
        return most;
    }
    Duration::from_millis(100).saturating_mul(2_u32.saturating_pow(attempts)).min(most)
}

/// The first failures of a copy are ordinary: what it needs may be under way.
fn complain(key: &Key, job: &Job, error: &writer::ApplyError) {
    let (attempts, error_text) = (job.attempts + 1, chain(error));
    if error.is_lasting() && job.attempts == 0 || attempts % 10 == 5 {
        warn!(%key, attempts, error = error_text, "a copy is not up to date");
    } else {
        debug!(%key, attempts, error = error_text, "a copy is not up to date yet");
    }
}
