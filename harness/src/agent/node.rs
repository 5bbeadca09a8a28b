//! The Node object.
//!
//! Pods are bound to it so that their deletion is graceful, as under a kubelet: a pod that is bound to no node
//! vanishes at once. Nobody watches its health; no controller that would is run.

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::PostParams,
    runtime::watcher::{self, Event, watcher},
};
use serde_json::{Value, json};

use super::both_sites::AgentError;
use crate::{site::Site, toolchain::pins, wait::WatchBackoff};

/// The Node's name.
pub fn name(site: Site) -> String {
    format!("onewriter-{site}")
}

/// The Node as it is created: ready, and larger than anything that is asked of it.
pub fn document(site: Site) -> Value {
    let name = name(site);
    let room = json!({"cpu": "1000", "memory": "4Ti", "ephemeral-storage": "100Ti", "pods": "100000"});
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture,
            },
        },
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "PodAgent", "message": "pods are played"}],
            "nodeInfo": {
                "architecture": architecture, "operatingSystem": "linux",
                "kubeletVersion": format!("v{}", pins::kubernetes_version()),
                "kubeProxyVersion": "", "containerRuntimeVersion": "onewriter://1", "osImage": "", "kernelVersion": "",
                "machineID": name, "systemUUID": name, "bootID": name,
            },
        },
    })
}

/// Creates the Node if it is not there.
pub(super) async fn ensure(client: &Client, site: Site) -> Result<(), AgentError> {
    let failed = |source: kube::Error| AgentError::Node { site, source };
    let node: Node =
        serde_json::from_value(document(site)).map_err(kube::Error::SerdeError).map_err(failed)?;
    match Api::<Node>::all(client.clone()).create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        result => result.map(drop).map_err(failed),
    }
}

/// Creates the Node again whenever it is deleted. Never returns.
pub(super) async fn keep(client: Client, site: Site) {
    use futures::StreamExt as _;
    use kube::runtime::WatchStreamExt as _;

    let only = watcher::Config::default().fields(&format!("metadata.name={}", name(site)));
    let mut events = watcher(Api::<Node>::all(client.clone()), only).backoff(WatchBackoff::default()).boxed();
    while let Some(event) = events.next().await {
        let result = match event {
            Ok(Event::Delete(_)) => ensure(&client, site).await,
            _ => Ok(()),
        };
        if let Err(error) = result {
            tracing::warn!(%site, error = crate::failure::chain(&error), "the Node cannot be created again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_is_a_node_and_ready() {
        let node: Node = serde_json::from_value(document(Site::West)).unwrap();
        assert_eq!(node.metadata.name.as_deref(), Some("onewriter-west"));
        let ready = &node.status.unwrap().conditions.unwrap()[0];
        assert_eq!((ready.type_.as_str(), ready.status.as_str()), ("Ready", "True"));
    }
}
