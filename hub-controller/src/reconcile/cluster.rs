//! `Cluster`: the account of its worker, and its registration.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::json;
use tracing::warn;

use super::accounts::{self, Account};
use super::adoption::let_go;
use super::error::ReconcileError;
use super::pass::{Object, Pass};
use super::run::Reconciled;
use crate::api::access::Access;
use crate::api::controller::Cluster;
use crate::api::kind::HubKind;
use crate::api::naming::{DEREGISTER_FINALIZER, owned_by};

impl Reconciled for Cluster {
    const KIND: HubKind = HubKind::Cluster;

    async fn reconcile(&self, pass: &Pass) -> Result<Action, ReconcileError> {
        let namespace = self.namespace().unwrap_or_default();
        let account = Access::Worker.account(&pass.settings().rbac_resource_prefix, &self.name_any());
        if self.metadata.deletion_timestamp.is_some() {
            return delete(self, pass, &account).await;
        }
        if !pass.is_project_namespace(&namespace).await? {
            warn!(
                cluster = self.name_any(),
                namespace, "this is no project namespace; nothing is done in it"
            );
            return Ok(Action::await_change());
        }
        if let (Some(address), true) = (&self.spec.node_ip, self.spec.node_ips.is_empty()) {
            pass.merge(self, &json!({"spec": {"nodeIPs": [address]}})).await?;
        }
        let labels = owned_by("Cluster", &self.name_any());
        let (access, name) = (Access::Worker, account.clone());
        accounts::ensure(pass, &Account { namespace: namespace.clone(), name, access, labels }).await?;
        if self.status.as_ref().and_then(|status| status.secret_name.as_ref()) != Some(&account) {
            pass.merge_status(self, &json!({"secretName": account})).await?;
        }
        tell_worker(self, pass, &account).await?;
        Ok(Action::await_change())
    }
}

/// The worker's Secret says where this hub is, and what the cluster is called there.
async fn tell_worker(cluster: &Cluster, pass: &Pass, account: &str) -> Result<(), ReconcileError> {
    let namespace = cluster.namespace().unwrap_or_default();
    let Some(secret) = pass.get::<Secret>(&namespace, account).await? else { return Ok(()) };
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let wanted = [
        ("controllerEndpoint", bytes(&pass.settings().endpoint)),
        ("clusterName", bytes(&cluster.name_any())),
    ];
    let data = secret.data.clone().unwrap_or_default();
    if wanted.iter().all(|(key, value)| data.get(*key) == Some(value)) {
        return Ok(());
    }
    let patch: serde_json::Map<_, _> =
        wanted.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    pass.merge(&secret, &json!({ "data": patch })).await.map(drop)
}

/// The worker is asked to leave first; one that does not is left behind.
async fn delete(cluster: &Cluster, pass: &Pass, account: &str) -> Result<Action, ReconcileError> {
    let worker_is_here = cluster.finalizers().iter().any(|found| found == DEREGISTER_FINALIZER);
    if worker_is_here {
        let left = pass.settings().deregister_timeout.saturating_sub(deleting_for(cluster));
        if !left.is_zero() {
            let asked = cluster.status.as_ref().and_then(|status| status.is_deregister_in_progress);
            if asked != Some(true) {
                pass.merge_status(cluster, &json!({"isDeregisterInProgress": true})).await?;
            }
            return Ok(Action::requeue(left));
        }
        warn!(cluster = cluster.name_any(), "the worker has not left in time");
        let others: Vec<String> =
            cluster.finalizers().iter().filter(|found| *found != DEREGISTER_FINALIZER).cloned().collect();
        pass.set_finalizers(cluster, &others).await?;
        return Ok(Action::requeue(Duration::from_millis(100)));
    }
    accounts::remove(pass, &cluster.namespace().unwrap_or_default(), account).await?;
    let_go(pass, HubKind::Cluster, cluster).await
}

/// Since when an object is being deleted, by the API server's clock.
pub(super) fn deleting_for<K: Object>(object: &K) -> Duration {
    let since = object.meta().deletion_timestamp.as_ref().map(|time| time.0);
    since.map_or(Duration::ZERO, |since| {
        Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or(Duration::ZERO)
    })
}
