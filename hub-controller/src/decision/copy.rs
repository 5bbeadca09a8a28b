//! What the copy of an object looks like (design record, decision 6).
//!
//! A copy has the name, labels, annotations and content of its original, and nothing that belongs to the original's API
//! server: no uid, no resourceVersion, no owner references (their uids mean nothing here, and the garbage collector
//! would delete the copy), no finalizers (whoever removes them is fenced, and the copy would stay Terminating).

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use kube::ResourceExt;
use kube::api::{DynamicObject, ObjectMeta};
use serde_json::{Map, Value};

use crate::api::kind::MirroredKind;
use crate::api::naming::{
    DELETE_INTENT_ANNOTATION, MIRRORED_ANNOTATION, TOKEN_ACCOUNT_UID_ANNOTATION, TOKEN_SECRET_TYPE,
};
use crate::mutant::{self, Mutant};

/// Which object: the same on both hubs. Ordered as copies are made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its kind.
    pub kind: MirroredKind,
    /// Its namespace; empty for those that are in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// A key.
    pub fn new(kind: MirroredKind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of this object.
    pub fn of(kind: MirroredKind, object: &DynamicObject) -> Self {
        Self { kind, namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// How a copy is kept up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Changes of the original are written to it.
    Updated,
    /// It is made once and then left alone: the Standby's token controller fills it, and a write would make that token
    /// another one.
    CreateOnly,
}

/// What a copy is to look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// Which object it copies.
    pub key: Key,
    /// Uid of the original.
    pub original: String,
    /// The object without its status.
    pub object: DynamicObject,
    /// The status; `None` where it is not mirrored.
    pub status: Option<Value>,
    /// How it is kept.
    pub upkeep: Upkeep,
}

/// The copy of this original.
pub fn copy(kind: MirroredKind, original: &DynamicObject) -> Copy {
    let shell = is_token(kind, original);
    let object = DynamicObject {
        types: Some(kube::api::TypeMeta {
            api_version: kind.resource().api_version,
            kind: kind.name().to_owned(),
        }),
        metadata: metadata(original, shell),
        data: data(kind, original, shell),
    };
    Copy {
        key: Key::of(kind, original),
        original: original.uid().unwrap_or_default(),
        object,
        status: if kind.has_status() { status(original) } else { None },
        upkeep: if shell && !mutant::is(Mutant::ShellUpdated) { Upkeep::CreateOnly } else { Upkeep::Updated },
    }
}

fn is_token(kind: MirroredKind, object: &DynamicObject) -> bool {
    kind == MirroredKind::Secret && object.data["type"] == TOKEN_SECRET_TYPE
}

fn metadata(original: &DynamicObject, shell: bool) -> ObjectMeta {
    let mut annotations = original.annotations().clone();
    if shell && !mutant::is(Mutant::UidAnnotationKept) {
        annotations.remove(TOKEN_ACCOUNT_UID_ANNOTATION);
    }
    annotations.remove(DELETE_INTENT_ANNOTATION);
    annotations.insert(MIRRORED_ANNOTATION.to_owned(), original.uid().unwrap_or_default());
    if let Some(since) = &original.metadata.deletion_timestamp {
        annotations.insert(DELETE_INTENT_ANNOTATION.to_owned(), since.0.to_string());
    }
    ObjectMeta {
        name: original.metadata.name.clone(),
        namespace: original.metadata.namespace.clone(),
        labels: original.metadata.labels.clone(),
        annotations: Some(annotations),
        finalizers: original.metadata.finalizers.clone().filter(|_| mutant::is(Mutant::FinalizersKept)),
        owner_references: original
            .metadata
            .owner_references
            .clone()
            .filter(|_| mutant::is(Mutant::OwnersKept)),
        ..ObjectMeta::default()
    }
}

/// Everything but the metadata and the status. A namespace has nothing else that could be copied; of a token Secret only
/// the type is, for its data are this hub's own.
fn data(kind: MirroredKind, original: &DynamicObject, shell: bool) -> Value {
    let mut fields = original.data.as_object().cloned().unwrap_or_default();
    fields.remove("status");
    if kind == MirroredKind::Namespace {
        fields.clear();
    }
    if shell && !mutant::is(Mutant::TokenCopied) {
        fields.retain(|field, _| field == "type");
    }
    Value::Object(fields)
}

/// The status without what a hub says about itself; `None` when there is none.
fn status(original: &DynamicObject) -> Option<Value> {
    let mut status = original.data.get("status")?.as_object()?.clone();
    if !mutant::is(Mutant::DeclarationMirrored) {
        status.remove("activeController");
    }
    Some(Value::Object(status))
}

/// Whether the mirror made this object, and of which original.
pub fn original_of(copy: &DynamicObject) -> Option<&str> {
    copy.annotations().get(MIRRORED_ANNOTATION).map(String::as_str)
}

/// What tells two states of a copy apart: everything that the mirror writes, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// Of the object without its status.
    pub object: u64,
    /// Of the status.
    pub status: u64,
}

