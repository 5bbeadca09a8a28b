//! `VpnKeyRotation`: keys are made anew when they expire. Waiting for that is the hub's background timer (design record,
//! decision 4): it runs as a reconcile, and so only while the hub leads.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use serde_json::json;
use tracing::info;

use super::error::ReconcileError;
use super::pass::Pass;
use super::run::Reconciled;
use super::slice_config::keys;
use crate::api::controller::{SliceConfig, VpnKeyRotation};
use crate::api::kind::HubKind;
use crate::api::naming::{self, SLICE_LABEL};
use crate::api::worker::WorkerSliceGateway;
use crate::decision::rotation::{Due, due, expiry};

impl Reconciled for VpnKeyRotation {
    const KIND: HubKind = HubKind::VpnKeyRotation;

    async fn reconcile(&self, pass: &Pass) -> Result<Action, ReconcileError> {
        let namespace = self.namespace().unwrap_or_default();
        let slice = pass.get::<SliceConfig>(&namespace, &self.spec.slice_name).await?;
        // The cache may be older than this hub's own last rotation, which must not be done twice.
        let fresh = pass.get::<Self>(&namespace, &self.name_any()).await?;
        let fresh = fresh.filter(|fresh| fresh.metadata.deletion_timestamp.is_none());
        let (Some(slice), Some(mut rotation)) = (slice, fresh) else { return Ok(Action::await_change()) };
        if rotation.owner_references().is_empty() {
            let owner = slice.controller_owner_ref(&());
            rotation = pass.merge(&rotation, &json!({"metadata": {"ownerReferences": [owner]}})).await?;
        }
        let label = [(SLICE_LABEL.to_owned(), self.spec.slice_name.clone())].into();
        let gateways = pass.list::<WorkerSliceGateway>(&namespace, &label).await?;
        let rotation = ensure_mapping(rotation, pass, &gateways).await?;
        let expires = rotation.spec.certificate_expiry_time.as_ref().map(|time| time.0);
        match due(expires, Timestamp::now()) {
            Due::First => set_times(&rotation, pass, rotation.spec.rotation_count.max(1)).await,
            Due::Rotation => rotate(&rotation, pass, &gateways).await,
            Due::In(wait) => Ok(Action::requeue(wait)),
        }
    }
}

async fn ensure_mapping(
    rotation: VpnKeyRotation,
    pass: &Pass,
    gateways: &[WorkerSliceGateway],
) -> Result<VpnKeyRotation, ReconcileError> {
    let mut mapping: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for gateway in gateways {
        let cluster = gateway.labels().get(naming::WORKER_CLUSTER_LABEL).cloned().unwrap_or_default();
        mapping.entry(cluster).or_default().push(gateway.name_any());
    }
    for names in mapping.values_mut() {
        names.sort();
    }
    let before = &rotation.spec.cluster_gateway_mapping;
    if *before == mapping {
        return Ok(rotation);
    }
    let gone = before.keys().filter(|cluster| !mapping.contains_key(*cluster));
    let mut patch: serde_json::Map<_, _> = gone.map(|cluster| (cluster.clone(), json!(null))).collect();
    patch.extend(mapping.iter().map(|(cluster, names)| (cluster.clone(), json!(names))));
    pass.merge(&rotation, &json!({"spec": {"clusterGatewayMapping": patch}})).await
}

async fn rotate(
    rotation: &VpnKeyRotation,
    pass: &Pass,
    gateways: &[WorkerSliceGateway],
) -> Result<Action, ReconcileError> {
    let namespace = rotation.namespace().unwrap_or_default();
    info!(
        slice = rotation.spec.slice_name,
        namespace, "the keys of this slice have expired; making new ones"
    );
    for gateway in gateways {
        if let Some(secret) =
            pass.get::<Secret>(&namespace, &gateway.spec.gateway_credentials.secret_name).await?
        {
            pass.merge(&secret, &json!({ "data": keys() })).await?;
        }
    }
    set_times(rotation, pass, rotation.spec.rotation_count.saturating_add(1)).await
}

/// The keys are new from now on.
async fn set_times(rotation: &VpnKeyRotation, pass: &Pass, count: u32) -> Result<Action, ReconcileError> {
    let created = Timestamp::now();
    let expires = expiry(created, rotation.spec.rotation_interval, pass.settings().rotation_day);
    let spec = json!({
        "certificateCreationTime": Time(created),
        "certificateExpiryTime": Time(expires),
        "rotationCount": count,
    });
    // The version makes sure that the same expiry is not counted twice.
    let patch = json!({"metadata": {"resourceVersion": rotation.resource_version()}, "spec": spec});
    pass.merge(rotation, &patch).await?;
    match due(Some(expires), created) {
        Due::In(wait) => Ok(Action::requeue(wait)),
        Due::First | Due::Rotation => Ok(Action::await_change()),
    }
}
