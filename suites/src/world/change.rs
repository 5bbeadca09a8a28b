//! What a user changes.

use harness::failure::Failure;
use harness::garage::objects;
use harness::site::Site;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::World;
use crate::fixture::CLUSTER;

/// Prefix of the annotations that ask the operator for something (operator contract §4.4).
pub const PREFIX: &str = "garage.rajsingh.info/";

impl World<'_> {
    /// GarageClusters of the cell at `site`.
    #[must_use]
    pub fn clusters(&self, site: Site) -> Api<DynamicObject> {
        objects::clusters(self.scope.client(site), &self.scope.namespace)
    }

    /// GarageNodes of the cell at `site`.
    #[must_use]
    pub fn nodes(&self, site: Site) -> Api<DynamicObject> {
        objects::nodes(self.scope.client(site), &self.scope.namespace)
    }

    /// Changes the spec of the GarageCluster of `site` by a merge patch.
    pub async fn change(&self, site: Site, spec: &Value) -> Result<(), Failure> {
        self.step(format!("change the spec of GarageCluster {CLUSTER} on {site}: {spec}"));
        let patch = json!({ "spec": spec });
        let patched = self.clusters(site).patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| Failure::harness(site, "change the GarageCluster", error))
    }

    /// Changes the spec of the GarageCluster of `site`, and returns why the API server refused that.
    pub async fn refused(&self, site: Site, spec: &Value) -> Result<String, Failure> {
        self.step(format!("try to change the spec of GarageCluster {CLUSTER} on {site}: {spec}"));
        let patch = json!({ "spec": spec });
        match self.clusters(site).patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) => Ok(status.message.clone()),
            Err(error) => Err(Failure::harness(site, "change the GarageCluster", error)),
            Ok(_) => Err(self.not_so(site, format!("the change {spec} is refused"), "it was admitted")),
        }
    }

    /// Gives the site another role in its spec.
    pub async fn set_role(&self, site: Site, role: &str) -> Result<(), Failure> {
        self.change(site, &json!({"layoutManagement": {"siteRole": role}})).await
    }

    /// Annotates the GarageCluster of `site`; keys without their prefix.
    pub async fn annotate_cluster(&self, site: Site, annotations: &[(&str, &str)]) -> Result<(), Failure> {
        self.annotate(site, &self.clusters(site), CLUSTER, annotations).await
    }

    /// Annotates a GarageNode of `site`; keys without their prefix.
    pub async fn annotate_node(
        &self,
        site: Site,
        name: &str,
        annotations: &[(&str, &str)],
    ) -> Result<(), Failure> {
        self.annotate(site, &self.nodes(site), name, annotations).await
    }

    async fn annotate(
        &self,
        site: Site,
        api: &Api<DynamicObject>,
        name: &str,
        annotations: &[(&str, &str)],
    ) -> Result<(), Failure> {
        let all: serde_json::Map<String, Value> =
            annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), json!(value))).collect();
        self.step(format!("annotate {name} on {site}: {annotations:?}"));
        let patch = json!({"metadata": {"annotations": all}});
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| Failure::harness(site, format!("annotate {name}"), error))
    }

    /// Deletes a GarageNode of `site`.
    pub async fn delete_node(&self, site: Site, name: &str) -> Result<(), Failure> {
        self.step(format!("delete GarageNode {name} on {site}"));
        let deleted = self.nodes(site).delete(name, &DeleteParams::default()).await;
        deleted.map(drop).map_err(|error| Failure::harness(site, format!("delete GarageNode {name}"), error))
    }

    /// Deletes the GarageCluster of `site`.
    pub async fn delete_cluster(&self, site: Site) -> Result<(), Failure> {
        self.step(format!("delete GarageCluster {CLUSTER} on {site}"));
        let deleted = self.clusters(site).delete(CLUSTER, &DeleteParams::default()).await;
        deleted.map(drop).map_err(|error| Failure::harness(site, "delete the GarageCluster", error))
    }

    /// Patches the status of the GarageCluster of `site`.
    pub async fn patch_status(&self, site: Site, status: &Value) -> Result<(), Failure> {
        self.step(format!("patch the status of GarageCluster {CLUSTER} on {site}: {status}"));
        let patch = json!({ "status": status });
        let patched =
            self.clusters(site).patch_status(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| Failure::harness(site, "patch the status", error))
    }
}

/// The configurations of a site's webhooks while they are taken away.
#[derive(Debug)]
pub struct Webhooks {
    validating: ValidatingWebhookConfiguration,
}

