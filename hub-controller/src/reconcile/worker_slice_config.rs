//! `WorkerSliceConfig`: a slice as one of its clusters sees it.

use kube::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::json;

use super::adoption::let_go;
use super::cluster::deleting_for;
use super::error::ReconcileError;
use super::pass::{Object, Pass};
use super::run::Reconciled;
use crate::api::controller::{SliceConfig, SliceQoSConfig};
use crate::api::kind::HubKind;
use crate::api::naming::{self, owned_by};
use crate::api::worker::{WorkerSliceConfig, WorkerSliceConfigSpec};
use crate::decision::octets;

impl Reconciled for WorkerSliceConfig {
    const KIND: HubKind = HubKind::WorkerSliceConfig;

    async fn reconcile(&self, pass: &Pass) -> Result<Action, ReconcileError> {
        let namespace = self.namespace().unwrap_or_default();
        let slice = pass.get::<SliceConfig>(&namespace, &self.spec.slice_name).await?;
        let cluster = self.labels().get(naming::WORKER_CLUSTER_LABEL).cloned().unwrap_or_default();
        let wanted_by = slice.filter(|slice| {
            slice.metadata.deletion_timestamp.is_none() && slice.spec.clusters.contains(&cluster)
        });
        if self.metadata.deletion_timestamp.is_some() {
            return delete(self, pass, HubKind::WorkerSliceConfig, wanted_by.as_ref()).await;
        }
        if let (Some(slice), Some(octet)) = (wanted_by, self.spec.octet) {
            let mut wanted = wanted(&slice, &cluster, octet);
            if let Some(profile) = &slice.spec.standard_qos_profile_name {
                let found = pass.get::<SliceQoSConfig>(&namespace, profile).await?;
                wanted.spec.qos_profile_details = found.map(|found| found.spec);
            }
            refresh(pass, self, &wanted).await?;
        }
        Ok(Action::await_change())
    }
}

/// Waits for finalizers of others, though not for ever; makes the parent put back what it still wants.
pub(super) async fn delete<K: Object>(
    object: &K,
    pass: &Pass,
    kind: HubKind,
    wanted_by: Option<&SliceConfig>,
) -> Result<Action, ReconcileError> {
    let others = object.finalizers().iter().any(|found| Some(found.as_str()) != kind.finalizer());
    let left = pass.settings().worker_finalizer_timeout.saturating_sub(deleting_for(object));
    if others && !left.is_zero() {
        return Ok(Action::requeue(left));
    }
    if others {
        pass.set_finalizers(object, &[]).await?;
    } else {
        let_go(pass, kind, object).await?;
    }
    if let Some(parent) = wanted_by {
        pass.poke(parent, &format!("{} {}", kind, object.uid().unwrap_or_default())).await?;
    }
    Ok(Action::await_change())
}

/// What the slice wants for this cluster. The details of a standard profile are filled in by the reconciler.
pub(super) fn wanted(slice: &SliceConfig, cluster: &str, octet: u8) -> WorkerSliceConfig {
    let name = slice.name_any();
    let spec = &slice.spec;
    let mut object = WorkerSliceConfig::new(
        &naming::worker_slice_config(&name, cluster),
        WorkerSliceConfigSpec {
            slice_name: name.clone(),
            overlay_network_deployment_mode: spec.overlay_network_deployment_mode,
            slice_subnet: spec.slice_subnet.clone(),
            slice_type: spec.slice_type.clone(),
            octet: Some(octet),
            cluster_subnet_cidr: octets::subnet(&spec.slice_subnet, octet),
            qos_profile_details: spec.qos_profile_details.clone(),
            namespace_isolation_profile: spec.namespace_isolation_profile.clone(),
        },
    );
    let namespace = slice.namespace().unwrap_or_default();
    let mut labels = owned_by("SliceConfig", &name);
    let mut label = |key: &str, value: &str| labels.insert(key.to_owned(), value.to_owned());
    label(naming::WORKER_CLUSTER_LABEL, cluster);
    label(naming::SLICE_LABEL, &name);
    label(naming::WORKER_PROJECT_LABEL, &namespace);
    label(naming::MANAGER_LABEL, "controller");
    if let Some(profile) = &spec.standard_qos_profile_name {
        label(naming::QOS_LABEL, profile);
    }
    object.metadata.namespace = Some(namespace);
    object.metadata.labels = Some(labels);
    object
}

/// Gives the object the spec and labels of its parent, where they differ.
pub(super) async fn refresh(
    pass: &Pass,
    live: &WorkerSliceConfig,
    wanted: &WorkerSliceConfig,
) -> Result<(), ReconcileError> {
    let mut spec = wanted.spec.clone();
    if spec.qos_profile_details.is_none() && wanted.labels().contains_key(naming::QOS_LABEL) {
        // Only the object's own reconciler looks the profile up.
        spec.qos_profile_details.clone_from(&live.spec.qos_profile_details);
    }
    let labelled = wanted.labels().iter().all(|(key, value)| live.labels().get(key) == Some(value));
    if live.spec == spec && labelled {
        return Ok(());
    }
    pass.merge(live, &json!({"metadata": {"labels": wanted.labels()}, "spec": spec})).await.map(drop)
}