impl Copy {
    /// The print that the API server's object has once this copy is written.
    pub fn print(&self) -> Print {
        print(self.key.kind, &self.object, self.status.as_ref())
    }
}

/// The print of a copy as the API server has it.
pub fn print_of(kind: MirroredKind, live: &DynamicObject) -> Print {
    print(kind, live, live.data.get("status"))
}

fn print(kind: MirroredKind, object: &DynamicObject, status: Option<&Value>) -> Print {
    let meta = &object.metadata;
    let mut fields = object.data.as_object().cloned().unwrap_or_default();
    fields.remove("status");
    fields.retain(|_, value| !value.is_null());
    if kind == MirroredKind::Namespace {
        fields.clear();
    }
    let strange =
        (meta.finalizers.clone().unwrap_or_default(), meta.owner_references.as_ref().map_or(0, Vec::len));
    let labels = meta.labels.clone().unwrap_or_default();
    let annotations = meta.annotations.clone().unwrap_or_default();
    let status = match status.filter(|_| kind.has_status()) {
        Some(Value::Object(fields)) => {
            let mut fields = fields.clone();
            if !mutant::is(Mutant::DeclarationMirrored) {
                fields.remove("activeController");
            }
            fields
        }
        _ => Map::new(),
    };
    Print { object: hash(&(labels, annotations, fields, strange)), status: hash(&status) }
}

