//! An operator's manifests.

use serde_json::Value;

use crate::failure::BoxError;

/// A file is no YAML of Kubernetes objects.
#[derive(Debug, thiserror::Error)]
#[error("the manifest `{name}` is no YAML of Kubernetes objects")]
pub struct ManifestError {
    /// Name of the file.
    pub name: String,
    /// Why.
    #[source]
    pub source: BoxError,
}

/// A file of manifests: its name and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Name of the file.
    pub name: String,
    /// YAML, one or more documents.
    pub text: String,
}

/// Reads the objects of `manifests`: Namespaces first, then definitions of custom resources, then the rest as it
/// stands.
pub fn parse(manifests: &[Manifest]) -> Result<Vec<Value>, ManifestError> {
    let mut objects = Vec::new();
    for manifest in manifests {
        let refused = |source: BoxError| ManifestError { name: manifest.name.clone(), source };
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&manifest.text).map_err(|error| refused(error.into()))?;
        for object in documents {
            if !object["apiVersion"].is_string() || !object["kind"].is_string() {
                return Err(refused("an object has no apiVersion and kind".into()));
            }
            objects.push(object);
        }
    }
    objects.sort_by_key(|object| match object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("CustomResourceDefinition") => 1,
        _ => 2,
    });
    Ok(objects)
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
        let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["Namespace", "Role"]);
    }

    #[test]
    fn what_is_no_object_is_refused_with_the_files_name() {
        let error = parse(&[manifest("metadata: {name: x}\n")]).unwrap_err();
        assert!(error.to_string().contains("m.yaml"), "{error}");
    }
}
