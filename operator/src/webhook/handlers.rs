//! The routes of the webhook server.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::Json;
use axum::routing::post;
use serde_json::{Value, json};
use tracing::info;

use super::review::{AdmissionRequest, AdmissionResponse, ConversionRequest, Review, envelope};
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::admission::{Change, admit};
use crate::decision::conversion::{convert, forgotten_role};
use crate::decision::node_rules::{change_refusal, refusal};

/// Path of the conversion webhook.
pub const CONVERT: &str = "/convert";
/// Path of the validating webhook of `GarageClusters`.
pub const VALIDATE: &str = "/validate/garageclusters";
/// Path of the validating webhook of `GarageNodes`.
pub const VALIDATE_NODES: &str = "/validate/garagenodes";
/// Path of the mutating webhook of `GarageClusters`.
pub const MUTATE: &str = "/mutate/garageclusters";

/// Most that a review may be: a full list of objects to convert.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// All routes.
pub fn routes() -> Router {
    Router::new()
        .route(
            CONVERT,
            post(|Json(review): Json<Review<ConversionRequest>>| async move { Json(conversion(&review)) }),
        )
        .route(
            VALIDATE,
            post(|Json(review): Json<Review<AdmissionRequest>>| async move { Json(validation(&review)) }),
        )
        .route(
            VALIDATE_NODES,
            post(
                |Json(review): Json<Review<AdmissionRequest>>| async move { Json(node_validation(&review)) },
            ),
        )
        .route(
            MUTATE,
            post(|Json(review): Json<Review<AdmissionRequest>>| async move { Json(mutation(&review)) }),
        )
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
}

/// Answers a conversion review: all objects, or a failure that says why.
pub fn conversion(review: &Review<ConversionRequest>) -> Value {
    let request = &review.request;
    let converted: Result<Vec<Value>, _> =
        request.objects.iter().map(|object| convert(object.clone(), &request.desired_api_version)).collect();
    let response = match converted {
        Ok(objects) => {
            json!({ "uid": request.uid, "result": { "status": "Success" }, "convertedObjects": objects })
        }
        Err(error) => json!({
            "uid": request.uid,
            "result": { "status": "Failure", "message": error.to_string() },
            "convertedObjects": [],
        }),
    };
    envelope(review, &response)
}

/// Answers a validating admission review.
pub fn validation(review: &Review<AdmissionRequest>) -> Value {
    let request = &review.request;
    let response = match judge(request) {
        Ok(admission) => match admission.refusal {
            Some(refusal) => {
                info!(operation = %request.operation, refusal = %refusal, "change of a GarageCluster refused");
                AdmissionResponse::refuse(&request.uid, refusal, admission.warnings)
            }
            None => AdmissionResponse::allow(&request.uid, admission.warnings),
        },
        Err(why) => AdmissionResponse::refuse(&request.uid, why, Vec::new()),
    };
    envelope(review, &response)
}

fn judge(request: &AdmissionRequest) -> Result<crate::decision::admission::Admission, String> {
    let (old, new) = (cluster(request.old_object.as_ref())?, cluster(request.object.as_ref())?);
    match (request.operation.as_str(), &old, &new) {
        ("CREATE", _, Some(new)) => Ok(admit(Change::Create(new))),
        ("UPDATE", Some(old), Some(new)) => Ok(admit(Change::Update { old, new })),
        ("DELETE", Some(old), _) => Ok(admit(Change::Delete(old))),
        (operation, ..) => Err(format!("a review of {operation} without its objects cannot be judged")),
    }
}

/// Answers a validating admission review of a `GarageNode`.
pub fn node_validation(review: &Review<AdmissionRequest>) -> Value {
    let request = &review.request;
    let refusal = match (node(request.old_object.as_ref()), node(request.object.as_ref())) {
        (Err(why), _) | (_, Err(why)) => Some(why),
        (Ok(Some(old)), Ok(Some(new))) => change_refusal(&old, &new),
        (Ok(None), Ok(Some(new))) => refusal(&new.spec),
        (Ok(_), Ok(None)) => None,
    };
    let response = match refusal {
        Some(refusal) => {
            info!(operation = %request.operation, refusal = %refusal, "change of a GarageNode refused");
            AdmissionResponse::refuse(&request.uid, refusal, Vec::new())
        }
        None => AdmissionResponse::allow(&request.uid, Vec::new()),
    };
    envelope(review, &response)
}

fn node(object: Option<&Value>) -> Result<Option<GarageNode>, String> {
    let object = object.filter(|object| !object.is_null());
    let read = |object: &Value| serde_json::from_value(object.clone());
    object.map(read).transpose().map_err(|error| format!("the GarageNode cannot be read: {error}"))
}