/// Maps are ordered, so that equal values have equal text.
fn hash(value: &impl serde::Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(value).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{Upkeep, copy, print_of};
    use crate::api::kind::{HubKind, MirroredKind};

    const CLUSTER: MirroredKind = MirroredKind::Hub(HubKind::Cluster);

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn cluster() -> DynamicObject {
        object(json!({
            "apiVersion": "controller.kubeslice.io/v1alpha1", "kind": "Cluster",
            "metadata": {
                "name": "c1", "namespace": "kubeslice-a", "uid": "u-1", "resourceVersion": "77", "generation": 3,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["controller.kubeslice.io/cluster-finalizer"],
                "labels": {"kubeslice-resource-owner": "kubeslice-controller"},
                "annotations": {"updatedTimestamp": "x"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u-0"}],
                "managedFields": [{"manager": "m"}],
            },
            "spec": {"nodeIPs": ["1.2.3.4"]},
            "status": {"secretName": "s", "activeController": {"identity": "hub-a"}},
        }))
    }

    fn token() -> DynamicObject {
        object(json!({
            "metadata": {
                "name": "kubeslice-worker-c1", "namespace": "kubeslice-a", "uid": "u-2",
                "annotations": {
                    "kubernetes.io/service-account.name": "kubeslice-worker-c1",
                    "kubernetes.io/service-account.uid": "u-9",
                },
            },
            "type": "kubernetes.io/service-account-token",
            "data": {"token": "c2VjcmV0", "controllerEndpoint": "aHR0cHM="},
        }))
    }

    #[test]
    fn a_copy_has_nothing_of_its_originals_api_server() {
        let copy = copy(CLUSTER, &cluster());
        insta::assert_json_snapshot!((&copy.object, &copy.status, &copy.original));
    }

    #[test]
    fn a_token_secret_is_a_shell_and_made_once() {
        let copy = copy(MirroredKind::Secret, &token());
        assert_eq!(copy.upkeep, Upkeep::CreateOnly);
        assert_eq!(copy.object.data, json!({"type": "kubernetes.io/service-account-token"}));
        let annotations: Vec<&String> = copy.object.metadata.annotations.as_ref().unwrap().keys().collect();
        assert_eq!(
            annotations,
            ["controller.kubeslice.io/mirrored-from", "kubernetes.io/service-account.name"]
        );
    }

    #[test]
    fn a_certificate_is_copied_with_its_data() {
        let secret = object(json!({
            "metadata": {"name": "red-a-b", "namespace": "kubeslice-a", "uid": "u"}, "type": "Opaque", "data": {"k": "dg=="},
        }));
        let copy = copy(MirroredKind::Secret, &secret);
        assert_eq!((copy.upkeep, &copy.object.data["data"]["k"]), (Upkeep::Updated, &json!("dg==")));
    }

    #[test]
    fn an_original_that_is_being_deleted_leaves_its_intent() {
        let mut original = cluster();
        original.metadata.deletion_timestamp = serde_json::from_value(json!("2026-02-03T04:05:06Z")).unwrap();
        let copy = copy(CLUSTER, &original);
        let annotations = copy.object.metadata.annotations.unwrap();
        assert_eq!(annotations["controller.kubeslice.io/delete-requested"], "2026-02-03T04:05:06Z");
    }

    #[test]
    fn a_namespace_is_its_labels() {
        let namespace = object(json!({
            "metadata": {"name": "kubeslice-a", "uid": "u"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        }));
        let copy = copy(MirroredKind::Namespace, &namespace);
        assert_eq!((copy.object.data, copy.status), (json!({}), None));
    }

    /// What the API server makes of a copy that was just written.
    fn stored(copy: &super::Copy) -> DynamicObject {
        let mut live = copy.object.clone();
        live.metadata.uid = Some("local".into());
        live.metadata.resource_version = Some("1".into());
        if let Some(status) = &copy.status {
            live.data["status"] = status.clone();
        }
        live
    }

    #[test]
    fn a_copy_as_written_has_the_print_it_should_have_and_a_changed_one_has_not() {
        let copy = copy(CLUSTER, &cluster());
        let live = stored(&copy);
        assert_eq!(copy.print(), print_of(CLUSTER, &live));
        let mut changed = live.clone();
        changed.data["spec"] = json!({});
        assert_ne!(copy.print().object, print_of(CLUSTER, &changed).object);
        assert_eq!(copy.print().status, print_of(CLUSTER, &changed).status);
        let mut finalized = live.clone();
        finalized.metadata.finalizers = Some(vec!["f".into()]);
        assert_ne!(copy.print().object, print_of(CLUSTER, &finalized).object);
        let mut reported = live.clone();
        reported.data["status"] = json!({"secretName": "t"});
        assert_ne!(copy.print().status, print_of(CLUSTER, &reported).status);
        let mut declared = live;
        declared.data["status"]["activeController"] = json!({"identity": "hub-b"});
        assert_eq!(copy.print(), print_of(CLUSTER, &declared));
    }

    proptest! {
        /// Law: whatever an original has, its copy carries no finalizer, owner, uid or version of the other hub.
        #[test]
        fn no_copy_carries_what_is_the_originals_alone(
            finalizers in prop::collection::vec("[a-z]{1,8}", 0..4),
            owners in prop::collection::vec("[a-z]{1,8}", 0..3),
            deleting in any::<bool>(),
            place in 0_usize..14,
        ) {
            let mut original = cluster();
            original.metadata.finalizers = Some(finalizers);
            original.metadata.owner_references = Some(owners.iter().map(|uid| serde_json::from_value(json!({
                "apiVersion": "v1", "kind": "K", "name": "n", "uid": uid,
            })).unwrap()).collect());
            if deleting {
                original.metadata.deletion_timestamp = serde_json::from_value(json!("2026-02-03T04:05:06Z")).unwrap();
            }
            let copy = copy(MirroredKind::all()[place], &original);
            let meta = copy.object.metadata;
            prop_assert!(meta.finalizers.is_none() && meta.owner_references.is_none() && meta.uid.is_none());
            prop_assert!(meta.resource_version.is_none() && meta.deletion_timestamp.is_none());
            prop_assert!(!copy.status.unwrap_or_default().to_string().contains("hub-a"));
        }
    }
}
