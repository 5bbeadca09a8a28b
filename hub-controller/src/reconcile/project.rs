//! `Project`: its namespace, its roles, its users.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::Role;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::json;

use super::accounts::{self, Account};
use super::adoption::let_go;
use super::error::ReconcileError;
use super::pass::{Object, Pass};
use super::run::Reconciled;
use crate::api::access::Access;
use crate::api::controller::{
    Cluster, Project, QosProfile, ServiceExportConfig, SliceConfig, SliceQoSConfig,
};
use crate::api::kind::HubKind;
use crate::api::naming::{self, PROJECT_NAMESPACE_LABEL, owned_by};

impl Reconciled for Project {
    const KIND: HubKind = HubKind::Project;

    async fn reconcile(&self, pass: &Pass) -> Result<Action, ReconcileError> {
        if self.namespace().as_deref() != Some(pass.settings().hub_namespace.as_str()) {
            return Ok(Action::await_change());
        }
        let namespace =
            naming::project_namespace(&pass.settings().project_namespace_prefix, &self.name_any());
        if self.metadata.deletion_timestamp.is_some() {
            return delete(self, pass, &namespace).await;
        }
        if self.labels().get(PROJECT_NAMESPACE_LABEL) != Some(&namespace) {
            pass.merge(self, &json!({"metadata": {"labels": {PROJECT_NAMESPACE_LABEL: namespace}}})).await?;
        }
        ensure_namespace(pass, &namespace).await?;
        for access in Access::ALL {
            ensure_role(pass, &namespace, access).await?;
        }
        let accounts = &self.spec.service_account;
        ensure_users(self, pass, &namespace, Access::ReadOnly, &accounts.read_only).await?;
        ensure_users(self, pass, &namespace, Access::ReadWrite, &accounts.read_write).await?;
        ensure_default_profile(pass, &namespace).await?;
        Ok(Action::await_change())
    }
}

/// Deletes everything of the project without waiting, its namespace last.
async fn delete(project: &Project, pass: &Pass, namespace: &str) -> Result<Action, ReconcileError> {
    delete_all::<ServiceExportConfig>(pass, namespace).await?;
    delete_all::<SliceConfig>(pass, namespace).await?;
    delete_all::<Cluster>(pass, namespace).await?;
    delete_all::<SliceQoSConfig>(pass, namespace).await?;
    pass.delete_namespace(namespace).await?;
    let_go(pass, HubKind::Project, project).await
}

async fn delete_all<K: Object>(pass: &Pass, namespace: &str) -> Result<(), ReconcileError> {
    for object in pass.list::<K>(namespace, &BTreeMap::new()).await? {
        pass.delete(&object).await?;
    }
    Ok(())
}

async fn ensure_namespace(pass: &Pass, name: &str) -> Result<(), ReconcileError> {
    let labels = owned_by("Project", name);
    match pass.namespace(name).await? {
        Some(live) if naming::is_project_namespace(name, live.labels()) => Ok(()),
        Some(_) => pass.merge_namespace(name, &json!({"metadata": {"labels": labels}})).await,
        None => {
            let metadata =
                ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
            pass.create_namespace(&Namespace { metadata, ..Namespace::default() }).await.map(drop)
        }
    }
}

async fn ensure_role(pass: &Pass, namespace: &str, access: Access) -> Result<(), ReconcileError> {
    let rules = Some(access.rules());
    match pass.get::<Role>(namespace, access.role()).await? {
        Some(live) if live.rules == rules => Ok(()),
        Some(live) => pass.merge(&live, &json!({"rules": rules})).await.map(drop),
        None => {
            let metadata = ObjectMeta {
                name: Some(access.role().to_owned()),
                namespace: Some(namespace.to_owned()),
                labels: Some(owned_by("Project", namespace)),
                ..ObjectMeta::default()
            };
            pass.create(&Role { metadata, rules }).await.map(drop)
        }
    }
}

async fn ensure_users(
    project: &Project,
    pass: &Pass,
    namespace: &str,
    access: Access,
    users: &[String],
) -> Result<(), ReconcileError> {
    let prefix = pass.settings().rbac_resource_prefix.clone();
    let labels = owned_by("Project", &project.name_any());
    let names: BTreeSet<String> = users.iter().map(|user| access.account(&prefix, user)).collect();
    accounts::remove_obsolete(pass, namespace, &labels, access, &names).await?;
    for name in names {
        let account = Account { namespace: namespace.to_owned(), name, access, labels: labels.clone() };
        accounts::ensure(pass, &account).await?;
    }
    Ok(())
}

/// The profile that slices use which name none.
async fn ensure_default_profile(pass: &Pass, namespace: &str) -> Result<(), ReconcileError> {
    if pass.get::<SliceQoSConfig>(namespace, "default").await?.is_some() {
        return Ok(());
    }
    let mut profile = SliceQoSConfig::new(
        "default",
        QosProfile {
            queue_type: Some("HTB".to_owned()),
            priority: 1,
            tc_type: Some("BANDWIDTH_CONTROL".to_owned()),
            bandwidth_ceiling_kbps: 5120,
            bandwidth_guaranteed_kbps: 2560,
            dscp_class: Some("AF11".to_owned()),
        },
    );
    profile.metadata.namespace = Some(namespace.to_owned());
    pass.create(&profile).await.map(drop)
}
