//! The controllers: watches, queues, and what happens after an error.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::{self, Action, Config};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{Controller, WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::cluster;
use super::context::{Context, Settings};
use super::error::{ReconcileError, chain};
use super::events::Events;
use super::ledger::Ledger;
use super::locks::LayoutLocks;
use super::node;
use super::pace::Paces;
use super::roles::WatchedRoles;
use super::watch_backoff::WatchBackoff;
use super::watched_nodes::WatchedNodes;
use crate::api::naming;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::assignment::drains;
use crate::guard::LayoutGuard;
use crate::metrics::Metrics;

/// What the controllers of all scopes share.
#[derive(Clone)]
pub struct Shared {
    /// Kubernetes client.
    pub client: Client,
    /// HTTP client of all admin clients.
    pub http: crate::garage::Http,
    /// Settings.
    pub settings: Settings,
    /// Metrics.
    pub metrics: Arc<Metrics>,
}

/// Runs both controllers for one namespace, or for all, until `stop`. Reconciles under way are finished.
pub async fn run_scope(shared: Shared, namespace: Option<String>, stop: CancellationToken) {
    let api = Scope { client: shared.client.clone(), namespace };
    let config = Config::default().concurrency(shared.settings.concurrency);
    let clusters = controller_of(api.of::<GarageCluster>());
    let nodes = controller_of(api.of::<GarageNode>());
    let context = Arc::new(Context {
        events: Events::new(shared.client.clone()),
        client: shared.client,
        http: shared.http,
        settings: shared.settings,
        guard: LayoutGuard::new(Arc::new(WatchedRoles(clusters.store())), Arc::clone(&shared.metrics)),
        metrics: shared.metrics,
        locks: LayoutLocks::default(),
        ledger: Ledger::default(),
        paces: Paces::default(),
        clusters: clusters.store(),
        nodes: WatchedNodes::new(nodes.store()),
    });
    let of_cluster = watch_cluster(clusters, &api).with_config(config.clone());
    let of_nodes = watch_nodes(nodes, &api, context.nodes.clone()).with_config(config);
    let watched = context.nodes.clone();
    tokio::join!(
        async { stop.run_until_cancelled(watched.fill()).await },
        drive("GarageCluster", of_cluster, cluster::reconcile, Arc::clone(&context), stop.clone()),
        drive("GarageNode", of_nodes, node::reconcile, context, stop.clone()),
    );
}

/// Where the watches look.
struct Scope {
    client: Client,
    namespace: Option<String>,
}

impl Scope {
    fn of<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}

/// A controller that keeps its objects without `managedFields`: nothing here reads them, and they are most of an object.
fn controller_of<K>(api: Api<K>) -> Controller<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let events =
        watcher(api, watcher::Config::default()).modify(|object: &mut K| object.managed_fields_mut().clear());
    Controller::for_stream(events.reflect(writer).applied_objects(), store)
}

fn ours() -> watcher::Config {
    watcher::Config::default().labels(&format!("{}={}", naming::MANAGED_BY_LABEL, naming::MANAGED_BY))
}

fn watch_cluster(controller: Controller<GarageCluster>, api: &Scope) -> Controller<GarageCluster> {
    controller
        .owns(api.of::<Service>(), ours())
        .owns(api.of::<ConfigMap>(), ours())
        .owns(api.of::<PodDisruptionBudget>(), ours())
        .watches(api.of::<GarageNode>(), watcher::Config::default(), |node: GarageNode| {
            node.namespace().map(|namespace| ObjectRef::new(&node.spec.cluster_ref.name).within(&namespace))
        })
        .watches(api.of::<StatefulSet>(), ours(), |set: StatefulSet| labelled(&set, naming::CLUSTER_LABEL))
        .watches(api.of::<Pod>(), ours(), |pod: Pod| labelled(&pod, naming::CLUSTER_LABEL))
}

fn watch_nodes(
    controller: Controller<GarageNode>,
    api: &Scope,
    nodes: WatchedNodes,
) -> Controller<GarageNode> {
    let seen = SeenGenerations::default();
    controller
        .owns(api.of::<StatefulSet>(), ours())
        .watches(api.of::<Pod>(), ours(), |pod: Pod| labelled(&pod, naming::NODE_LABEL))
        .watches(api.of::<GarageCluster>(), watcher::Config::default(), move |cluster: GarageCluster| {
            if seen.is_new(&cluster) { nodes.of(&cluster) } else { Vec::new() }
        })
}

/// The object that a label of another one names.
fn labelled<K>(object: &impl ResourceExt, label: &str) -> Option<ObjectRef<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Some(ObjectRef::new(object.labels().get(label)?).within(&object.namespace()?))
}

