//! What scenarios wait for, in their own words.

use futures::future::try_join_all;
use harness::failure::Failure;
use harness::garage::admin::{self, Layout};
use harness::garage::mesh::Mesh;
use harness::garage::objects;
use harness::scenario::Scope;
use harness::site::Site;
use harness::wait;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DynamicObject;

use crate::fixture::CLUSTER;

/// Waits until the cluster of `site` has the condition `kind` with `status` and `reason`.
pub async fn condition(
    scope: &Scope,
    site: Site,
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
) -> Result<DynamicObject, Failure> {
    let awaited = format!("GarageCluster {CLUSTER} with {kind}={status}/{reason}");
    scope.recorder.step(format!("await {awaited} on {site}"));
    let api = objects::clusters(scope.client(site), &scope.namespace);
    let holds = objects::has_condition(kind, status, reason);
    let found = wait::until(site, api, CLUSTER, awaited.clone(), scope.limits.step, holds).await?;
    found.ok_or_else(|| Failure::Claim { site, claim: awaited, seen: "it is gone".to_owned() })
}

/// Waits until each of `nodes` at `site` reports that it has a role in the layout.
pub async fn all_in_layout(scope: &Scope, site: Site, nodes: &[String]) -> Result<(), Failure> {
    scope.recorder.step(format!("await roles of {} on {site}", nodes.join(", ")));
    let api = objects::nodes(scope.client(site), &scope.namespace);
    let in_layout = |node: Option<&DynamicObject>| {
        let node = node.ok_or("it does not exist")?;
        match objects::field(node, "/status/inLayout").and_then(serde_json::Value::as_bool) {
            Some(true) => Ok(()),
            _ => Err(format!("inLayout is not true; {}", objects::conditions_in_words(node))),
        }
    };
    let await_one = |name: &String| {
        let awaited = format!("GarageNode {name} in the layout");
        let (api, name) = (api.clone(), name.clone());
        async move { wait::until(site, api, &name, awaited, scope.limits.step, in_layout).await }
    };
    try_join_all(nodes.iter().map(await_one)).await?;
    Ok(())
}

/// Waits until the operator of `site` knows the identity of each of `nodes`: from then on it could assign roles.
pub async fn identities(scope: &Scope, site: Site, nodes: &[String]) -> Result<Vec<String>, Failure> {
    scope.recorder.step(format!("await identities of {} on {site}", nodes.join(", ")));
    try_join_all(nodes.iter().map(|name| identity(scope, site, name))).await
}

/// Waits until the operator of `site` knows the identity of node `name`, and returns it.
pub async fn identity(scope: &Scope, site: Site, name: &str) -> Result<String, Failure> {
    let awaited = format!("identity of GarageNode {name}");
    let api = objects::nodes(scope.client(site), &scope.namespace);
    let known = |node: Option<&DynamicObject>| {
        let node = node.ok_or("it does not exist")?;
        objects::text(node, "/status/nodeId").map(drop).ok_or_else(|| objects::conditions_in_words(node))
    };
    let node = wait::until(site, api, name, awaited.clone(), scope.limits.step, known).await?;
    let id = node.as_ref().and_then(|node| objects::text(node, "/status/nodeId")).map(str::to_owned);
    id.ok_or_else(|| Failure::Claim { site, claim: awaited, seen: "it is gone".to_owned() })
}

/// Waits until the pod of node `name` has an address, and returns it.
pub async fn address(scope: &Scope, site: Site, name: &str) -> Result<String, Failure> {
    let pod = format!("{name}-0");
    let awaited = format!("address of pod {pod}");
    let api: Api<Pod> = Api::namespaced(scope.client(site), &scope.namespace);
    let has_address = |pod: Option<&Pod>| {
        let pod = pod.ok_or("it does not exist")?;
        pod_ip(pod).map(drop).ok_or_else(|| "it has no address".to_owned())
    };
    let pod = wait::until(site, api, &pod, awaited.clone(), scope.limits.step, has_address).await?;
    let ip = pod.as_ref().and_then(pod_ip);
    ip.ok_or_else(|| Failure::Claim { site, claim: awaited, seen: "it is gone".to_owned() })
}

fn pod_ip(pod: &Pod) -> Option<String> {
    pod.status.as_ref()?.pod_ip.clone()
}

/// The layouts that the nodes `names` of `site` hold, read from the nodes themselves.
pub async fn layouts(
    scope: &Scope,
    mesh: &Mesh,
    site: Site,
    names: &[String],
) -> Result<Vec<Layout>, Failure> {
    scope.recorder.step(format!("read the layouts of {} on {site}", names.join(", ")));
    let read = |name: &String| {
        let name = name.clone();
        async move {
            let address = address(scope, site, &name).await?;
            let layout = admin::layout(site, mesh, &address).await?;
            layout.record(&scope.recorder, &address);
            Ok(layout)
        }
    };
    try_join_all(names.iter().map(read)).await
}
