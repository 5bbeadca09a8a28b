//! `WorkerSliceGateway`: one end of a tunnel.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::json;

use super::error::ReconcileError;
use super::pass::Pass;
use super::run::Reconciled;
use super::worker_slice_config::delete;
use crate::api::controller::SliceConfig;
use crate::api::kind::HubKind;
use crate::api::naming::{self, owned_by};
use crate::api::worker::{
    GatewayConfig, GatewayCredentials, GatewayHostType, WorkerSliceGateway, WorkerSliceGatewaySpec,
};
use crate::decision::gateways::{Tunnel, tunnels};

impl Reconciled for WorkerSliceGateway {
    const KIND: HubKind = HubKind::WorkerSliceGateway;

    async fn reconcile(&self, pass: &Pass) -> Result<Action, ReconcileError> {
        let namespace = self.namespace().unwrap_or_default();
        let slice = pass.get::<SliceConfig>(&namespace, &self.spec.slice_name).await?;
        let slice = slice.filter(|slice| slice.metadata.deletion_timestamp.is_none());
        let wanted = slice.as_ref().and_then(|slice| wanted(slice, self));
        if self.metadata.deletion_timestamp.is_some() {
            // The other end and the keys are of no use without this one.
            pass.delete_named::<Secret>(&namespace, &self.name_any()).await?;
            pass.delete_named::<Self>(&namespace, &self.spec.remote_gateway_config.gateway_name).await?;
            let parent = slice.filter(|_| wanted.is_some());
            return delete(self, pass, HubKind::WorkerSliceGateway, parent.as_ref()).await;
        }
        if let Some(wanted) = wanted {
            refresh(pass, self, &wanted).await?;
            if self.status.as_ref().and_then(|status| status.gateway_number) != Some(self.spec.gateway_number)
            {
                pass.merge_status(self, &json!({"gatewayNumber": self.spec.gateway_number})).await?;
            }
        }
        Ok(Action::await_change())
    }
}

/// What the slice wants of this gateway, if it wants it.
fn wanted(slice: &SliceConfig, gateway: &WorkerSliceGateway) -> Option<WorkerSliceGateway> {
    let ends = tunnels(&slice.spec.clusters);
    let pairs = ends.iter().flat_map(|tunnel| pair(slice, tunnel, gateway.spec.gateway_number));
    pairs.into_iter().find(|wanted| wanted.name_any() == gateway.name_any())
}

/// Both ends of a tunnel.
pub(super) fn pair(slice: &SliceConfig, tunnel: &Tunnel, number: u32) -> [WorkerSliceGateway; 2] {
    let Tunnel { server, client } = tunnel;
    [
        end(slice, GatewayHostType::Server, server, client, number),
        end(slice, GatewayHostType::Client, client, server, number),
    ]
}

fn end(
    slice: &SliceConfig,
    side: GatewayHostType,
    local: &str,
    remote: &str,
    number: u32,
) -> WorkerSliceGateway {
    let slice_name = slice.name_any();
    let name = naming::worker_slice_gateway(&slice_name, local, remote);
    let config = |cluster: &str, gateway: &str| GatewayConfig {
        gateway_name: gateway.to_owned(),
        cluster_name: cluster.to_owned(),
        ..GatewayConfig::default()
    };
    let gateway_type =
        slice.spec.slice_gateway_provider.as_ref().and_then(|it| it.slice_gateway_type.clone());
    let other = naming::worker_slice_gateway(&slice_name, remote, local);
    let mut object = WorkerSliceGateway::new(
        &name,
        WorkerSliceGatewaySpec {
            slice_name: slice_name.clone(),
            gateway_type: Some(gateway_type.unwrap_or_else(|| "OpenVPN".to_owned())),
            gateway_host_type: side,
            gateway_connectivity_type: None,
            gateway_protocol: None,
            gateway_credentials: GatewayCredentials { secret_name: name.clone() },
            local_gateway_config: config(local, &name),
            remote_gateway_config: config(remote, &other),
            gateway_number: number,
        },
    );
    let namespace = slice.namespace().unwrap_or_default();
    let mut labels = owned_by("SliceConfig", &slice_name);
    for (key, value) in [
        (naming::WORKER_CLUSTER_LABEL, local),
        (naming::REMOTE_CLUSTER_LABEL, remote),
        (naming::SLICE_LABEL, &slice_name),
        (naming::WORKER_PROJECT_LABEL, &namespace),
        (naming::MANAGER_LABEL, "controller"),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    object.metadata.namespace = Some(namespace);
    object.metadata.labels = Some(labels);
    object
}

/// Gives the gateway what its parent wants, and leaves what workers report about its ends.
pub(super) async fn refresh(
    pass: &Pass,
    live: &WorkerSliceGateway,
    wanted: &WorkerSliceGateway,
) -> Result<(), ReconcileError> {
    let mut spec = wanted.spec.clone();
    for (to, from) in [
        (&mut spec.local_gateway_config, &live.spec.local_gateway_config),
        (&mut spec.remote_gateway_config, &live.spec.remote_gateway_config),
    ] {
        *to = GatewayConfig {
            gateway_name: to.gateway_name.clone(),
            cluster_name: to.cluster_name.clone(),
            ..from.clone()
        };
    }
    spec.gateway_connectivity_type.clone_from(&live.spec.gateway_connectivity_type);
    spec.gateway_protocol.clone_from(&live.spec.gateway_protocol);
    let labelled = wanted.labels().iter().all(|(key, value)| live.labels().get(key) == Some(value));
    if live.spec == spec && labelled {
        return Ok(());
    }
    pass.merge(live, &json!({"metadata": {"labels": wanted.labels()}, "spec": spec})).await.map(drop)
}
