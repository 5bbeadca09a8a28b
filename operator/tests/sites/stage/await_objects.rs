//! Waiting for objects, on a watch.

use std::time::Duration;

use harness::garage::objects;
use harness::site::Site;
use harness::wait;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::LIMIT;
use super::manifest::CLUSTER;
use super::operator::Operator;
use super::scene::Scene;

impl Scene {
    /// Waits until the scene's cluster has a condition.
    pub async fn until_condition(
        &self,
        site: Site,
        kind: &'static str,
        status: &'static str,
        reason: &'static str,
    ) -> DynamicObject {
        let awaited = format!("{kind}={status}/{reason}");
        self.until_cluster(site, &awaited, objects::has_condition(kind, status, reason)).await
    }

    /// Waits until a GarageNode has a condition.
    pub async fn until_node_condition(
        &self,
        site: Site,
        name: &str,
        kind: &'static str,
        status: &'static str,
        reason: &'static str,
    ) -> DynamicObject {
        let awaited = format!("{name} with {kind}={status}/{reason}");
        let holds = objects::has_condition(kind, status, reason);
        let found = wait::until(site, self.nodes(site), name, awaited, LIMIT, holds).await;
        found.unwrap_or_else(|missed| panic!("{missed}")).unwrap()
    }

    /// Waits until the scene's cluster is as `holds` says.
    pub async fn until_cluster(
        &self,
        site: Site,
        awaited: &str,
        holds: impl Fn(Option<&DynamicObject>) -> Result<(), String>,
    ) -> DynamicObject {
        let found = wait::until(site, self.clusters(site), CLUSTER, awaited, LIMIT, holds).await;
        found.unwrap_or_else(|missed| panic!("{missed}")).unwrap()
    }

    /// Waits until a field of the scene's cluster has a value.
    pub async fn until_field(&self, site: Site, pointer: &str, value: &Value) -> DynamicObject {
        let awaited = format!("{pointer} = {value}");
        self.until_cluster(site, &awaited, is_field(pointer, value)).await
    }

    /// Waits until a field of a GarageNode has a value.
    pub async fn until_node_field(
        &self,
        site: Site,
        name: &str,
        pointer: &str,
        value: &Value,
    ) -> DynamicObject {
        let awaited = format!("{name} with {pointer} = {value}");
        let found = wait::until(site, self.nodes(site), name, awaited, LIMIT, is_field(pointer, value)).await;
        found.unwrap_or_else(|missed| panic!("{missed}")).unwrap()
    }

    /// Waits until these GarageNodes have a role and are connected.
    pub async fn until_running(&self, site: Site, names: &[&str]) {
        for name in names {
            self.until_node_condition(site, name, "Ready", "True", "NodeReady").await;
        }
    }

    /// Waits until a GarageNode knows its identity, and returns it.
    pub async fn until_identity(&self, site: Site, name: &str) -> String {
        let known = |node: Option<&DynamicObject>| {
            let node = node.ok_or("it does not exist")?;
            objects::text(node, "/status/nodeId").map(drop).ok_or_else(|| objects::conditions_in_words(node))
        };
        let awaited = format!("identity of {name}");
        let node = wait::until(site, self.nodes(site), name, awaited, LIMIT, known).await;
        let node = node.unwrap_or_else(|missed| panic!("{missed}")).unwrap();
        objects::text(&node, "/status/nodeId").unwrap().to_owned()
    }

    /// Waits until a GarageNode is gone.
    pub async fn until_node_gone(&self, site: Site, name: &str) {
        let gone = wait::until_gone(site, self.nodes(site), name, name, LIMIT).await;
        gone.unwrap_or_else(|missed| panic!("{missed}"));
    }

    /// Waits until the scene's cluster is gone.
    pub async fn until_cluster_gone(&self, site: Site) {
        let gone = wait::until_gone(site, self.clusters(site), CLUSTER, CLUSTER, LIMIT).await;
        gone.unwrap_or_else(|missed| panic!("{missed}"));
    }

    /// Waits until the pod of a node has an address, and returns it.
    pub async fn address(&self, site: Site, node: &str) -> String {
        fn of(pod: &Pod) -> Option<&String> {
            pod.status.as_ref()?.pod_ip.as_ref()
        }
        let pods: Api<Pod> = Api::namespaced(self.client(site), self.namespace());
        let name = format!("{node}-0");
        let has_one = |pod: Option<&Pod>| {
            of(pod.ok_or("it does not exist")?).map(drop).ok_or_else(|| "it has no address".to_owned())
        };
        let pod = wait::until(site, pods, &name, format!("address of {name}"), LIMIT, has_one).await;
        of(&pod.unwrap_or_else(|missed| panic!("{missed}")).unwrap()).unwrap().clone()
    }

    /// Waits until the pod of a node is gone.
    pub async fn until_pod_gone(&self, site: Site, node: &str) {
        let pods: Api<Pod> = Api::namespaced(self.client(site), self.namespace());
        let name = format!("{node}-0");
        let gone = wait::until_gone(site, pods, &name, &name, LIMIT).await;
        gone.unwrap_or_else(|missed| panic!("{missed}"));
    }

    /// Wakes the operator and waits until it has looked at the cluster and at its nodes twice more: what it did not
    /// do then, it does not do.
    pub async fn after_two_more_looks(&self, site: Site, operator: &Operator) {
        let looks = async |kind: &str| {
            let metric = format!("garage_operator_reconciles_total{{kind=\"{kind}\",result=\"success\"}}");
            operator.metric(&metric).await
        };
        let (clusters, nodes) = (looks("GarageCluster").await, looks("GarageNode").await);
        let has_nodes =
            !self.nodes(site).list(&kube::api::ListParams::default()).await.unwrap().items.is_empty();
        let mut poke = 0;
        self.eventually("two more looks of the operator", async || {
            poke += 1;
            self.poke(site, poke).await;
            let enough = looks("GarageCluster").await >= clusters + 2.0
                && (!has_nodes || looks("GarageNode").await >= nodes + 2.0);
            enough.then_some(())
        })
        .await;
    }

    /// Edits an annotation that means nothing, of the cluster and of its nodes.
    pub async fn poke(&self, site: Site, number: u32) {
        use kube::api::{ListParams, Patch, PatchParams};
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"tests/poke": number.to_string()}}}));
        for api in [self.clusters(site), self.nodes(site)] {
            for object in api.list(&ListParams::default()).await.unwrap() {
                let name = object.metadata.name.unwrap_or_default();
                drop(api.patch(&name, &PatchParams::default(), &patch).await);
            }
        }
    }

    /// Waits for something that no watch can tell: asks again and again until it answers something.
    pub async fn eventually<T>(&self, awaited: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let asking = async {
            loop {
                if let Some(found) = ask().await {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = tokio::time::timeout(LIMIT, asking).await;
        waited.unwrap_or_else(|_| panic!("not in time: {awaited}"))
    }
}

fn is_field(pointer: &str, value: &Value) -> impl Fn(Option<&DynamicObject>) -> Result<(), String> {
    move |object| {
        let object = object.ok_or("it does not exist")?;
        let found = objects::field(object, pointer).unwrap_or(&Value::Null);
        if found == value {
            return Ok(());
        }
        Err(format!("{pointer} is {found}; {}", objects::conditions_in_words(object)))
    }
}
