//! The operator under test as a Deployment.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::error::KindError;
use crate::failure::BoxError;
use crate::pair::lease;
use crate::pair::operator::WAITING;
use crate::wait::{self, WatchBackoff};

/// How long an operator may take until it says that it is ready.
const READY: Duration = Duration::from_mins(2);
/// How long its pods may take to go.
const GONE: Duration = Duration::from_secs(30);

/// The Service through which the harness reads metrics.
const METRICS: &str = "onewriter-metrics";

/// What is changed of the Deployment that was given.
#[derive(Debug, Clone)]
pub struct Changes {
    /// The operator's image; none for the one that its manifests name.
    pub image: Option<String>,
    /// The image of Garage where no spec names one.
    pub garage: String,
    /// Further arguments.
    pub arguments: Vec<String>,
    /// Whether it is the reference operator with its webhooks, which its Deployment leaves out.
    pub webhooks: bool,
}

/// Where the Deployment of an operator is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The operator of a site.
#[derive(Debug, Clone)]
pub struct DeployedOperator {
    cluster: Cluster,
    place: Place,
    /// What selects its pods.
    pub selector: String,
}

/// The manifests with the operator's Deployment changed, and the Service for its metrics added.
pub fn prepare(objects: &[Value], changes: &Changes) -> Result<(Vec<Value>, Place), BoxError> {
    let mut objects = objects.to_vec();
    let deployment = objects.iter_mut().find(|object| object["kind"] == "Deployment");
    let deployment = deployment.ok_or("the operator's manifests have no Deployment")?;
    change(deployment, changes)?;
    let place = place(deployment)?;
    let selector = deployment["spec"]["selector"]["matchLabels"].clone();
    objects.push(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": METRICS, "namespace": place.namespace},
        "spec": {"selector": selector, "ports": [{"name": "metrics", "port": 8080, "targetPort": 8080}]},
    }));
    Ok((objects, place))
}

/// Where the operator's Deployment will be.
fn place(deployment: &Value) -> Result<Place, BoxError> {
    let field = |name: &str| deployment["metadata"][name].as_str().map(str::to_owned);
    let name = field("name").ok_or("the Deployment has no name")?;
    Ok(Place { namespace: field("namespace").unwrap_or_else(|| "default".to_owned()), name })
}

fn change(deployment: &mut Value, changes: &Changes) -> Result<(), BoxError> {
    // One replica, as on a local control plane: a scenario ends and starts it, and what its metrics say is the leader's.
    deployment["spec"]["replicas"] = 1.into();
    let pod = &mut deployment["spec"]["template"]["spec"];
    let container = pod["containers"].get_mut(0).ok_or("the Deployment has no container")?;
    if let Some(image) = &changes.image {
        container["image"] = image.clone().into();
    }
    container["imagePullPolicy"] = "IfNotPresent".into();
    let fixed =
        [("DEFAULT_GARAGE_IMAGE", changes.garage.as_str()), ("LAYOUT_PURGE_IMAGE", ""), ("RUST_LOG", "info")];
    for (name, value) in fixed.into_iter().chain(WAITING) {
        set_variable(container, name, value);
    }
    let arguments = changes.arguments.iter().cloned();
    let webhooks = changes.webhooks.then(|| "--webhook-bind-address=:9443".to_owned());
    append(&mut container["args"], arguments.chain(webhooks).map(Value::from));
    if changes.webhooks {
        append(&mut container["ports"], [json!({"name": "webhook", "containerPort": 9443})]);
    }
    Ok(())
}

fn set_variable(container: &mut Value, name: &str, value: &str) {
    if let Value::Array(variables) = &mut container["env"] {
        variables.retain(|variable| variable["name"] != name);
    }
    append(&mut container["env"], [json!({"name": name, "value": value})]);
}

fn append(list: &mut Value, more: impl IntoIterator<Item = Value>) {
    match list {
        Value::Array(items) => items.extend(more),
        other => *other = more.into_iter().collect(),
    }
}

