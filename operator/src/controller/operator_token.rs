//! The dynamic admin token of a cluster: made by the operator, kept in a Secret, used for calls through the Service once
//! every pod has proved that it accepts it (operator contract §2.2).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::error::ReconcileError;
use crate::api::naming::OPERATOR_TOKEN_READY;
use crate::api::v1beta2::GarageCluster;
use crate::garage::{NewToken, Token};
use crate::resources::labels::meta;

/// Key of the token in the Secret.
const TOKEN: &str = "admin-token";
/// Key of its identity.
const TOKEN_ID: &str = "token-id";

/// A token as its Secret holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its identity.
    pub id: String,
    /// The token itself.
    pub token: Token,
    /// The pods that proved it; `None` while some still have to.
    pub proved: Option<String>,
    uid: Option<String>,
}

/// The name of the token in Garage.
pub fn label(cluster: &GarageCluster) -> String {
    let (namespace, uid) = (cluster.namespace().unwrap_or_default(), cluster.uid().unwrap_or_default());
    format!("garage-operator:{namespace}/{}:{uid}", cluster.name_any())
}

/// The name of its Secret: the same after a crash, another one for a cluster that was made anew.
pub fn secret_name(cluster: &GarageCluster) -> String {
    let digest = Sha256::digest(cluster.uid().unwrap_or_default());
    format!("{}-operator-{}", cluster.name_any(), hex::encode(&digest[..4]))
}

/// What stands for a set of pods: it changes when one of them is replaced, comes or goes.
pub fn pod_set(pods: &BTreeMap<String, Pod>) -> String {
    let mut digest = Sha256::new();
    for (node, pod) in pods {
        digest.update(format!("{node}={}\n", pod.uid().unwrap_or_default()));
    }
    hex::encode(&digest.finalize()[..8])
}

/// Whether a cluster has nodes of its own that can hold a token.
pub fn has_own(cluster: &GarageCluster) -> bool {
    cluster.spec.storage.is_some() && cluster.spec.connect_to.is_none()
}

fn secrets(client: &Client, cluster: &GarageCluster) -> Api<Secret> {
    Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default())
}

/// The token of a cluster, if it has one.
pub async fn read(client: &Client, cluster: &GarageCluster) -> Result<Option<Stored>, ReconcileError> {
    let name = secret_name(cluster);
    let found = secrets(client, cluster).get_opt(&name).await;
    Ok(found.map_err(ReconcileError::kube(format!("read Secret {name}")))?.as_ref().and_then(stored))
}

fn stored(secret: &Secret) -> Option<Stored> {
    let text = |key: &str| {
        let bytes = secret.data.as_ref()?.get(key)?;
        String::from_utf8(bytes.0.clone()).ok()
    };
    Some(Stored {
        id: text(TOKEN_ID)?,
        token: Token::new(&text(TOKEN)?),
        proved: secret.annotations().get(OPERATOR_TOKEN_READY).cloned(),
        uid: secret.uid(),
    })
}

/// Keeps a new token; answers `None` if there is another one already.
pub async fn store(
    client: &Client,
    cluster: &GarageCluster,
    made: &NewToken,
) -> Result<Option<Stored>, ReconcileError> {
    let name = secret_name(cluster);
    let secret = Secret {
        metadata: meta(cluster, name.clone()),
        string_data: Some(BTreeMap::from([
            (TOKEN.to_owned(), made.token.for_secret().to_owned()),
            (TOKEN_ID.to_owned(), made.id.clone()),
        ])),
        immutable: Some(true),
        ..Secret::default()
    };
    match secrets(client, cluster).create(&PostParams::default(), &secret).await {
        Ok(created) => Ok(stored(&created)),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(None),
        Err(error) => Err(ReconcileError::kube(format!("create Secret {name}"))(error)),
    }
}

/// Records that these pods accept the token, or with `None` that it has to be proved again.
pub async fn mark(
    client: &Client,
    cluster: &GarageCluster,
    proved: Option<&str>,
) -> Result<(), ReconcileError> {
    let name = secret_name(cluster);
    let value = proved.map_or(Value::Null, Value::from);
    let patch = json!({ "metadata": { "annotations": { OPERATOR_TOKEN_READY: value } } });
    let patched = secrets(client, cluster).patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map(drop).map_err(ReconcileError::kube(format!("annotate Secret {name}")))
}

/// Drops the Secret of a token that Garage does not know any more.
pub async fn discard(
    client: &Client,
    cluster: &GarageCluster,
    stored: &Stored,
) -> Result<(), ReconcileError> {
    let name = secret_name(cluster);
    let this_one = Preconditions { uid: stored.uid.clone(), resource_version: None };
    let params = DeleteParams { preconditions: Some(this_one), ..DeleteParams::default() };
    match secrets(client, cluster).delete(&name, &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(ReconcileError::kube(format!("delete Secret {name}"))(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::{pod_set, secret_name, stored};
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::{Pod, Secret};
    use std::collections::BTreeMap;

    fn pod(uid: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.uid = Some(uid.into());
        pod
    }

    #[test]
    fn a_replaced_pod_makes_another_set() {
        let set = |uids: &[&str]| {
            let named = |(number, uid): (usize, &&str)| (format!("n{number}"), pod(uid));
            pod_set(&uids.iter().enumerate().map(named).collect())
        };
        assert_eq!(set(&["a", "b"]), set(&["a", "b"]));
        assert_ne!(set(&["a", "b"]), set(&["a", "c"]));
        assert_ne!(set(&["a", "b"]), set(&["a"]));
    }

    #[test]
    fn a_cluster_that_was_made_anew_has_another_secret() {
        let mut cluster = GarageCluster::new("garage", GarageClusterSpec::default());
        cluster.metadata.uid = Some("1".into());
        let before = secret_name(&cluster);
        assert!(before.starts_with("garage-operator-") && before.len() == "garage-operator-".len() + 8);
        cluster.metadata.uid = Some("2".into());
        assert_ne!(secret_name(&cluster), before);
    }

    #[test]
    fn a_secret_without_its_keys_holds_no_token() {
        let mut secret = Secret::default();
        assert_eq!(stored(&secret), None);
        let data = [("admin-token", "ab.cd"), ("token-id", "ab")];
        let bytes = |(key, value): (&str, &str)| (key.to_owned(), ByteString(value.as_bytes().to_vec()));
        secret.data = Some(data.into_iter().map(bytes).collect::<BTreeMap<_, _>>());
        let found = stored(&secret).unwrap();
        assert_eq!((found.id.as_str(), found.proved.as_deref()), ("ab", None));
    }
}
