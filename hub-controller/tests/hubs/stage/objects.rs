//! Making, changing and awaiting objects at a site.

use std::fmt::Debug;

use harness::site::Site;
use harness::wait;
use hub_controller::api::controller::{
    Cluster, ClusterSpec, Project, ProjectAccounts, ProjectSpec, ServiceExportConfig,
    ServiceExportConfigSpec, SliceConfig, SliceConfigSpec,
};
use hub_controller::api::kind::{HubKind, MirroredKind};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::world::HUB_NAMESPACE;

/// Namespace of the project that the tests use.
pub const PROJECT_NAMESPACE: &str = "kubeslice-blue";

/// One site, as people see it.
#[derive(Clone)]
pub struct Side {
    pub site: Site,
    pub client: Client,
}

/// An object that tests use.
pub trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + 'static
{
}

impl Side {
    pub fn new(site: Site, client: Client) -> Self {
        Self { site, client }
    }

    pub fn api<K: Object>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub async fn create<K: Object>(&self, namespace: &str, object: &K) -> K {
        self.api(namespace).create(&PostParams::default(), object).await.unwrap()
    }

    pub async fn merge<K: Object>(&self, namespace: &str, name: &str, patch: &Value) {
        let api: Api<K> = self.api(namespace);
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn merge_status<K: Object>(&self, namespace: &str, name: &str, patch: &Value) {
        let api: Api<K> = self.api(namespace);
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn get<K: Object>(&self, namespace: &str, name: &str) -> Option<K> {
        self.api(namespace).get_opt(name).await.unwrap()
    }

    pub async fn delete<K: Object>(&self, namespace: &str, name: &str) {
        self.api::<K>(namespace).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits for an object that `holds` accepts, and answers it.
    pub async fn until<K: Object>(
        &self,
        namespace: &str,
        name: &str,
        awaited: &str,
        holds: impl Fn(&K) -> bool,
    ) -> K {
        let reached =
            wait::until(self.site, self.api::<K>(namespace), name, awaited, super::LIMIT, |object| {
                match object {
                    Some(object) if holds(object) => Ok(()),
                    Some(object) => Err(serde_json::to_string(object).unwrap_or_default()),
                    None => Err("absent".to_owned()),
                }
            });
        reached.await.unwrap_or_else(|error| panic!("{error:?}")).unwrap()
    }

    /// Waits until an object is there.
    pub async fn until_there<K: Object>(&self, namespace: &str, name: &str) -> K {
        self.until(namespace, name, name, |_| true).await
    }

    /// Waits until an object is gone.
    pub async fn until_gone<K: Object>(&self, namespace: &str, name: &str) {
        let gone = wait::until_gone(self.site, self.api::<K>(namespace), name, name, super::LIMIT);
        gone.await.unwrap_or_else(|error| panic!("{error:?}"));
    }

    /// Every object of the nine kinds, and of what supports them, in the project.
    pub async fn everything(&self, kind: MirroredKind) -> Vec<DynamicObject> {
        let api: Api<DynamicObject> = match kind {
            MirroredKind::Namespace => return Vec::new(),
            MirroredKind::Hub(HubKind::Project) => {
                Api::namespaced_with(self.client.clone(), HUB_NAMESPACE, &kind.resource())
            }
            _ => Api::namespaced_with(self.client.clone(), PROJECT_NAMESPACE, &kind.resource()),
        };
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// A project with three clusters, a slice over two of them, and an exported service; all nine kinds follow.
    pub async fn seed(&self) {
        let accounts = ProjectAccounts { read_only: vec!["rob".into()], read_write: vec!["Wendy".into()] };
        let project =
            Project::new("blue", ProjectSpec { service_account: accounts, ..ProjectSpec::default() });
        self.create(HUB_NAMESPACE, &project).await;
        self.until_project().await;
        for name in ["c1", "c2", "c3"] {
            self.create(PROJECT_NAMESPACE, &Cluster::new(name, ClusterSpec::default())).await;
        }
        self.create(PROJECT_NAMESPACE, &slice("red", &["c1", "c2"])).await;
        self.create(PROJECT_NAMESPACE, &export("web", "red", "c1")).await;
    }

    /// Waits until the namespace of the project is there.
    pub async fn until_project(&self) {
        let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(self.client.clone());
        let there = |found: Option<&k8s_openapi::api::core::v1::Namespace>| {
            found.map(drop).ok_or_else(|| "absent".to_owned())
        };
        wait::until(self.site, namespaces, PROJECT_NAMESPACE, "the project's namespace", super::LIMIT, there)
            .await
            .unwrap_or_else(|error| panic!("{error:?}"));
    }
}

/// A slice over these clusters.
pub fn slice(name: &str, clusters: &[&str]) -> SliceConfig {
    let spec = serde_json::json!({"sliceSubnet": "10.7.0.0/16", "clusters": clusters, "standardQosProfileName": "default"});
    SliceConfig::new(name, serde_json::from_value::<SliceConfigSpec>(spec).unwrap())
}

/// A service that one cluster offers to a slice.
pub fn export(name: &str, slice: &str, cluster: &str) -> ServiceExportConfig {
    ServiceExportConfig::new(
        &format!("{name}-{cluster}"),
        ServiceExportConfigSpec {
            service_name: name.to_owned(),
            service_namespace: "apps".to_owned(),
            source_cluster: cluster.to_owned(),
            slice_name: slice.to_owned(),
            ..ServiceExportConfigSpec::default()
        },
    )
}

/// Whether the hub's own finalizer is on an object.
pub fn has_finalizer(object: &impl ResourceExt, kind: HubKind) -> bool {
    kind.finalizer().is_none_or(|name| object.finalizers().iter().any(|found| found == name))
}