/// What the nodes of each cluster were last woken for: its spec, the layout or a migration has changed, or it goes. Any other
/// status write of a cluster is no news to them.
#[derive(Default)]
struct SeenGenerations(Mutex<BTreeMap<String, News>>);

/// Generation, layout version, phase of a factor migration, whether the cluster drains, and the resource version of one
/// that is being deleted: its last event, by which its nodes become orphans, differs from the one before in nothing else.
type News = (i64, i64, Option<String>, bool, Option<String>);

impl SeenGenerations {
    fn is_new(&self, cluster: &GarageCluster) -> bool {
        let status = cluster.status.as_ref();
        let layout = status.and_then(|status| status.layout_version).unwrap_or(0);
        let migration = status.and_then(|status| status.factor_migration.as_ref());
        let phase = migration.map(|migration| migration.phase.clone());
        let ending = cluster.metadata.deletion_timestamp.as_ref().and_then(|_| cluster.resource_version());
        let news = (cluster.metadata.generation.unwrap_or(0), layout, phase, drains(cluster), ending);
        let key = cluster.uid().unwrap_or_default();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(key, news.clone()) != Some(news)
    }
}

async fn drive<K, F>(
    kind: &'static str,
    controller: Controller<K>,
    reconcile: impl Fn(Arc<K>, Arc<Context>) -> F + Copy,
    context: Arc<Context>,
    stop: CancellationToken,
) where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static,
    F: Future<Output = Result<Action, ReconcileError>> + Send + 'static,
{
    let observed = move |object: Arc<K>, context: Arc<Context>| {
        let key = pace_key(kind, object.as_ref());
        let work = reconcile(object, Arc::clone(&context));
        async move {
            let deadline = context.settings.reconcile_deadline;
            let finished = tokio::time::timeout(deadline, work).await;
            let result = finished.unwrap_or(Err(ReconcileError::TimedOut(deadline)));
            context.metrics.reconciled(kind, if result.is_ok() { "success" } else { "error" });
            if result.is_ok() {
                context.paces.succeeded(&key);
            }
            result
        }
    };
    controller
        .trigger_backoff(WatchBackoff::default())
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(
            observed,
            move |object, error, context| after_error(kind, object.as_ref(), error, &context),
            context,
        )
        .for_each(|result| async move {
            match result {
                Err(error @ controller::Error::QueueError(_)) => {
                    warn!(kind, error = %chain(&error), "a watch reported an error and is started again");
                }
                Err(error) => debug!(kind, error = %chain(&error), "a reconcile ended with an error"),
                Ok(_) => {}
            }
        })
        .await;
}

fn pace_key<K: Resource<DynamicType = ()>>(kind: &str, object: &K) -> String {
    format!("{kind}/{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

fn after_error<K: Resource<DynamicType = ()>>(
    kind: &'static str,
    object: &K,
    error: &ReconcileError,
    context: &Context,
) -> Action {
    let key = pace_key(kind, object);
    if error.is_conflict() {
        debug!(object = %key, "another writer was faster");
        return Action::requeue(context.settings.cadence.pending / 4);
    }
    if let Some(wait) = error.throttled() {
        debug!(object = %key, wait = wait.as_secs(), "the API server has too much to do");
        return Action::requeue(context.paces.jittered(wait.max(context.settings.cadence.pending), &key));
    }
    let failures = context.paces.failed(&key);
    warn!(object = %key, failures, error = %chain(error), "reconcile failed");
    Action::requeue(context.paces.jittered(context.settings.cadence.after_failures(failures), &key))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::SeenGenerations;
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};

    fn cluster(resource_version: &str) -> GarageCluster {
        let mut cluster = GarageCluster::new("garage", GarageClusterSpec::default());
        cluster.metadata.uid = Some("c".to_owned());
        cluster.metadata.resource_version = Some(resource_version.to_owned());
        cluster
    }

    #[test]
    fn another_status_write_of_a_cluster_is_no_news_to_its_nodes() {
        let seen = SeenGenerations::default();
        assert!(seen.is_new(&cluster("1")));
        assert!(!seen.is_new(&cluster("2")));
    }

    #[test]
    fn every_event_of_a_cluster_that_goes_is_news_to_its_nodes_the_last_one_too() {
        let seen = SeenGenerations::default();
        let going = |resource_version| {
            let mut cluster = cluster(resource_version);
            cluster.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
            cluster
        };
        assert!(seen.is_new(&going("1")));
        assert!(seen.is_new(&going("2")));
        assert!(!seen.is_new(&going("2")));
    }
}