impl DeployedOperator {
    /// The operator that the Deployment at `place` in `cluster` runs.
    pub async fn of(cluster: &Cluster, place: &Place) -> Result<Self, KindError> {
        let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &place.namespace);
        let deployment = deployments.get(&place.name).await;
        let deployment =
            deployment.map_err(|error| KindError::at(cluster.site, "find the operator", error))?;
        let labels = deployment.spec.and_then(|spec| spec.selector.match_labels).unwrap_or_default();
        let selector: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Ok(Self { cluster: cluster.clone(), place: place.clone(), selector: selector.join(",") })
    }

    /// Path below the API server at which it shows its metrics.
    #[must_use]
    pub fn metrics(&self) -> String {
        format!("/api/v1/namespaces/{}/services/{METRICS}:metrics/proxy/metrics", self.place.namespace)
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.cluster.client.clone(), &self.place.namespace)
    }

    /// Its pods.
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), &self.place.namespace)
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&self) -> Result<(), KindError> {
        if available(self.deployments(), &self.place.name, READY).await {
            return Ok(());
        }
        let what = format!("start the operator within {}", humantime::format_duration(READY));
        Err(KindError::at(self.cluster.site, what, self.why().await))
    }

    /// What its pods say of themselves, for an error.
    async fn why(&self) -> String {
        let pods = self.pods().list(&ListParams::default().labels(&self.selector)).await;
        let mut text = String::new();
        for pod in pods.map(|list| list.items).unwrap_or_default() {
            let name = pod.name_any();
            let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
            for status in statuses {
                text += &format!("{name}: {}\n", serde_json::to_string(&status.state).unwrap_or_default());
            }
            let parameters = LogParams { tail_lines: Some(20), ..LogParams::default() };
            text += &self.pods().logs(&name, &parameters).await.unwrap_or_default();
        }
        if text.is_empty() { "it has no pod".to_owned() } else { text }
    }

    /// Kills it, and returns when its pods are gone.
    pub async fn end(&self) -> Result<(), KindError> {
        let failed = |error: kube::Error| KindError::at(self.cluster.site, "end the operator", error);
        self.scale(0).await.map_err(failed)?;
        let pods = ListParams::default().labels(&self.selector);
        self.pods()
            .delete_collection(&DeleteParams::default().grace_period(0), &pods)
            .await
            .map_err(failed)?;
        for pod in self.pods().list(&pods).await.map_err(failed)?.items {
            let name = pod.name_any();
            let gone =
                wait::until_gone(self.cluster.site, self.pods(), &name, &format!("pod {name}"), GONE).await;
            gone.map_err(|error| KindError::at(self.cluster.site, "end the operator", error))?;
        }
        Ok(())
    }

    /// Starts it again if it does not run, with the Lease of its site free, and waits until it says that it is ready.
    pub async fn revive(&self) -> Result<(), KindError> {
        let failed = |error: kube::Error| KindError::at(self.cluster.site, "start the operator again", error);
        let deployment = self.deployments().get(&self.place.name).await.map_err(failed)?;
        if deployment.spec.and_then(|spec| spec.replicas) == Some(0) {
            lease::release_in(self.cluster.client.clone(), &self.place.namespace).await.map_err(failed)?;
            self.scale(1).await.map_err(failed)?;
        }
        self.ready().await
    }

    async fn scale(&self, replicas: i32) -> kube::Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.deployments().patch(&self.place.name, &PatchParams::default(), &patch).await.map(drop)
    }
}

/// Waits until the Deployment `name` has all its replicas, in its latest version; false if `limit` passes before.
pub(super) async fn available(deployments: Api<Deployment>, name: &str, limit: Duration) -> bool {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher(deployments, config).backoff(WatchBackoff::default()).applied_objects();
    let mut seen = std::pin::pin!(events);
    let available = async {
        while let Some(deployment) = seen.next().await {
            if deployment.is_ok_and(|deployment| is_available(&deployment)) {
                return;
            }
        }
    };
    tokio::time::timeout(limit, available).await.is_ok()
}

fn is_available(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
    let wanted = spec.replicas.unwrap_or(1);
    wanted > 0
        && status.observed_generation == deployment.metadata.generation
        && status.available_replicas.unwrap_or(0) >= wanted
        && status.updated_replicas.unwrap_or(0) >= wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::operator::NAMESPACE;

    fn changes(webhooks: bool) -> Changes {
        Changes {
            image: Some("op:1".into()),
            garage: "garage:1".into(),
            arguments: vec!["--more".into()],
            webhooks,
        }
    }

    fn manifests() -> Vec<Value> {
        vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "op", "namespace": NAMESPACE},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "op"}}, "template": {"spec": {"containers": [
                {"name": "op", "image": "old", "args": ["--first"], "env": [{"name": "RUST_LOG", "value": "debug"}]},
            ]}}}}),
        ]
    }

    #[test]
    fn the_deployment_runs_the_image_once_and_knows_the_fake() {
        let (objects, place) = prepare(&manifests(), &changes(true)).unwrap();
        assert_eq!((place.name.as_str(), place.namespace.as_str(), objects.len()), ("op", NAMESPACE, 3));
        let container = &objects[1]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(objects[1]["spec"]["replicas"], 1);
        assert_eq!(container["image"], "op:1");
        assert_eq!(container["args"], json!(["--first", "--more", "--webhook-bind-address=:9443"]));
        let variables = container["env"].as_array().unwrap();
        let of = |name: &str| {
            variables.iter().filter(|v| v["name"] == name).map(|v| &v["value"]).collect::<Vec<_>>()
        };
        assert_eq!(of("DEFAULT_GARAGE_IMAGE"), ["garage:1"]);
        assert_eq!(of("RUST_LOG"), ["info"]);
    }

    #[test]
    fn no_label_is_added_to_what_the_operator_would_count() {
        let (objects, _) = prepare(&manifests(), &changes(false)).unwrap();
        assert_eq!(objects[1]["spec"]["template"]["metadata"], Value::Null);
        assert_eq!(objects[2]["spec"]["selector"], json!({"app": "op"}));
    }

    #[test]
    fn manifests_without_a_deployment_are_refused() {
        let error = prepare(&manifests()[..1], &changes(false)).unwrap_err();
        assert!(error.to_string().contains("no Deployment"), "{error}");
    }
}
