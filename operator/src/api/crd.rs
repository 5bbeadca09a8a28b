//! The `CustomResourceDefinitions`, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion, ServiceReference,
    WebhookClientConfig, WebhookConversion,
};
use kube::CustomResourceExt;
use serde_json::Value;
use thiserror::Error;

use super::{GROUP, v1beta1, v1beta2};
use crate::webhook::handlers::CONVERT;
use crate::webhook::injection::SERVICE;

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

/// Whether the older version of `GarageCluster` is served, which takes the conversion webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// It is in the definition, but not served.
    Off,
    /// It is served and converted.
    Webhook,
}

/// All definitions of this operator.
pub fn definitions(conversion: Conversion) -> Vec<CustomResourceDefinition> {
    let mut clusters = v1beta2::GarageCluster::crd();
    add_older_version(&mut clusters, conversion);
    vec![clusters, v1beta1::GarageNode::crd()]
}

/// v1beta1 of `GarageCluster` has the fields of v1beta2: a missing one would be lost in a round trip.
fn add_older_version(definition: &mut CustomResourceDefinition, conversion: Conversion) {
    let served = conversion == Conversion::Webhook;
    let older: Vec<CustomResourceDefinitionVersion> = definition
        .spec
        .versions
        .iter()
        .map(|version| CustomResourceDefinitionVersion {
            name: "v1beta1".to_owned(),
            served,
            storage: false,
            deprecated: Some(true),
            deprecation_warning: Some(format!("{GROUP}/v1beta1 GarageCluster is deprecated; use v1beta2")),
            ..version.clone()
        })
        .collect();
    definition.spec.versions.extend(older);
    definition.spec.conversion = served.then(|| CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            conversion_review_versions: vec!["v1".to_owned()],
            client_config: Some(WebhookClientConfig {
                service: Some(ServiceReference {
                    name: SERVICE.to_owned(),
                    namespace: "garage-operator-system".to_owned(),
                    path: Some(CONVERT.to_owned()),
                    port: Some(443),
                }),
                ..WebhookClientConfig::default()
            }),
        }),
    });
}

/// All definitions as the files in `deploy/crd/`, or those in `deploy/webhook/` with the conversion.
pub fn files(conversion: Conversion) -> Result<Vec<CrdFile>, CrdError> {
    definitions(conversion).iter().map(file).collect()
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
