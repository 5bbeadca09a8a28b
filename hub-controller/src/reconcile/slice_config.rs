//! `SliceConfig`: what its clusters get of it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::json;
use tracing::warn;

use super::adoption::let_go;
use super::error::ReconcileError;
use super::pass::Pass;
use super::run::Reconciled;
use super::{service_export_config, worker_slice_config, worker_slice_gateway};
use crate::api::controller::{
    DeploymentMode, ServiceExportConfig, SliceConfig, VpnKeyRotation, VpnKeyRotationSpec,
};
use crate::api::kind::HubKind;
use crate::api::naming::{self, SLICE_LABEL, owned_by};
use crate::api::worker::{WorkerSliceConfig, WorkerSliceGateway};
use crate::decision::{gateways, octets, slice_rules};

impl Reconciled for SliceConfig {
    const KIND: HubKind = HubKind::SliceConfig;

    async fn reconcile(&self, pass: &Pass) -> Result<Action, ReconcileError> {
        let namespace = self.namespace().unwrap_or_default();
        if self.metadata.deletion_timestamp.is_some() {
            return delete(self, pass, &namespace).await;
        }
        let broken = slice_rules::broken(&self.spec);
        if !broken.is_empty() {
            let message = broken.join("; ");
            warn!(slice = self.name_any(), namespace, message, "this SliceConfig is not carried out");
            pass.warn(self, "InvalidSliceConfig", &message).await?;
            return Ok(Action::await_change());
        }
        if !pass.is_project_namespace(&namespace).await? {
            warn!(slice = self.name_any(), namespace, "this is no project namespace; nothing is done in it");
            return Ok(Action::await_change());
        }
        ensure_worker_configs(self, pass, &namespace).await?;
        if self.spec.overlay_network_deployment_mode != DeploymentMode::NoNetwork {
            ensure_gateways(self, pass, &namespace).await?;
            ensure_rotation(self, pass, &namespace).await?;
        }
        let label = [(SLICE_LABEL.to_owned(), self.name_any())].into();
        let exports = pass.list::<ServiceExportConfig>(&namespace, &label).await?;
        service_export_config::ensure_imports(pass, self, &exports).await?;
        Ok(Action::await_change())
    }
}

fn owner(slice: &SliceConfig) -> BTreeMap<String, String> {
    owned_by("SliceConfig", &slice.name_any())
}

async fn delete(slice: &SliceConfig, pass: &Pass, namespace: &str) -> Result<Action, ReconcileError> {
    for gateway in pass.list::<WorkerSliceGateway>(namespace, &owner(slice)).await? {
        pass.delete(&gateway).await?;
    }
    for config in pass.list::<WorkerSliceConfig>(namespace, &owner(slice)).await? {
        pass.delete(&config).await?;
    }
    pass.delete_named::<VpnKeyRotation>(namespace, &slice.name_any()).await?;
    let_go(pass, HubKind::SliceConfig, slice).await
}

/// One `WorkerSliceConfig` per cluster, each with an octet that stays.
async fn ensure_worker_configs(
    slice: &SliceConfig,
    pass: &Pass,
    namespace: &str,
) -> Result<(), ReconcileError> {
    let existing = pass.list::<WorkerSliceConfig>(namespace, &owner(slice)).await?;
    let mut taken = BTreeMap::new();
    for config in existing {
        let cluster = config.labels().get(naming::WORKER_CLUSTER_LABEL).cloned().unwrap_or_default();
        if !slice.spec.clusters.contains(&cluster) {
            pass.delete(&config).await?;
        } else if let Some(octet) = config.spec.octet {
            taken.insert(cluster, octet);
        }
    }
    let Some(given) = octets::allocate(&slice.spec.clusters, &taken) else {
        return pass.warn(slice, "NoOctetLeft", "all places in the slice's network are taken").await;
    };
    for (cluster, octet) in given {
        let wanted = worker_slice_config::wanted(slice, &cluster, octet);
        match pass.get::<WorkerSliceConfig>(namespace, &wanted.name_any()).await? {
            None => pass.create(&wanted).await.map(drop)?,
            Some(live) => worker_slice_config::refresh(pass, &live, &wanted).await?,
        }
    }
    Ok(())
}

