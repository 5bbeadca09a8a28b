//! The operator's kinds, as the API server knows them.
//!
//! The harness knows an operator only from outside: its objects are read and written without its types.

use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::Value;

use crate::wait::Unmet;

/// API group of the operator (operator contract §4.1).
pub const GROUP: &str = "garage.rajsingh.info";

/// GarageClusters of `namespace`, in the stored version.
#[must_use]
pub fn clusters(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client, namespace, &resource("v1beta2", "GarageCluster", "garageclusters"))
}

/// GarageNodes of `namespace`.
#[must_use]
pub fn nodes(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client, namespace, &resource("v1beta1", "GarageNode", "garagenodes"))
}

/// GarageClusters of all namespaces, in the stored version.
#[must_use]
pub fn all_clusters(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &resource("v1beta2", "GarageCluster", "garageclusters"))
}

/// GarageNodes of all namespaces.
#[must_use]
pub fn all_nodes(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &resource("v1beta1", "GarageNode", "garagenodes"))
}

fn resource(version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{GROUP}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// The value at a JSON pointer in an object: `/status/nodeId`.
#[must_use]
pub fn field<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a Value> {
    object.data.pointer(pointer)
}

/// The string at a JSON pointer in an object.
#[must_use]
pub fn text<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a str> {
    field(object, pointer)?.as_str()
}

/// A condition of an object: its status and reason.
#[must_use]
pub fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = field(object, "/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some((found["status"].as_str()?, found["reason"].as_str()?))
}

/// A wait condition: the object has the condition `kind` with `status` and `reason`.
pub fn has_condition(
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
) -> impl Fn(Option<&DynamicObject>) -> Result<(), Unmet> {
    move |object| {
        let object = object.ok_or("it does not exist")?;
        match condition(object, kind) {
            Some(found) if found == (status, reason) => Ok(()),
            _ => Err(conditions_in_words(object)),
        }
    }
}

/// Every condition of an object in a line, for people.
#[must_use]
pub fn conditions_in_words(object: &DynamicObject) -> String {
    let conditions = field(object, "/status/conditions").and_then(Value::as_array);
    let word = |condition: &Value| {
        let part = |key: &str| condition[key].as_str().unwrap_or("?").to_owned();
        format!("{}={}/{}: {}", part("type"), part("status"), part("reason"), part("message"))
    };
    match conditions {
        Some(all) if !all.is_empty() => all.iter().map(word).collect::<Vec<_>>().join("; "),
        _ => "no conditions".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(status: &Value) -> DynamicObject {
        let mut object =
            DynamicObject::new("garage", &resource("v1beta2", "GarageCluster", "garageclusters"));
        object.data = json!({ "status": status });
        object
    }

    #[test]
    fn a_condition_must_match_in_status_and_reason() {
        let holds = has_condition("AwaitingLayoutWriter", "True", "NodesWithoutRole");
        let with = |reason: &str| {
            object(&json!({"conditions": [
                {"type": "AwaitingLayoutWriter", "status": "True", "reason": reason, "message": "m"}
            ]}))
        };
        assert_eq!(holds(Some(&with("NodesWithoutRole"))), Ok(()));
        assert_eq!(
            holds(Some(&with("PendingTombstones"))),
            Err("AwaitingLayoutWriter=True/PendingTombstones: m".to_owned())
        );
        assert_eq!(holds(Some(&object(&json!({})))), Err("no conditions".to_owned()));
        assert_eq!(holds(None), Err("it does not exist".to_owned()));
    }
}
