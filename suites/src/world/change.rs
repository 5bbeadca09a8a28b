//! What a user changes.

use harness::failure::Failure;
use harness::garage::objects;
use harness::site::Site;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
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

    /// Changes the spec of a GarageNode of `site` by a merge patch.
    pub async fn change_node(&self, site: Site, name: &str, spec: &Value) -> Result<(), Failure> {
        self.step(format!("change the spec of GarageNode {name} on {site}: {spec}"));
        let patch = json!({ "spec": spec });
        let patched = self.nodes(site).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| Failure::harness(site, "change the GarageNode", error))
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
