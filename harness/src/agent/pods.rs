//! One pod, from binding to its end.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::{
        Controller,
        controller::{Action, Error as ControllerError},
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    container, node,
    references::{self, Content, Contents, Kind, Reference},
    running::Running,
    runtime::{PodName, RuntimeError},
    status::{self, Waiting},
};
use crate::{failure::chain, site::Site, wait::WatchBackoff};

/// When the API server or the runtime is asked again after it failed.
const AGAIN: Duration = Duration::from_secs(1);

/// Why a pod could not be brought further. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum PodError {
    /// The API server.
    #[error("cannot {action}")]
    Api {
        /// What was tried.
        action: &'static str,
        /// Why.
        source: kube::Error,
    },
    /// The runtime.
    #[error("the runtime failed")]
    Runtime(#[from] RuntimeError),
}

/// What the pods of one site are handled with.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) site: Site,
    pub(super) client: SiteClient,
    pub(super) running: Running,
}

/// A client, which has no words for itself.
#[derive(Clone)]
pub(super) struct SiteClient(pub(super) Client);

impl std::fmt::Debug for SiteClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SiteClient")
    }
}

/// Handles all pods of a site until `shutdown`.
pub(super) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let client = context.client.0.clone();
    let every = watcher::Config::default();
    let controller = Controller::new(Api::<Pod>::all(client.clone()), every.clone());
    let (secrets, config_maps) = (controller.store(), controller.store());
    let site = context.site;
    controller
        .watches(Api::<Secret>::all(client.clone()), every.clone(), move |secret| {
            waiting_for(&secrets, &secret, Kind::Secret)
        })
        .watches(Api::<ConfigMap>::all(client), every, move |config_map| {
            waiting_for(&config_maps, &config_map, Kind::ConfigMap)
        })
        .trigger_backoff(WatchBackoff::default())
        .graceful_shutdown_on(shutdown.cancelled_owned())
        .run(reconcile, |_, _, _| Action::requeue(AGAIN), context)
        .for_each(|result| async move {
            match result {
                // The pod went between its event and its turn.
                Ok(_) | Err(ControllerError::ObjectNotFound(_)) => {}
                Err(error) => tracing::warn!(%site, error = chain(&error), "a pod cannot be handled"),
            }
        })
        .await;
}

/// Pods that wait for an object which has just come or changed.
fn waiting_for<K: Resource>(pods: &Store<Pod>, object: &K, kind: Kind) -> Vec<ObjectRef<Pod>> {
    let reference = Reference { kind, name: object.meta().name.clone().unwrap_or_default() };
    let waits = |pod: &Pod| {
        pod.metadata.namespace == object.meta().namespace
            && !status::is_running(pod)
            && references::of(pod).contains(&reference)
    };
    pods.state_filter(waits).iter().map(|pod| ObjectRef::from_obj(&**pod)).collect()
}

async fn reconcile(pod: Arc<Pod>, context: Arc<Context>) -> Result<Action, PodError> {
    if pod.metadata.deletion_timestamp.is_some() {
        end(&pod, &context).await?;
    } else if !status::is_finished(&pod) && context.may_have(&pod).await? {
        begin(&pod, &context).await?;
    }
    Ok(Action::await_change())
}

/// Starts the pod's process, unless it runs already, and reports what became of it.
async fn begin(pod: &Pod, context: &Context) -> Result<(), PodError> {
    let name = PodName::of(context.site, pod);
    if status::is_running(pod) && context.running.has(&name, &pod.uid().unwrap_or_default()).await {
        return Ok(());
    }
    let contents = context.fetch(pod, references::of(pod)).await?;
    let start = match container::resolve(context.site, pod, &contents) {
        Ok(start) => start,
        Err(missing) => {
            // No error: the watch on what is missing brings the pod back.
            let message = missing.to_string();
            return context
                .report_waiting(pod, Waiting { reason: "CreateContainerConfigError", message })
                .await;
        }
    };
    match context.running.start(start).await {
        Ok(address) => context.report(pod, status::running(pod, address, Timestamp::now())).await,
        Err(error) => {
            let message = chain(&error);
            context.report_waiting(pod, Waiting { reason: "CreateContainerError", message }).await?;
            Err(error.into())
        }
    }
}

