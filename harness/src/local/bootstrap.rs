//! Objects that are there before any controller runs.
//!
//! The garbage collector learns of new kinds only every 30 s. Definitions of custom resources that are there
//! before it starts are known to it at once, so that what a run's first cell deletes is collected at once, too.

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams, TypeMeta},
    runtime::{conditions, wait::await_condition},
};
use serde_json::{Value, json};

use super::{error::LocalError, identity::AGENT_USER};
use crate::site::Site;

/// A definition that the API server does not serve within this time never will.
const ESTABLISHED_DEADLINE: Duration = Duration::from_secs(30);

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Creates `objects`, namespaces first and then all others at once, and waits until the definitions among them are
/// served.
pub(crate) async fn create(client: &Client, site: Site, objects: &[Value]) -> Result<(), LocalError> {
    let (namespaces, others): (Vec<_>, Vec<_>) =
        objects.iter().partition(|object| object["kind"] == "Namespace");
    let made = async |object: &Value| {
        create_one(client, object).await.map_err(failed(site, object))?;
        if object["kind"] == "CustomResourceDefinition" {
            established(client, object).await.map_err(failed(site, object))?;
        }
        Ok(())
    };
    try_join_all(namespaces.into_iter().map(made)).await?;
    try_join_all(others.into_iter().map(made)).await.map(drop)
}

/// What the pod agent may do.
pub(super) fn agent_access() -> [Value; 2] {
    let role = "onewriter-agent";
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": [""], "resources": resources, "verbs": verbs});
    [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": role},
            "rules": [
                rule(&["pods"], &["get", "list", "watch", "delete"]),
                rule(&["pods/status"], &["patch"]),
                rule(&["pods/binding"], &["create"]),
                rule(&["nodes"], &["get", "list", "watch", "create"]),
                rule(&["secrets", "configmaps", "services"], &["get", "list", "watch"]),
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": AGENT_USER}],
        }),
    ]
}

fn failed(site: Site, object: &Value) -> impl FnOnce(Cause) -> LocalError {
    let text = |value: &Value| value.as_str().unwrap_or("(unnamed)").to_owned();
    let object = format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]));
    move |source| LocalError::Bootstrap { site, object, source }
}

async fn create_one(client: &Client, object: &Value) -> Result<(), Cause> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let TypeMeta { api_version, kind } = object.types.clone().ok_or("it has no apiVersion and kind")?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

async fn established(client: &Client, object: &Value) -> Result<(), Cause> {
    let name = object["metadata"]["name"].as_str().ok_or("it has no name")?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let established = await_condition(definitions, name, conditions::is_crd_established());
    tokio::time::timeout(ESTABLISHED_DEADLINE, established).await??;
    Ok(())
}