/// A pair of gateways and their keys between every two clusters.
async fn ensure_gateways(slice: &SliceConfig, pass: &Pass, namespace: &str) -> Result<(), ReconcileError> {
    let tunnels = gateways::tunnels(&slice.spec.clusters);
    let name = slice.name_any();
    let pair = |tunnel: &gateways::Tunnel| {
        let (server, client) = (&tunnel.server, &tunnel.client);
        [
            naming::worker_slice_gateway(&name, server, client),
            naming::worker_slice_gateway(&name, client, server),
        ]
    };
    let wanted: BTreeSet<String> = tunnels.iter().flat_map(pair).collect();
    let mut live = BTreeMap::new();
    for gateway in pass.list::<WorkerSliceGateway>(namespace, &owner(slice)).await? {
        if wanted.contains(&gateway.name_any()) {
            live.insert(gateway.name_any(), gateway);
        } else {
            pass.delete(&gateway).await?;
        }
    }
    let taken: Vec<u32> = live.values().map(|gateway| gateway.spec.gateway_number).collect();
    let mut free = gateways::free_numbers(&taken, tunnels.len()).into_iter();
    for tunnel in &tunnels {
        let names = pair(tunnel);
        let number = names.iter().find_map(|name| live.get(name)).map(|gateway| gateway.spec.gateway_number);
        let Some(number) = number.or_else(|| free.next()) else { continue };
        for wanted in worker_slice_gateway::pair(slice, tunnel, number) {
            match live.get(&wanted.name_any()) {
                None => pass.create(&wanted).await.map(drop)?,
                Some(found) => worker_slice_gateway::refresh(pass, found, &wanted).await?,
            }
            ensure_keys(pass, namespace, &wanted.name_any(), &owner(slice)).await?;
        }
    }
    Ok(())
}

/// The keys of a gateway, in the Secret of its name. Random bytes stand for certificates (hub contract, section 4: a
/// declared deviation).
async fn ensure_keys(
    pass: &Pass,
    namespace: &str,
    gateway: &str,
    owner: &BTreeMap<String, String>,
) -> Result<(), ReconcileError> {
    if pass.get::<Secret>(namespace, gateway).await?.is_some() {
        return Ok(());
    }
    let metadata = ObjectMeta {
        name: Some(gateway.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(owner.clone()),
        ..ObjectMeta::default()
    };
    let secret =
        Secret { metadata, type_: Some("Opaque".to_owned()), data: Some(keys()), ..Secret::default() };
    pass.create(&secret).await.map(drop)
}

/// New keys.
pub(super) fn keys() -> BTreeMap<String, ByteString> {
    let random = || ByteString(rand::random::<[u8; 32]>().to_vec());
    ["ca.crt", "tls.crt", "tls.key"].map(|name| (name.to_owned(), random())).into()
}

/// When the keys were made, and for whom.
async fn ensure_rotation(slice: &SliceConfig, pass: &Pass, namespace: &str) -> Result<(), ReconcileError> {
    let name = slice.name_any();
    let Some(live) = pass.get::<VpnKeyRotation>(namespace, &name).await? else {
        let mut rotation = VpnKeyRotation::new(
            &name,
            VpnKeyRotationSpec {
                slice_name: name.clone(),
                rotation_interval: slice.spec.rotation_interval,
                clusters: slice.spec.clusters.clone(),
                rotation_count: 1,
                ..VpnKeyRotationSpec::default()
            },
        );
        rotation.metadata.namespace = Some(namespace.to_owned());
        rotation.metadata.labels = Some(owner(slice));
        return pass.create(&rotation).await.map(drop);
    };
    if live.spec.clusters == slice.spec.clusters
        && live.spec.rotation_interval == slice.spec.rotation_interval
    {
        return Ok(());
    }
    let spec = json!({"clusters": slice.spec.clusters, "rotationInterval": slice.spec.rotation_interval});
    pass.merge(&live, &json!({ "spec": spec })).await.map(drop)
}
