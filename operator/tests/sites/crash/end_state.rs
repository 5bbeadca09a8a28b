//! What is compared in the end: all objects and the layout, without what differs from run to run.

use std::collections::BTreeMap;

use harness::site::Site::East;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::api::{Api, ListParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::stage::Scene;
use crate::stage::cases::FIRST;

/// Fields that differ from run to run without meaning anything: clocks, counters, random names. `connectedNodes` counts a pod
/// that has just gone until Garage drops the connection; that those of the layout are up is in `storageNodesUp`.
const VOLATILE: [&str; 17] = [
    "clusterIP",
    "clusterIPs",
    "completedAt",
    "connectedNodes",
    "controller-revision-hash",
    "creationTimestamp",
    "generation",
    "lastTransitionTime",
    "managedFields",
    "observedGeneration",
    "observedPodUid",
    "quietSince",
    "resourceVersion",
    "startedAt",
    "uid",
    "baseline",
    "repairs",
];

/// Fields that hold layout versions.
const VERSIONS: [&str; 4] = ["baselineVersion", "lastAppliedVersion", "layoutVersion", "version"];

/// Every object of a scene by kind and name, and the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndState(BTreeMap<String, String>);

impl EndState {
    /// How the scene is now; layout versions are counted from `begin`, with which its procedure began.
    pub async fn of(scene: &Scene, begin: u64) -> Self {
        let mut found = Vec::new();
        let namespace = scene.namespace();
        let client = || scene.client(East);
        let clusters = list("GarageCluster", scene.clusters(East)).await;
        let nodes = list("GarageNode", scene.nodes(East)).await;
        let names = names(scene, &clusters, &nodes).await;
        found.extend(clusters);
        found.extend(nodes);
        found.extend(list("StatefulSet", Api::<StatefulSet>::namespaced(client(), namespace)).await);
        found.extend(list("Service", Api::<Service>::namespaced(client(), namespace)).await);
        found.extend(list("ConfigMap", Api::<ConfigMap>::namespaced(client(), namespace)).await);
        found.extend(list("Secret", Api::<Secret>::namespaced(client(), namespace)).await);
        found.extend(list("Pod", Api::<Pod>::namespaced(client(), namespace)).await);
        let mut layout = scene.layout(East, FIRST).await;
        // Where partitions lie is Garage's own choice.
        for role in layout["roles"].as_array_mut().unwrap() {
            let role = role.as_object_mut().unwrap();
            role.retain(|key, _| ["id", "zone", "tags", "capacity"].contains(&key.as_str()));
        }
        found.push(("layout".to_owned(), layout));
        Self(found.into_iter().map(|(name, value)| (name, normal(value, &names, begin))).collect())
    }

    /// Where this state differs from the wanted one, in a few lines; `None` if nowhere.
    pub fn difference(&self, wanted: &Self) -> Option<String> {
        let names = self.0.keys().chain(wanted.0.keys());
        let mut lines = Vec::new();
        for name in names {
            let (own, other) = (self.0.get(name), wanted.0.get(name));
            if own != other {
                lines.push(format!("{name}: {}", where_differs(own, other)));
            }
        }
        lines.dedup();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// The first places where two texts differ, with what is around them.
fn where_differs(own: Option<&String>, wanted: Option<&String>) -> String {
    let (Some(own), Some(wanted)) = (own, wanted) else {
        return if own.is_some() { "should not be there".to_owned() } else { "is missing".to_owned() };
    };
    let same = own.bytes().zip(wanted.bytes()).take_while(|(own, wanted)| own == wanted).count();
    let around = |text: &str| {
        let bytes = &text.as_bytes()[same.saturating_sub(80)..text.len().min(same + 200)];
        String::from_utf8_lossy(bytes).into_owned()
    };
    format!("\n  is     …{}…\n  wanted …{}…", around(own), around(wanted))
}

async fn list<K>(kind: &str, api: Api<K>) -> Vec<(String, Value)>
where
    K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let objects = api.list(&ListParams::default()).await.unwrap();
    let values = objects.items.into_iter().map(|object| serde_json::to_value(object).unwrap());
    values
        .filter(|value| value["metadata"]["name"] != "kube-root-ca.crt")
        .map(|value| (format!("{kind} {}", value["metadata"]["name"].as_str().unwrap()), value))
        .map(|(name, value)| if kind == "Pod" { (name, summary(&value)) } else { (name, value) })
        .map(|(name, value)| if is_token(&name) { token(&value) } else { (name, value) })
        .collect()
}

/// The Secret with the operator's dynamic admin token: its name and its data differ from run to run.
fn is_token(name: &str) -> bool {
    name.starts_with("Secret garage-operator-")
}

fn token(secret: &Value) -> (String, Value) {
    let keys: Vec<&String> = secret["data"].as_object().unwrap().keys().collect();
    let ready = secret["metadata"]["annotations"].as_object().is_some_and(|all| !all.is_empty());
    let summary = serde_json::json!({"keys": keys, "ready": ready, "immutable": secret["immutable"]});
    ("Secret with the admin token".to_owned(), summary)
}

/// A pod is what its StatefulSet makes it; here it only matters whether it runs.
fn summary(pod: &Value) -> Value {
    let deleted = pod["metadata"].get("deletionTimestamp").is_some();
    serde_json::json!({"phase": pod["status"]["phase"], "deleted": deleted})
}

/// Texts that differ from run to run, with what stands for them: namespaces, identities, tokens.
async fn names(
    scene: &Scene,
    clusters: &[(String, Value)],
    nodes: &[(String, Value)],
) -> Vec<(String, String)> {
    let mut names = vec![(scene.namespace().to_owned(), "NAMESPACE".to_owned())];
    for (name, object) in clusters.iter().chain(nodes) {
        let uid = object["metadata"]["uid"].as_str().unwrap();
        names.push((uid.to_owned(), format!("UID of {name}")));
        if let Some(id) = object["status"]["nodeId"].as_str() {
            names.push((id.to_owned(), format!("ID of {name}")));
        }
    }
    for node in scene.mesh_nodes().await {
        if let Some(address) = node["address"].as_str() {
            names.push((address.to_owned(), "ADDRESS".to_owned()));
        }
    }
    names
}

fn normal(mut value: Value, names: &[(String, String)], begin: u64) -> String {
    strip(&mut value);
    count_from(begin, &mut value);
    let mut text = value.to_string();
    for (name, meaning) in names {
        text = text.replace(name, meaning);
    }
    // Lists whose order means nothing: names of nodes stand for random identities by now.
    let mut value: Value = serde_json::from_str(&text).unwrap();
    order(&mut value);
    value.to_string()
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !VOLATILE.contains(&key.as_str()));
            if let Some(Value::Object(annotations)) = fields.get_mut("annotations") {
                // What wakes the operator in tests.
                annotations.remove("tests/poke");
                if annotations.is_empty() {
                    fields.remove("annotations");
                }
            }
            // Secrets of a scene are random.
            if fields.get("kind").is_some_and(|kind| kind == "Secret") {
                fields.remove("data");
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The first layout of a scene may take one version or two, as its pods come.
fn count_from(begin: u64, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_u64() {
                    Some(number) if VERSIONS.contains(&key.as_str()) => {
                        *value = number.wrapping_sub(begin).into();
                    }
                    _ => count_from(begin, value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| count_from(begin, item)),
        _ => {}
    }
}

fn order(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(order),
        Value::Array(items) => {
            items.iter_mut().for_each(order);
            items.sort_by_key(ToString::to_string);
        }
        _ => {}
    }
}
