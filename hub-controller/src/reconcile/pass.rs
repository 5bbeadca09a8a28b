//! One pass of a reconciler: what it may read, and, with its permit, write.
//!
//! The client is private to this module. Reads need nothing; every write takes the permit of the pass, which is checked
//! again at the write.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, Namespace, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ClusterResourceScope, NamespaceResourceScope, Status};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::ReconcileError;
use super::pace::Paces;
use crate::api::naming;
use crate::error::status_of;
use crate::fence::{Fence, WritePermit};
use crate::metrics::Metrics;

/// A namespaced object that reconcilers read or write.
pub trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Settings of the reconcilers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespace of the hub, with its Projects.
    pub hub_namespace: String,
    /// Prefix of project namespaces.
    pub project_namespace_prefix: String,
    /// Prefix of accounts.
    pub rbac_resource_prefix: String,
    /// URL under which workers reach this hub.
    pub endpoint: String,
    /// How long a `Cluster` that is deleted waits for its worker.
    pub deregister_timeout: Duration,
    /// How long a worker object that is deleted waits for finalizers of others.
    pub worker_finalizer_timeout: Duration,
    /// How long a day of a rotation interval lasts.
    pub rotation_day: Duration,
    /// Longest that one reconcile may take.
    pub reconcile_deadline: Duration,
    /// Reconciles of one kind at the same time.
    pub concurrency: u16,
}

/// What every reconcile can use.
pub struct Context {
    client: Client,
    /// Settings.
    pub settings: Settings,
    /// The write fence.
    pub fence: Fence,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// How soon what failed is tried again.
    pub paces: Paces,
}

impl Context {
    /// Reads and writes through `client`.
    pub fn new(client: Client, settings: Settings, fence: Fence, metrics: Arc<Metrics>) -> Self {
        Self { client, settings, fence, metrics, paces: Paces::default() }
    }

    /// A pass under this permit.
    pub fn pass(self: &Arc<Self>, permit: WritePermit) -> Pass {
        Pass { context: Arc::clone(self), permit }
    }

    /// The API that watches all objects of a kind.
    pub(super) fn watched<K: Object>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }
}

/// One pass of a reconciler.
#[derive(Clone)]
pub struct Pass {
    context: Arc<Context>,
    permit: WritePermit,
}

fn what<K: Resource<DynamicType = ()>>(verb: &str, object: &K) -> String {
    format!("{verb} {} {}/{}", K::kind(&()), object.namespace().unwrap_or_default(), object.name_any())
}

impl Pass {
    /// Settings.
    pub fn settings(&self) -> &Settings {
        &self.context.settings
    }