/// Both versions have the same fields, so that either is read as the stored one.
fn cluster(object: Option<&Value>) -> Result<Option<GarageCluster>, String> {
    let object = object.filter(|object| !object.is_null());
    let read = |object: &Value| serde_json::from_value(object.clone());
    object.map(read).transpose().map_err(|error| format!("the GarageCluster cannot be read: {error}"))
}

/// Answers a mutating admission review: restores a layout role that a client of v1beta1 left out.
pub fn mutation(review: &Review<AdmissionRequest>) -> Value {
    let request = &review.request;
    let response = match (&request.old_object, &request.object) {
        (Some(old), Some(new)) if is_v1beta1(new) => match forgotten_role(old, new) {
            Some(role) => AdmissionResponse::patched(&request.uid, &restore(new, &role), vec![kept(&role)]),
            None => AdmissionResponse::allow(&request.uid, Vec::new()),
        },
        _ => AdmissionResponse::allow(&request.uid, Vec::new()),
    };
    envelope(review, &response)
}

fn is_v1beta1(object: &Value) -> bool {
    object["apiVersion"].as_str().is_some_and(|version| version.ends_with("/v1beta1"))
}

fn kept(role: &Value) -> String {
    format!("layoutManagement.siteRole {role} is kept: a v1beta1 write that leaves it out does not clear it")
}

fn restore(object: &Value, role: &Value) -> Value {
    if object.pointer("/spec/layoutManagement").is_some_and(Value::is_object) {
        json!([{ "op": "add", "path": "/spec/layoutManagement/siteRole", "value": role }])
    } else {
        json!([{ "op": "add", "path": "/spec/layoutManagement", "value": { "siteRole": role } }])
    }
}

#[cfg(test)]
mod tests {
    use super::{conversion, mutation, validation};
    use crate::webhook::review::Review;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn cluster(version: &str, management: &Value) -> Value {
        json!({
            "apiVersion": format!("garage.rajsingh.info/{version}"),
            "kind": "GarageCluster",
            "metadata": { "name": "garage" },
            "spec": {
                "layoutManagement": management,
                "remoteClusters": [{ "name": "w", "zone": "west", "connection": { "adminApiEndpoint": "http://x" } }],
            },
            "status": { "storageDrain": { "node": "garage-storage-2", "nodeId": "aa" } },
        })
    }

    fn review<T: serde::de::DeserializeOwned>(request: &Value) -> Review<T> {
        let review = json!({ "apiVersion": "v1", "kind": "Review", "request": request });
        serde_json::from_value(review).unwrap()
    }

    #[rstest]
    #[case("v1beta1")]
    #[case("v1beta2")]
    fn a_demotion_during_a_drain_is_refused_on_every_version(#[case] version: &str) {
        let (old, new) = (cluster(version, &json!({})), cluster(version, &json!({ "siteRole": "Follower" })));
        let request = json!({ "uid": "u", "operation": "UPDATE", "oldObject": old, "object": new });
        let answer = validation(&review(&request));
        assert_eq!(answer["response"]["allowed"], false);
        assert_eq!(answer["response"]["uid"], "u");
        assert!(answer["response"]["status"]["message"].as_str().unwrap().contains("storageDrain"));
    }

    #[test]
    fn a_review_that_cannot_be_judged_is_refused() {
        let answer = validation(&review(&json!({ "uid": "u", "operation": "UPDATE" })));
        assert_eq!(answer["response"]["allowed"], false);
    }

    #[rstest]
    #[case("v1beta1", json!({}), true)]
    #[case("v1beta1", Value::Null, true)]
    #[case("v1beta1", json!({ "siteRole": "Writer" }), false)]
    #[case("v1beta2", json!({}), false)]
    fn a_v1beta1_write_that_leaves_the_role_out_keeps_it(
        #[case] version: &str,
        #[case] management: Value,
        #[case] patched: bool,
    ) {
        let old = cluster(version, &json!({ "siteRole": "Follower" }));
        let new = cluster(version, &management);
        let request = json!({ "uid": "u", "operation": "UPDATE", "oldObject": old, "object": new });
        let answer = mutation(&review(&request));
        assert_eq!(answer["response"]["allowed"], true);
        assert_eq!(answer["response"]["patchType"] == "JSONPatch", patched);
    }

    #[test]
    fn a_conversion_answers_all_objects_or_says_why_not() {
        let wanted = "garage.rajsingh.info/v1beta1";
        let objects = [cluster("v1beta2", &json!({}))];
        let request = json!({ "uid": "u", "desiredAPIVersion": wanted, "objects": objects });
        let answer = conversion(&review(&request));
        assert_eq!(answer["response"]["result"]["status"], "Success");
        assert_eq!(answer["response"]["convertedObjects"][0]["apiVersion"], wanted);
        let request = json!({ "uid": "u", "desiredAPIVersion": "x/v9", "objects": objects });
        assert_eq!(conversion(&review(&request))["response"]["result"]["status"], "Failure");
    }
}
