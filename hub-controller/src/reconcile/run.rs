//! Watches, queues, and the fence before every reconcile.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{BoxStream, StreamExt as _};
use kube::ResourceExt as _;
use kube::runtime::Controller;
use kube::runtime::controller::{self, Action, Config};
use kube::runtime::watcher;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::adoption::{Adopted, adopt, delete_intended_namespaces};
use super::error::ReconcileError;
use super::pass::{Context, Object, Pass};
use super::requeue::{KindHandle, Requeue};
use super::watch_backoff::WatchBackoff;
use crate::api::controller::{
    Cluster, Project, ServiceExportConfig, SliceConfig, SliceQoSConfig, VpnKeyRotation,
};
use crate::api::kind::HubKind;
use crate::api::worker::{WorkerServiceImport, WorkerSliceConfig, WorkerSliceGateway};
use crate::error::chain;

/// A kind with its reconciler.
pub trait Reconciled: Object {
    /// The kind.
    const KIND: HubKind;

    /// Brings the world closer to what the object wants. It has its finalizer.
    fn reconcile(&self, pass: &Pass) -> impl Future<Output = Result<Action, ReconcileError>> + Send;
}

/// The controllers of all nine kinds, not yet running.
pub struct Controllers {
    running: Vec<BoxFuture<'static, ()>>,
    requeue: Requeue,
}

impl Controllers {
    /// Over `context`, until `stop`.
    pub fn new(context: &Arc<Context>, stop: &CancellationToken) -> Self {
        let mut new = Building { context, stop, kinds: Vec::new(), running: Vec::new() };
        new.add::<Project>();
        new.add::<Cluster>();
        new.add::<SliceQoSConfig>();
        new.add::<SliceConfig>();
        new.add::<ServiceExportConfig>();
        new.add::<VpnKeyRotation>();
        new.add::<WorkerSliceConfig>();
        new.add::<WorkerSliceGateway>();
        new.add::<WorkerServiceImport>();
        let (intents, asked) = mpsc::unbounded_channel();
        let mut running = new.running;
        running.push(namespaces(Arc::clone(context), asked, stop.clone()).boxed());
        Self { running, requeue: Requeue::new(new.kinds, intents) }
    }

    /// Asks for everything.
    pub fn requeue(&self) -> Requeue {
        self.requeue.clone()
    }

    /// Runs until `stop`; reconciles under way are finished.
    pub async fn run(self) {
        futures::future::join_all(self.running).await;
    }
}

struct Building<'a> {
    context: &'a Arc<Context>,
    stop: &'a CancellationToken,
    kinds: Vec<KindHandle>,
    running: Vec<BoxFuture<'static, ()>>,
}

impl Building<'_> {
    fn add<K: Reconciled>(&mut self) {
        let controller = Controller::new(self.context.watched::<K>(), watcher::Config::default());
        let (trigger, asked) = mpsc::unbounded_channel();
        let (ready, counted) = (controller.store(), controller.store());
        self.kinds.push(KindHandle {
            kind: K::KIND,
            trigger,
            ready: Box::new(move || {
                let store = ready.clone();
                async move {
                    // A cache that is gone belongs to a process that is ending.
                    let _filled = store.wait_until_ready().await;
                }
                .boxed()
            }),
            count: Box::new(move || counted.state().len()),
        });
        self.running.push(drive(controller, asked, Arc::clone(self.context), self.stop.clone()).boxed());
    }
}

fn triggers(mut asked: UnboundedReceiver<()>) -> BoxStream<'static, ()> {
    futures::stream::poll_fn(move |context| asked.poll_recv(context)).boxed()
}

async fn drive<K: Reconciled>(
    controller: Controller<K>,
    asked: UnboundedReceiver<()>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    let config = Config::default().concurrency(context.settings.concurrency);
    controller
        .with_config(config)
        .trigger_backoff(WatchBackoff::default())
        .reconcile_all_on(triggers(asked))
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(
            |object: Arc<K>, context: Arc<Context>| async move { fenced(object.as_ref(), &context).await },
            |object: Arc<K>, error: &ReconcileError, context: Arc<Context>| {
                after_error(object.as_ref(), error, &context)
            },
            context,
        )
        .for_each(|result| async move {
            match result {
                Err(error @ controller::Error::QueueError(_)) => {
                    warn!(kind = %K::KIND, error = %chain(&error), "a watch reported an error and is started again");
                }
                Err(error) => debug!(kind = %K::KIND, error = %chain(&error), "a reconcile ended with an error"),
                Ok(_) => {}
            }
        })
        .await;
}

fn name<K: Reconciled>(object: &K) -> String {
    format!("{} {}/{}", K::KIND, object.namespace().unwrap_or_default(), object.name_any())
}

/// A hub that does not lead drops the request (design record, decision 4): it is asked again when the fence opens.
async fn fenced<K: Reconciled>(object: &K, context: &Arc<Context>) -> Result<Action, ReconcileError> {
    let kind = K::KIND.name();
    let permit = match context.fence.permit_for(K::KIND) {
        Ok(permit) => permit,
        Err(why) => {
            info!(object = name(object), why = %why, "skipping reconcile");
            context.metrics.reconciled(kind, "skipped");
            return Ok(Action::await_change());
        }
    };
    let pass = context.pass(permit);
    let work = async {
        match adopt(&pass, K::KIND, object).await? {
            Adopted::Reconcile(object) => object.reconcile(&pass).await,
            Adopted::Wait => Ok(Action::await_change()),
        }
    };
    let deadline = context.settings.reconcile_deadline;
    let finished = tokio::time::timeout(deadline, work).await;
    let result = finished.unwrap_or(Err(ReconcileError::TimedOut(deadline)));
    context.metrics.reconciled(kind, if result.is_ok() { "success" } else { "error" });
    if result.is_ok() {
        context.paces.succeeded(&name(object));
    }
    result
}

fn after_error<K: Reconciled>(object: &K, error: &ReconcileError, context: &Context) -> Action {
    if let ReconcileError::Fenced(why) = error {
        info!(object = name(object), why = %why, "skipping reconcile: the rest is dropped");
        return Action::await_change();
    }
    let delay = context.paces.failed(&name(object));
    if error.is_conflict() {
        debug!(object = name(object), "another writer was faster");
    } else {
        warn!(object = name(object), error = %chain(error), "reconcile failed");
    }
    Action::requeue(delay)
}

/// Deletes namespaces whose deletion a dead Active had begun, whenever the fence opens.
async fn namespaces(context: Arc<Context>, mut asked: UnboundedReceiver<()>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            asked = asked.recv() => if asked.is_none() { return },
        }
        while let Ok(permit) = context.fence.permit() {
            match delete_intended_namespaces(&context.pass(permit)).await {
                Ok(()) => break,
                Err(error) => warn!(error = %chain(&error), "namespaces that are to be deleted are not yet"),
            }
            tokio::time::sleep(context.paces.failed("Namespaces")).await;
        }
        context.paces.succeeded("Namespaces");
    }
}
