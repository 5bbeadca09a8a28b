//! Installing an operator's manifests.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, TypeMeta};
use kube::core::GroupVersionKind;
use kube::runtime::conditions::is_crd_established;
use kube::{Api, Client, ResourceExt as _};

use crate::failure::NotReached;
use crate::site::Site;
use crate::wait;

/// Owner of the fields that the harness applies.
const FIELD_MANAGER: &str = "onewriter";

/// Manifests could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A file is no YAML of Kubernetes objects.
    #[error("the manifest `{name}` is no YAML of Kubernetes objects")]
    Malformed {
        /// Name of the file.
        name: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The API server refused an object.
    #[error("{site}: cannot apply {kind} {object} of the manifest `{name}`")]
    Refused {
        /// Where.
        site: Site,
        /// Name of the file.
        name: String,
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        object: String,
        /// Why.
        source: Box<kube::Error>,
    },
    /// A `CustomResourceDefinition` is not served.
    #[error(transparent)]
    NotEstablished(Box<NotReached>),
}

/// A file of manifests: its name and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Name of the file.
    pub name: String,
    /// YAML, one or more documents.
    pub text: String,
}

/// An object of a manifest with what the API server calls it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    file: String,
    types: TypeMeta,
    object: DynamicObject,
}

/// Reads the objects of `manifests`: Namespaces first, then their definitions, then the rest as it stands.
pub fn parse(manifests: &[Manifest]) -> Result<Vec<Parsed>, ManifestError> {
    let mut objects = Vec::new();
    for manifest in manifests {
        let malformed = |source: Box<dyn std::error::Error + Send + Sync>| ManifestError::Malformed {
            name: manifest.name.clone(),
            source,
        };
        let documents: Vec<DynamicObject> =
            serde_saphyr::from_multiple(&manifest.text).map_err(|error| malformed(error.into()))?;
        for object in documents {
            let types = object
                .types
                .clone()
                .ok_or_else(|| malformed("an object has no apiVersion and kind".into()))?;
            objects.push(Parsed { file: manifest.name.clone(), types, object });
        }
    }
    objects.sort_by_key(|parsed| match parsed.types.kind.as_str() {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        _ => 2,
    });
    Ok(objects)
}

/// Applies `objects` at `site`, in order, and waits until every definition among them is served.
pub async fn install(
    site: Site,
    client: &Client,
    objects: &[Parsed],
    limit: Duration,
) -> Result<(), ManifestError> {
    for parsed in objects {
        apply(site, client, parsed).await?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for parsed in objects.iter().filter(|parsed| parsed.types.kind == "CustomResourceDefinition") {
        let name = parsed.object.name_any();
        let awaited = format!("CustomResourceDefinition {name} that is served");
        let established = |definition: Option<&CustomResourceDefinition>| {
            let served = kube::runtime::wait::Condition::matches_object(&is_crd_established(), definition);
            if served { Ok(()) } else { Err("it is not established".to_owned()) }
        };
        let served = wait::until(site, definitions.clone(), &name, awaited, limit, established).await;
        served.map_err(|missed| ManifestError::NotEstablished(Box::new(missed)))?;
    }
    Ok(())
}

async fn apply(site: Site, client: &Client, parsed: &Parsed) -> Result<(), ManifestError> {
    let api = api(client, parsed);
    let name = parsed.object.name_any();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(&name, &params, &Patch::Apply(&parsed.object)).await;
    applied.map(drop).map_err(|source| ManifestError::Refused {
        site,
        name: parsed.file.clone(),
        kind: parsed.types.kind.clone(),
        object: name,
        source: Box::new(source),
    })
}

fn api(client: &Client, parsed: &Parsed) -> Api<DynamicObject> {
    let (group, version) =
        parsed.types.api_version.split_once('/').unwrap_or(("", parsed.types.api_version.as_str()));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &parsed.types.kind));
    match parsed.object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> Manifest {
        Manifest { name: "m.yaml".into(), text: text.into() }
    }

    #[test]
    fn namespaces_and_definitions_come_before_what_needs_them() {
        let role =
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: n}\n";
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n";
        let objects = parse(&[manifest(&format!("{role}---\n{namespace}"))]).unwrap();
        let kinds: Vec<&str> = objects.iter().map(|parsed| parsed.types.kind.as_str()).collect();
        assert_eq!(kinds, ["Namespace", "Role"]);
    }

    #[test]
    fn what_is_no_object_is_refused_with_the_files_name() {
        let error = parse(&[manifest("metadata: {name: x}\n")]).unwrap_err();
        assert!(error.to_string().contains("m.yaml"), "{error}");
    }
}
