//! What every object gets before its own reconciler sees it: a finalizer, and the end of what a mirror has left on it.

use kube::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::{Value, json};
use tracing::info;

use super::error::ReconcileError;
use super::pass::{Object, Pass};
use crate::api::kind::HubKind;
use crate::api::naming::{self, DELETE_INTENT_ANNOTATION, MIRRORED_ANNOTATION};

/// What is left to do after adoption.
pub enum Adopted<K> {
    /// Reconcile this.
    Reconcile(K),
    /// Nothing now; the object is news again soon.
    Wait,
}

/// Gives the object its finalizer and takes the mirror's marks off. Whose deletion a dead Active had begun is deleted.
pub async fn adopt<K: Object>(pass: &Pass, kind: HubKind, object: &K) -> Result<Adopted<K>, ReconcileError> {
    if object.meta().deletion_timestamp.is_some() {
        return Ok(Adopted::Reconcile(object.clone()));
    }
    let annotations = object.annotations();
    let intent = annotations.contains_key(DELETE_INTENT_ANNOTATION);
    let marked = annotations.contains_key(MIRRORED_ANNOTATION) || intent;
    let missing = kind.finalizer().filter(|name| !object.finalizers().iter().any(|found| found == name));
    if !marked && missing.is_none() {
        return Ok(Adopted::Reconcile(object.clone()));
    }
    let finalizers: Vec<&str> = object.finalizers().iter().map(String::as_str).chain(missing).collect();
    let unmark: Value = if marked {
        json!({MIRRORED_ANNOTATION: Value::Null, DELETE_INTENT_ANNOTATION: Value::Null})
    } else {
        json!({})
    };
    let patch = json!({"metadata": {
        "finalizers": finalizers, "annotations": unmark, "resourceVersion": object.resource_version(),
    }});
    // The intent goes last: a crash between the two leaves it.
    if intent {
        let mut first = patch.clone();
        first["metadata"]["annotations"] = json!({});
        let adopted = pass.merge(object, &first).await?;
        info!(object = %object.name_any(), %kind, "its deletion had begun on the former Active; deleting it");
        pass.delete(&adopted).await?;
        return Ok(Adopted::Wait);
    }
    pass.merge(object, &patch).await.map(Adopted::Reconcile)
}

/// Takes the hub's own finalizer off; the object goes unless others have theirs on it.
pub async fn let_go<K: Object>(pass: &Pass, kind: HubKind, object: &K) -> Result<Action, ReconcileError> {
    let left: Vec<String> = object
        .finalizers()
        .iter()
        .filter(|found| Some(found.as_str()) != kind.finalizer())
        .cloned()
        .collect();
    if left.len() < object.finalizers().len() {
        pass.set_finalizers(object, &left).await?;
    }
    Ok(Action::await_change())
}

/// Deletes project namespaces whose deletion a dead Active had begun.
pub async fn delete_intended_namespaces(pass: &Pass) -> Result<(), ReconcileError> {
    let owned = [(naming::OWNER_LABEL.to_owned(), naming::OWNER.to_owned())].into();
    for namespace in pass.namespaces(&owned).await? {
        if namespace.annotations().contains_key(DELETE_INTENT_ANNOTATION)
            && namespace.metadata.deletion_timestamp.is_none()
        {
            info!(
                namespace = namespace.name_any(),
                "its deletion had begun on the former Active; deleting it"
            );
            pass.delete_namespace(&namespace.name_any()).await?;
        }
    }
    Ok(())
}
