//! What the API server makes of a change, and what decides that: definitions and webhooks.

use std::time::Duration;

use harness::failure::Failure;
use harness::garage::objects;
use harness::site::Site;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::World;
use crate::fixture::CLUSTER;
use crate::fixture::version::Version;

/// The configurations of a site's webhooks while they are taken away.
#[derive(Debug)]
pub struct Webhooks {
    validating: ValidatingWebhookConfiguration,
    mutating: MutatingWebhookConfiguration,
}

/// Name of both configurations of the operator's webhooks.
const WEBHOOKS: &str = "garage-operator";

/// The name of an object that is to be created again.
fn bare(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta { resource_version: None, uid: None, managed_fields: None, ..metadata }
}

impl World<'_> {
    /// Changes the spec of the GarageCluster of `site` as a client of `version`, and returns why the API server refused
    /// that.
    pub async fn refused(&self, site: Site, version: Version, spec: &Value) -> Result<String, Failure> {
        self.step(format!("try to change the {version} spec of GarageCluster {CLUSTER} on {site}: {spec}"));
        let patch = Patch::Merge(json!({ "spec": spec }));
        match version.clusters(self.scope, site).patch(CLUSTER, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) => Ok(status.message.clone()),
            Err(error) => Err(Failure::harness(site, format!("change the {version} GarageCluster"), error)),
            Ok(_) => Err(self.not_so(site, format!("the change {spec} is refused"), "it was admitted")),
        }
    }

    /// Takes the admission webhooks of `site` away. For cells that have the cluster to themselves.
    pub async fn remove_webhooks(&self, site: Site) -> Result<Webhooks, Failure> {
        self.step(format!("remove the admission webhooks of {site}"));
        let failed = |error| Failure::harness(site, "remove the webhooks", error);
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.scope.client(site));
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.scope.client(site));
        let webhooks = Webhooks {
            validating: validating.get(WEBHOOKS).await.map_err(failed)?,
            mutating: mutating.get(WEBHOOKS).await.map_err(failed)?,
        };
        validating.delete(WEBHOOKS, &DeleteParams::default()).await.map_err(failed)?;
        mutating.delete(WEBHOOKS, &DeleteParams::default()).await.map_err(failed)?;
        Ok(webhooks)
    }

    /// Puts the admission webhooks of `site` back.
    pub async fn restore_webhooks(&self, site: Site, webhooks: Webhooks) -> Result<(), Failure> {
        self.step(format!("restore the admission webhooks of {site}"));
        let failed = |error| Failure::harness(site, "restore the webhooks", error);
        let Webhooks { mut validating, mut mutating } = webhooks;
        validating.metadata = bare(validating.metadata);
        mutating.metadata = bare(mutating.metadata);
        let validation: Api<ValidatingWebhookConfiguration> = Api::all(self.scope.client(site));
        let mutation: Api<MutatingWebhookConfiguration> = Api::all(self.scope.client(site));
        validation.create(&PostParams::default(), &validating).await.map_err(failed)?;
        mutation.create(&PostParams::default(), &mutating).await.map_err(failed)?;
        Ok(())
    }

    /// Waits until the API server of `site` calls the webhooks that were put back: a change that they refuse with `word`,
    /// tried without effect, is refused. Nobody tells: it is asked.
    pub async fn webhooks_act(&self, site: Site, spec: &Value, word: &str) -> Result<(), Failure> {
        const EVERY: Duration = Duration::from_millis(100);
        self.step(format!("await that {spec} is refused on {site}"));
        let patch = Patch::Merge(json!({ "spec": spec }));
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        let refusing = async {
            loop {
                match self.clusters(site).patch(CLUSTER, &dry, &patch).await {
                    Err(kube::Error::Api(status)) if status.message.contains(word) => return,
                    // Admitted, or refused because the webhook's address is not known yet.
                    _ => tokio::time::sleep(EVERY).await,
                }
            }
        };
        let limit = self.scope.limits.step;
        tokio::time::timeout(limit, refusing)
            .await
            .map_err(|_elapsed| self.not_so(site, format!("{spec} is refused with {word}"), "it is not"))
    }

    /// Waits until the API server of `site` calls no webhook any more: a change that is otherwise in order is admitted,
    /// tried without effect.
    pub async fn webhooks_are_off(&self, site: Site, spec: &Value) -> Result<(), Failure> {
        const EVERY: Duration = Duration::from_millis(100);
        self.step(format!("await that {spec} is admitted on {site}"));
        let patch = Patch::Merge(json!({ "spec": spec }));
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        let admitting = async {
            while self.clusters(site).patch(CLUSTER, &dry, &patch).await.is_err() {
                tokio::time::sleep(EVERY).await;
            }
        };
        let limit = self.scope.limits.step;
        tokio::time::timeout(limit, admitting)
            .await
            .map_err(|_elapsed| self.not_so(site, format!("{spec} is admitted"), "it is refused"))
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

    /// Sends a change of the spec as a client of `version`, without effect, and returns the warnings of the answer.
    pub async fn warnings(&self, site: Site, version: Version, spec: &Value) -> Result<Vec<String>, Failure> {
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