/// Ends the pod's process, then the pod, as a kubelet confirms that all containers have ended.
async fn end(pod: &Pod, context: &Context) -> Result<(), PodError> {
    let uid = pod.uid().unwrap_or_default();
    context.running.stop(&PodName::of(context.site, pod), &uid).await?;
    let exactly = Preconditions { uid: Some(uid), ..Preconditions::default() };
    let now = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() }.grace_period(0);
    tolerate(context.pods(pod).delete(&pod.name_any(), &now).await, "delete the pod")
}

impl Context {
    fn pods(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.client.0.clone(), &pod.namespace().unwrap_or_default())
    }

    /// Whether the API server has no such pod any more.
    pub(super) async fn is_gone(&self, name: &PodName, uid: &str) -> Result<bool, RuntimeError> {
        let pods: Api<Pod> = Api::namespaced(self.client.0.clone(), &name.namespace);
        match pods.get_metadata_opt(&name.pod).await {
            Ok(found) => Ok(found.and_then(|pod| pod.metadata.uid).is_none_or(|found| found != uid)),
            Err(error) => Err(RuntimeError { action: "look for", pod: name.clone(), source: error.into() }),
        }
    }

    /// Whether the pod is this agent's. One without a node becomes so, unless something holds it back.
    async fn may_have(&self, pod: &Pod) -> Result<bool, PodError> {
        let own = node::name(self.site);
        let spec = pod.spec.as_ref();
        if let Some(node) = spec.and_then(|spec| spec.node_name.as_ref()) {
            return Ok(*node == own);
        }
        if spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty()) {
            return Ok(false);
        }
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod.name_any(), "uid": pod.uid()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": own},
        });
        let (pods, name, parameters) = (self.pods(pod), pod.name_any(), PostParams::default());
        let bound = pods.create_subresource::<_, Value>("binding", &name, &parameters, &binding);
        match bound.await {
            Ok(_) => Ok(true),
            // It is gone, or bound already: its next event tells.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
            Err(source) => Err(PodError::Api { action: "bind the pod", source }),
        }
    }

    async fn fetch(&self, pod: &Pod, wanted: BTreeSet<Reference>) -> Result<Contents, PodError> {
        let namespace = pod.namespace().unwrap_or_default();
        let mut contents = Contents::new();
        for reference in wanted {
            if let Some(content) = self.read(&namespace, &reference).await? {
                contents.insert(reference, content);
            }
        }
        Ok(contents)
    }

    async fn read(&self, namespace: &str, reference: &Reference) -> Result<Option<Content>, PodError> {
        let failed = |source| PodError::Api { action: "read what the pod refers to", source };
        let client = self.client.0.clone();
        match reference.kind {
            Kind::Secret => {
                let found = Api::<Secret>::namespaced(client, namespace).get_opt(&reference.name).await;
                Ok(found.map_err(failed)?.map(of_secret))
            }
            Kind::ConfigMap => {
                let found = Api::<ConfigMap>::namespaced(client, namespace).get_opt(&reference.name).await;
                Ok(found.map_err(failed)?.map(of_config_map))
            }
        }
    }

    async fn report_waiting(&self, pod: &Pod, waiting: Waiting) -> Result<(), PodError> {
        match status::waiting(pod, &waiting, Timestamp::now()) {
            Some(patch) => self.report(pod, patch).await,
            None => Ok(()),
        }
    }

    async fn report(&self, pod: &Pod, patch: Value) -> Result<(), PodError> {
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.pods(pod).patch_status(&pod.name_any(), &parameters, &patch).await;
        tolerate(patched, "report the pod's status")
    }
}

/// A pod that is gone, or has a successor of the same name, needs nothing any more.
fn tolerate<T>(result: kube::Result<T>, action: &'static str) -> Result<(), PodError> {
    match result {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        result => result.map(drop).map_err(|source| PodError::Api { action, source }),
    }
}

fn of_secret(secret: Secret) -> Content {
    secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect()
}

fn of_config_map(config_map: ConfigMap) -> Content {
    let text = config_map.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into_bytes()));
    let binary = config_map.binary_data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
    text.chain(binary).collect()
}
