//! Server-side apply with one field manager, only where something differs.

use std::fmt::Debug;

use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::ReconcileError;
use crate::api::naming::FIELD_MANAGER;
use crate::decision::drift::covers;

/// An object this operator can apply.
pub trait Applied:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl<K> Applied for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
{
}

fn what<K: Applied>(verb: &str, object: &K) -> String {
    format!("{verb} {} {}/{}", K::kind(&()), object.namespace().unwrap_or_default(), object.name_any())
}

fn value<K: Applied>(object: &K) -> Result<Value, ReconcileError> {
    serde_json::to_value(object)
        .map_err(|source| ReconcileError::Json { what: what("encode", object), source })
}

/// An API for the namespace of this object.
pub fn api_of<K: Applied>(client: &Client, object: &K) -> Api<K> {
    Api::namespaced(client.clone(), &object.namespace().unwrap_or_default())
}

/// The object as the API server has it now; `None` when it is gone.
///
/// The watch cache may not show this operator's own last write yet: a status made from it would undo that write.
pub async fn fresh<K: Applied>(client: &Client, object: &K) -> Result<Option<K>, ReconcileError> {
    let found = api_of(client, object).get_opt(&object.name_any()).await;
    found.map_err(ReconcileError::kube(what("read", object)))
}

/// Makes the live object hold what `wanted` states; writes only if it does not. Answers the live object.
pub async fn ensure<K: Applied>(client: &Client, wanted: &K) -> Result<K, ReconcileError> {
    let api = api_of(client, wanted);
    let name = wanted.name_any();
    let live = api.get_opt(&name).await.map_err(ReconcileError::kube(what("read", wanted)))?;
    if let Some(live) = live
        && covers(&value(&live)?, &value(wanted)?)
    {
        return Ok(live);
    }
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(&name, &params, &Patch::Apply(wanted))
        .await
        .map_err(ReconcileError::kube(what("apply", wanted)))
}

/// Deletes an object in the background; one that is gone already is fine.
pub async fn delete<K: Applied>(client: &Client, object: &K) -> Result<(), ReconcileError> {
    match api_of(client, object).delete(&object.name_any(), &DeleteParams::background()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(ReconcileError::kube(what("delete", object))(error)),
    }
}

/// Writes a status. The caller compares: this always writes.
pub async fn write_status<K: Applied, S: Serialize>(
    client: &Client,
    object: &K,
    status: &S,
) -> Result<(), ReconcileError> {
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": object.name_any() },
        "status": status,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api_of(client, object)
        .patch_status(&object.name_any(), &params, &Patch::Apply(patch))
        .await
        .map(drop)
        .map_err(ReconcileError::kube(what("write the status of", object)))
}

/// Adds a finalizer if it is missing; answers whether it was.
pub async fn add_finalizer<K: Applied>(
    client: &Client,
    object: &K,
    finalizer: &str,
) -> Result<bool, ReconcileError> {
    if object.finalizers().iter().any(|found| found == finalizer) {
        return Ok(false);
    }
    let finalizers = [object.finalizers(), &[finalizer.to_owned()]].concat();
    write_finalizers(client, object, &finalizers).await?;
    Ok(true)
}

/// Removes a finalizer; the object may be gone afterwards.
pub async fn remove_finalizer<K: Applied>(
    client: &Client,
    object: &K,
    finalizer: &str,
) -> Result<(), ReconcileError> {
    let finalizers: Vec<String> =
        object.finalizers().iter().filter(|found| *found != finalizer).cloned().collect();
    if finalizers.len() == object.finalizers().len() {
        return Ok(());
    }
    match write_finalizers(client, object, &finalizers).await {
        Err(ReconcileError::Kube { source, .. }) if matches!(source.as_ref(), kube::Error::Api(status) if status.is_not_found()) => {
            Ok(())
        }
        result => result,
    }
}

/// The resource version makes a concurrent edit a conflict instead of a loss.
async fn write_finalizers<K: Applied>(
    client: &Client,
    object: &K,
    finalizers: &[String],
) -> Result<(), ReconcileError> {
    let patch = json!({
        "metadata": { "finalizers": finalizers, "resourceVersion": object.resource_version() },
    });
    api_of(client, object)
        .patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map(drop)
        .map_err(ReconcileError::kube(what("write the finalizers of", object)))
}

/// Merges a patch into an object.
pub async fn merge<K: Applied>(client: &Client, object: &K, patch: &Value) -> Result<(), ReconcileError> {
    api_of(client, object)
        .patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map(drop)
        .map_err(ReconcileError::kube(what("patch", object)))
}

/// Removes annotations.
pub async fn remove_annotations<K: Applied>(
    client: &Client,
    object: &K,
    keys: &[&str],
) -> Result<(), ReconcileError> {
    let removed: serde_json::Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
    let patch = json!({ "metadata": { "annotations": removed } });
    api_of(client, object)
        .patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map(drop)
        .map_err(ReconcileError::kube(what("remove annotations of", object)))
}
