//! The `CustomResourceDefinitions`, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;
use thiserror::Error;

use super::controller::{Cluster, Project, ServiceExportConfig, SliceConfig, SliceQoSConfig, VpnKeyRotation};
use super::worker::{WorkerServiceImport, WorkerSliceConfig, WorkerSliceGateway};

/// A definition that could not be printed.
#[derive(Debug, Error)]
pub enum CrdError {
    /// The definition is not representable as JSON.
    #[error("a CustomResourceDefinition could not be turned into JSON")]
    Json(#[source] serde_json::Error),
    /// The definition is not representable as YAML.
    #[error("a CustomResourceDefinition could not be printed as YAML")]
    Yaml(#[source] serde_saphyr::ser::Error),
}

/// One definition with the name of the file it is checked in as.
#[derive(Clone, Debug)]
pub struct CrdFile {
    /// File name in `deploy/crd/`.
    pub name: String,
    /// Its YAML.
    pub yaml: String,
}

/// The definitions of all nine kinds.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        Project::crd(),
        Cluster::crd(),
        SliceConfig::crd(),
        ServiceExportConfig::crd(),
        SliceQoSConfig::crd(),
        VpnKeyRotation::crd(),
        WorkerSliceConfig::crd(),
        WorkerSliceGateway::crd(),
        WorkerServiceImport::crd(),
    ]
}

/// All definitions as the files in `deploy/crd/`.
pub fn files() -> Result<Vec<CrdFile>, CrdError> {
    definitions().iter().map(file).collect()
}

fn file(definition: &CustomResourceDefinition) -> Result<CrdFile, CrdError> {
    let mut value = serde_json::to_value(definition).map_err(CrdError::Json)?;
    simplify(&mut value);
    let yaml = serde_saphyr::to_string(&value).map_err(CrdError::Yaml)?;
    let name = format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural);
    Ok(CrdFile { name, yaml })
}

/// Makes optional fields non-nullable, so that the API server prunes an explicit `null`; and drops the formats of
/// unsigned integers, which Kubernetes does not know.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
            }
            if fields.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
                fields.remove("format");
            }
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}
