//! Reconciling everything anew: the fence drops what it refuses, so that somebody has to ask again when it opens (design
//! record, decision 5).

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use tokio::sync::mpsc::UnboundedSender;
use tracing::info;

use crate::api::kind::HubKind;

/// One kind: its cache, and how to ask for everything in it.
pub struct KindHandle {
    /// The kind.
    pub kind: HubKind,
    /// Asks for everything.
    pub trigger: UnboundedSender<()>,
    /// Ends when the cache has been filled.
    pub ready: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
    /// How many objects are in the cache.
    pub count: Box<dyn Fn() -> usize + Send + Sync>,
}

/// Asks for everything. Clones are the same one.
#[derive(Clone)]
pub struct Requeue {
    kinds: Arc<Vec<KindHandle>>,
    intents: UnboundedSender<()>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requeued {
    /// Objects in the caches.
    pub objects: usize,
    /// Kinds whose cache was not filled in time. Their objects are reconciled when it is: filling it is news of each.
    pub incomplete: Vec<&'static str>,
}

impl Requeue {
    /// Over these kinds; `intents` asks for the deletions of namespaces that a dead Active had begun.
    pub fn new(kinds: Vec<KindHandle>, intents: UnboundedSender<()>) -> Self {
        Self { kinds: Arc::new(kinds), intents }
    }

    /// Asks for every object of every kind; waits for caches that are not filled yet, `limit` at most.
    pub async fn all(&self, limit: Duration) -> Requeued {
        let each = self.kinds.iter().map(|handle| async move {
            let filled = tokio::time::timeout(limit, (handle.ready)()).await.is_ok();
            // A queue that is gone belongs to a process that is ending.
            let _asked = handle.trigger.send(());
            (handle.kind.name(), (handle.count)(), filled)
        });
        let asked = join_all(each).await;
        let _asked = self.intents.send(());
        let requeued = Requeued {
            objects: asked.iter().map(|(_, count, _)| count).sum(),
            incomplete: asked.iter().filter(|(.., filled)| !filled).map(|(name, ..)| *name).collect(),
        };
        info!(objects = requeued.objects, incomplete = ?requeued.incomplete, "everything is reconciled anew");
        requeued
    }
}