impl World<'_> {
    /// GarageClusters of the cell at `site`, in the older version.
    #[must_use]
    pub fn clusters_v1beta1(&self, site: Site) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: objects::GROUP.to_owned(),
            version: "v1beta1".to_owned(),
            api_version: format!("{}/v1beta1", objects::GROUP),
            kind: "GarageCluster".to_owned(),
            plural: "garageclusters".to_owned(),
        };
        Api::namespaced_with(self.scope.client(site), &self.scope.namespace, &resource)
    }

    /// Changes the spec through the older version, and returns why the API server refused that.
    pub async fn refused_in_v1beta1(&self, site: Site, spec: &Value) -> Result<String, Failure> {
        self.step(format!("try to change the v1beta1 spec of GarageCluster {CLUSTER} on {site}: {spec}"));
        let patch = json!({ "spec": spec });
        let api = self.clusters_v1beta1(site);
        match api.patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) => Ok(status.message.clone()),
            Err(error) => Err(Failure::harness(site, "change the v1beta1 GarageCluster", error)),
            Ok(_) => Err(self.not_so(site, format!("the change {spec} is refused"), "it was admitted")),
        }
    }

    /// Takes the admission webhooks of `site` away. For cells that have the cluster to themselves.
    pub async fn remove_webhooks(&self, site: Site) -> Result<Webhooks, Failure> {
        const NAME: &str = "garage-operator";
        self.step(format!("remove the validating webhooks of {site}"));
        let api: Api<ValidatingWebhookConfiguration> = Api::all(self.scope.client(site));
        let failed = |error| Failure::harness(site, "remove the webhooks", error);
        let mut validating = api.get(NAME).await.map_err(failed)?;
        api.delete(NAME, &DeleteParams::default()).await.map_err(failed)?;
        validating.metadata.resource_version = None;
        validating.metadata.uid = None;
        validating.metadata.managed_fields = None;
        Ok(Webhooks { validating })
    }

    /// Puts the admission webhooks of `site` back.
    pub async fn restore_webhooks(&self, site: Site, webhooks: Webhooks) -> Result<(), Failure> {
        self.step(format!("restore the validating webhooks of {site}"));
        let api: Api<ValidatingWebhookConfiguration> = Api::all(self.scope.client(site));
        let made = api.create(&PostParams::default(), &webhooks.validating).await;
        made.map(drop).map_err(|error| Failure::harness(site, "restore the webhooks", error))
    }

    /// The definition of GarageClusters at `site`.
    pub async fn definition(&self, site: Site) -> Result<CustomResourceDefinition, Failure> {
        let api: Api<CustomResourceDefinition> = Api::all(self.scope.client(site));
        let read = api.get(DEFINITION).await;
        read.map_err(|error| Failure::harness(site, "read the definition", error))
    }

    /// Replaces the versions in the definition of GarageClusters at `site`. For cells that have the cluster to
    /// themselves.
    pub async fn redefine(&self, site: Site, versions: &Value) -> Result<(), Failure> {
        self.step(format!("change the definition of GarageClusters on {site}"));
        let api: Api<CustomResourceDefinition> = Api::all(self.scope.client(site));
        let patch = json!({"spec": {"versions": versions}});
        let patched = api.patch(DEFINITION, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| Failure::harness(site, "change the definition", error))
    }

    /// Sends a change of the spec in `api_version`, and returns the warnings of the answer.
    pub async fn warnings(&self, site: Site, version: &str, spec: &Value) -> Result<Vec<String>, Failure> {
        self.step(format!("change the {version} spec on {site} without effect, for its warnings: {spec}"));
        let failed =
            |step: &str, error: harness::failure::BoxError| Failure::harness(site, step.to_owned(), error);
        let url = format!(
            "/apis/{}/{version}/namespaces/{}/garageclusters/{CLUSTER}?dryRun=All",
            objects::GROUP,
            self.scope.namespace
        );
        let body = serde_json::to_vec(&json!({ "spec": spec })).unwrap_or_default();
        let request = http::Request::patch(url)
            .header("content-type", "application/merge-patch+json")
            .body(kube::client::Body::from(body))
            .map_err(|error| failed("build a request", error.into()))?;
        let answer = self.scope.client(site).send(request).await;
        let answer = answer.map_err(|error| failed("change the GarageCluster", error.into()))?;
        let status = answer.status();
        self.claim(site, "the change is admitted", status.is_success(), || status.to_string())?;
        let texts = answer.headers().get_all("warning").iter();
        Ok(texts.filter_map(|value| value.to_str().ok().map(str::to_owned)).collect())
    }
}

/// Name of the definition of GarageClusters.
const DEFINITION: &str = "garageclusters.garage.rajsingh.info";
