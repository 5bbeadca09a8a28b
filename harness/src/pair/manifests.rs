//! An operator's manifests.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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

/// Manifests that somebody names cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file or folder.
    #[error("cannot read the manifests {}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What Kustomize would build.
    #[error("{} is for Kustomize; build it first: kubectl kustomize {} > operator.yaml", .path.display(), .path.display())]
    Kustomization {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing.
    #[error("the folder {} has no .yaml, .yml or .json file", .path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// Reads the file at `path`, or every `.yaml`, `.yml` and `.json` file in the folder there, by name.
pub fn read(path: &Path) -> Result<Vec<Manifest>, ReadError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ReadError::Read { path, source }
    };
    let one = |file: &Path| {
        let text = fs::read_to_string(file).map_err(failed(file))?;
        Ok(Manifest { name: file.display().to_string(), text })
    };
    if !path.is_dir() {
        return Ok(vec![one(path)?]);
    }
    let entries = fs::read_dir(path).map_err(failed(path))?;
    let files: Result<BTreeSet<PathBuf>, io::Error> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let files = files.map_err(failed(path))?;
    if files.iter().any(|file| file.file_stem().is_some_and(|stem| stem == "kustomization")) {
        return Err(ReadError::Kustomization { path: path.to_owned() });
    }
    let manifest = |file: &&PathBuf| {
        file.extension().is_some_and(|kind| kind == "yaml" || kind == "yml" || kind == "json")
    };
    let manifests: Vec<Manifest> =
        files.iter().filter(manifest).map(|file| one(file)).collect::<Result<_, _>>()?;
    if manifests.is_empty() { Err(ReadError::Empty { path: path.to_owned() }) } else { Ok(manifests) }
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
    fn a_folder_is_read_by_name_and_what_kustomize_would_build_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(matches!(error, ReadError::Empty { .. }), "{error}");
        for (name, text) in [("b.yml", "b"), ("a.yaml", "a"), ("notes.txt", "no")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let texts: Vec<String> =
            read(folder.path()).unwrap().into_iter().map(|manifest| manifest.text).collect();
        assert_eq!(texts, ["a", "b"]);
        fs::write(folder.path().join("kustomization.yaml"), "").unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("kubectl kustomize"), "{error}");
    }

    #[test]
    fn what_is_no_object_is_refused_with_the_files_name() {
        let error = parse(&[manifest("metadata: {name: x}\n")]).unwrap_err();
        assert!(error.to_string().contains("m.yaml"), "{error}");
    }
}