    fn api<K: Object>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.context.client.clone(), namespace)
    }

    fn own<K: Object>(&self, object: &K) -> Api<K> {
        self.api(&object.namespace().unwrap_or_default())
    }

    fn cluster_wide<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope>,
    {
        Api::all(self.context.client.clone())
    }

    /// The object of this name; `None` when there is none.
    pub async fn get<K: Object>(&self, namespace: &str, name: &str) -> Result<Option<K>, ReconcileError> {
        let found = self.api::<K>(namespace).get_opt(name).await;
        found.map_err(ReconcileError::kube(format!("read {} {namespace}/{name}", K::kind(&()))))
    }

    /// Objects with these labels; all where there are none.
    pub async fn list<K: Object>(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<K>, ReconcileError> {
        let params = ListParams::default().labels(&naming::selector(labels));
        let listed = self.api::<K>(namespace).list(&params).await;
        let listed =
            listed.map_err(ReconcileError::kube(format!("list {} in {namespace}", K::plural(&()))))?;
        Ok(listed.items)
    }

    /// The namespace of this name.
    pub async fn namespace(&self, name: &str) -> Result<Option<Namespace>, ReconcileError> {
        let found = self.cluster_wide::<Namespace>().get_opt(name).await;
        found.map_err(ReconcileError::kube(format!("read Namespace {name}")))
    }

    /// Namespaces with these labels.
    pub async fn namespaces(
        &self,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Namespace>, ReconcileError> {
        let params = ListParams::default().labels(&naming::selector(labels));
        let listed = self.cluster_wide::<Namespace>().list(&params).await;
        Ok(listed.map_err(ReconcileError::kube("list Namespaces"))?.items)
    }

    /// Whether this is a project namespace: reconcilers act in no other.
    pub async fn is_project_namespace(&self, name: &str) -> Result<bool, ReconcileError> {
        let found = self.namespace(name).await?;
        Ok(found.is_some_and(|found| naming::is_project_namespace(name, found.labels())))
    }

    async fn write<T>(
        &self,
        what: String,
        write: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ReconcileError> {
        self.permit.write(write).await?.map_err(ReconcileError::kube(what))
    }

    /// Makes an object; answers whether it was not there before.
    pub async fn create<K: Object>(&self, object: &K) -> Result<bool, ReconcileError> {
        let api = self.own(object);
        let write = async { created(api.create(&PostParams::default(), object).await) };
        self.write(what("create", object), write).await
    }

    /// Makes a namespace; answers whether it was not there before.
    pub async fn create_namespace(&self, namespace: &Namespace) -> Result<bool, ReconcileError> {
        let api = self.cluster_wide::<Namespace>();
        let write = async { created(api.create(&PostParams::default(), namespace).await) };
        self.write(format!("create Namespace {}", namespace.name_any()), write).await
    }

    /// Merges a patch into an object; answers what it is then.
    pub async fn merge<K: Object>(&self, object: &K, patch: &Value) -> Result<K, ReconcileError> {
        let (api, name) = (self.own(object), object.name_any());
        let write = async { api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await };
        self.write(what("change", object), write).await
    }

    /// Merges a patch into a namespace.
    pub async fn merge_namespace(&self, name: &str, patch: &Value) -> Result<(), ReconcileError> {
        let api = self.cluster_wide::<Namespace>();
        let write = async { api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await };
        self.write(format!("change Namespace {name}"), write).await.map(drop)
    }

    /// Merges a patch into the status of an object.
    pub async fn merge_status<K: Object>(&self, object: &K, status: &Value) -> Result<(), ReconcileError> {
        let (api, name, patch) = (self.own(object), object.name_any(), json!({ "status": status }));
        let write = async { api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await };
        self.write(what("change the status of", object), write).await.map(drop)
    }

    /// Deletes an object; one that is gone is fine.
    pub async fn delete<K: Object>(&self, object: &K) -> Result<(), ReconcileError> {
        if object.meta().deletion_timestamp.is_some() {
            return Ok(());
        }
        self.delete_named::<K>(&object.namespace().unwrap_or_default(), &object.name_any()).await
    }

    /// Deletes the object of this name; one that is not there is fine.
    pub async fn delete_named<K: Object>(&self, namespace: &str, name: &str) -> Result<(), ReconcileError> {
        let api = self.api::<K>(namespace);
        let write = async { deleted(api.delete(name, &DeleteParams::background()).await.map(drop)) };
        self.write(format!("delete {} {namespace}/{name}", K::kind(&())), write).await
    }

    /// Deletes a namespace; one that is not there is fine.
    pub async fn delete_namespace(&self, name: &str) -> Result<(), ReconcileError> {
        let api = self.cluster_wide::<Namespace>();
        let write = async { deleted(api.delete(name, &DeleteParams::background()).await.map(drop)) };
        self.write(format!("delete Namespace {name}"), write).await
    }

    /// Gives the finalizers of an object these values. Its version makes a concurrent change a conflict.
    pub async fn set_finalizers<K: Object>(
        &self,
        object: &K,
        finalizers: &[String],
    ) -> Result<(), ReconcileError> {
        let patch =
            json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.resource_version()}});
        let (api, name) = (self.own(object), object.name_any());
        let write = async {
            deleted(api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop))
        };
        self.write(what("change the finalizers of", object), write).await
    }

    /// Makes another object reconcile, by an annotation; not again for the same reason.
    pub async fn poke<K: Object>(&self, object: &K, reason: &str) -> Result<(), ReconcileError> {
        if object.annotations().get(naming::POKE_ANNOTATION).is_some_and(|before| before == reason) {
            return Ok(());
        }
        self.merge(object, &json!({"metadata": {"annotations": {naming::POKE_ANNOTATION: reason}}}))
            .await
            .map(drop)
    }

    /// Warns about an object, once for each of its generations.
    pub async fn warn<K: Object>(
        &self,
        object: &K,
        reason: &str,
        message: &str,
    ) -> Result<(), ReconcileError> {
        let namespace = object.namespace().unwrap_or_default();
        let generation = object.meta().generation.unwrap_or(0);
        let name = format!("{}.{}.{generation}", object.name_any(), reason.to_lowercase());
        let now = Time(Timestamp::now());
        let event = Event {
            metadata: ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() },
            involved_object: ObjectReference { uid: object.uid(), ..object.object_ref(&()) },
            type_: Some("Warning".to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            count: Some(1),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            source: Some(EventSource { component: Some("hub-controller".to_owned()), host: None }),
            ..Event::default()
        };
        self.create(&event).await.map(drop)
    }
}

fn created<T>(answer: Result<T, kube::Error>) -> Result<bool, kube::Error> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if status_of(&error).is_some_and(Status::is_already_exists) => Ok(false),
        Err(error) => Err(error),
    }
}

fn deleted(answer: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match answer {
        Err(error) if status_of(&error).is_some_and(Status::is_not_found) => Ok(()),
        answer => answer,
    }
}
