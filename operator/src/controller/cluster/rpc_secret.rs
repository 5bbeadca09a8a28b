//! The RPC secret that the operator generates where none is referenced (operator contract §2.3).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use rand::TryRngCore;
use rand::rngs::OsRng;

use super::super::error::ReconcileError;
use crate::api::naming;
use crate::api::secret::RPC_SECRET_KEY;
use crate::api::v1beta2::GarageCluster;
use crate::resources::labels::meta;

/// Creates the Secret once; an existing one is never touched.
pub(super) async fn ensure(client: &Client, cluster: &GarageCluster) -> Result<(), ReconcileError> {
    let connect = cluster.spec.connect_to.as_ref().and_then(|connect| connect.rpc_secret_ref.as_ref());
    if cluster.spec.network.rpc_secret_ref.is_some() || connect.is_some() {
        return Ok(());
    }
    let name = naming::generated_rpc_secret(&cluster.name_any());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    let read = secrets.get_opt(&name).await.map_err(ReconcileError::kube(format!("read Secret {name}")))?;
    if read.is_some() {
        return Ok(());
    }
    let mut bytes = [0_u8; 32];
    if OsRng.try_fill_bytes(&mut bytes).is_err() {
        // Without randomness there is no secret; the next pass tries again.
        return Ok(());
    }
    let secret = Secret {
        metadata: meta(cluster, name.clone()),
        string_data: Some(BTreeMap::from([(RPC_SECRET_KEY.to_owned(), hex::encode(bytes))])),
        immutable: Some(true),
        ..Secret::default()
    };
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(ReconcileError::kube(format!("create Secret {name}"))(error)),
    }
}
