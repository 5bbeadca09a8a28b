//! Files that clients connect with.

use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

use super::{error::LocalError, folder, pki::Credential};

/// Writes a kubeconfig that needs no other file: the authority, the certificate and the key are in it.
///
/// It is JSON, which is YAML, too. Its context is called `context`.
pub(super) fn write(
    path: PathBuf,
    context: &str,
    server: &str,
    authority: &str,
    credential: &Credential,
) -> Result<PathBuf, LocalError> {
    let encoded = |pem: &str| ByteString(pem.as_bytes().to_vec());
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": context,
            "cluster": {"server": server, "certificate-authority-data": encoded(authority)},
        }],
        "users": [{
            "name": context,
            "user": {
                "client-certificate-data": encoded(&credential.certificate),
                "client-key-data": encoded(&credential.key),
            },
        }],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "current-context": context,
    });
    folder::write(path, &format!("{document:#}\n"))
}

/// A client of the kubeconfig at `path`. Whatever proxy the environment names is for others: the server is local.
pub async fn client(path: &Path) -> Result<Client, LocalError> {
    connect(path).await.map_err(|source| LocalError::Kubeconfig { path: path.to_owned(), source })
}

async fn connect(path: &Path) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
    let document = Kubeconfig::read_from(path)?;
    let mut config = Config::from_custom_kubeconfig(document, &KubeConfigOptions::default()).await?;
    config.proxy_url = None;
    Ok(Client::try_from(config)?)
}
