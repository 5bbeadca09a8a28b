//! Reading and changing objects of a scene.

use harness::garage::objects;
use harness::site::Site;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::manifest::CLUSTER;
use super::scene::Scene;

/// Whose write it is in the audit log and in managed fields.
const MANAGER: &str = "tests";

impl Scene {
    /// Creates a GarageCluster.
    pub async fn create_cluster(&self, site: Site, manifest: Value) -> DynamicObject {
        let object: DynamicObject = serde_json::from_value(manifest).unwrap();
        self.clusters(site).create(&PostParams::default(), &object).await.unwrap()
    }

    /// Creates a GarageNode.
    pub async fn create_node(&self, site: Site, manifest: Value) -> DynamicObject {
        let object: DynamicObject = serde_json::from_value(manifest).unwrap();
        self.nodes(site).create(&PostParams::default(), &object).await.unwrap()
    }

    /// The scene's cluster as it is now.
    pub async fn the_cluster(&self, site: Site) -> DynamicObject {
        self.clusters(site).get(CLUSTER).await.unwrap()
    }

    /// Merges a patch into the scene's cluster.
    pub async fn patch_cluster(&self, site: Site, patch: Value) -> kube::Result<DynamicObject> {
        let parameters = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
        self.clusters(site).patch(CLUSTER, &parameters, &Patch::Merge(patch)).await
    }

    /// Sets an annotation of the scene's cluster.
    pub async fn annotate(&self, site: Site, key: &str, value: &str) {
        let key = format!("garage.rajsingh.info/{key}");
        self.patch_cluster(site, json!({"metadata": {"annotations": {key: value}}})).await.unwrap();
    }

    /// Sets the site's role.
    pub async fn assign(&self, site: Site, role: &str) {
        let patch = json!({"spec": {"layoutManagement": {"siteRole": role}}});
        self.patch_cluster(site, patch).await.unwrap();
    }

    /// Sets the number of storage nodes.
    pub async fn scale(&self, site: Site, replicas: u32) {
        let patch = json!({"spec": {"storage": {"replicas": replicas}}});
        self.patch_cluster(site, patch).await.unwrap();
    }

    /// Deletes a GarageNode; does not wait for its end.
    pub async fn delete_node(&self, site: Site, name: &str) {
        self.nodes(site).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Deletes the scene's cluster; does not wait for its end.
    pub async fn delete_cluster(&self, site: Site) {
        self.clusters(site).delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    }

    /// The node ID in the status of a GarageNode.
    pub async fn node_id(&self, site: Site, name: &str) -> String {
        let node = self.nodes(site).get(name).await.unwrap();
        objects::text(&node, "/status/nodeId").expect("the node has an identity").to_owned()
    }

    /// A pod, if it is there.
    pub async fn pod(&self, site: Site, node: &str) -> Option<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client(site), self.namespace());
        pods.get_opt(&format!("{node}-0")).await.unwrap()
    }

    /// Reasons and notes of all events that the operator told about the scene's objects.
    pub async fn events(&self, site: Site) -> Vec<(String, String)> {
        let events: Api<Event> = Api::namespaced(self.client(site), self.namespace());
        let all = events.list(&ListParams::default()).await.unwrap();
        let ours = all
            .items
            .into_iter()
            .filter(|event| event.reporting_controller.as_deref() == Some("garage-operator"));
        ours.map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default())).collect()
    }
}

/// The finalizers of an object.
pub fn finalizers(object: &DynamicObject) -> Vec<String> {
    object.metadata.finalizers.clone().unwrap_or_default()
}
