//! The `CustomResourceDefinitions`, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;
use thiserror::Error;

use super::{v1beta1, v1beta2};

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
    /// File name in `config/crd/`.
    pub name: String,
    /// Its YAML.
    pub yaml: String,
}

/// All definitions of this operator.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![v1beta2::GarageCluster::crd(), v1beta1::GarageNode::crd()]
}

/// All definitions as the files in `config/crd/`.
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

/// Makes optional fields non-nullable, so that the API server prunes an explicit `null` and `has()` in a CEL rule
/// means what it says; and drops the formats of unsigned integers, which Kubernetes does not know.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
                if let Some(Value::Array(variants)) = fields.get_mut("enum") {
                    variants.retain(|variant| !variant.is_null());
                }
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
