//! The validating webhook of `SliceConfig`s, switched by `ENABLE_WEBHOOKS`. Never on a Standby: the mirror's copies are
//! not to be validated. Where it is off, its configuration must not be installed.

mod server;

use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

pub use server::{TlsError, TlsFiles, TlsListener};

use crate::api::controller::SliceConfig;
use crate::decision::slice_rules;

/// Path of the webhook.
pub const VALIDATE: &str = "/validate-sliceconfig";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    request: Request,
}

#[derive(Debug, Deserialize)]
struct Request {
    uid: String,
    #[serde(default)]
    object: Option<Value>,
}

/// The routes.
pub fn routes() -> Router {
    Router::new().route(VALIDATE, post(|Json(review): Json<Review>| async move { Json(answer(&review)) }))
}

/// Serves until the listener's owner stops it.
pub async fn serve(listener: TlsListener, stop: tokio_util::sync::CancellationToken) -> std::io::Result<()> {
    axum::serve(listener, routes()).with_graceful_shutdown(stop.cancelled_owned()).await
}

fn answer(review: &Review) -> Value {
    let request = &review.request;
    let response = match objection(request.object.as_ref()) {
        None => json!({"uid": request.uid, "allowed": true}),
        Some(message) => {
            json!({"uid": request.uid, "allowed": false, "status": {"code": 403, "message": message}})
        }
    };
    json!({"apiVersion": review.api_version, "kind": review.kind, "response": response})
}

/// An object that is being deleted only has its finalizers changed.
fn objection(object: Option<&Value>) -> Option<String> {
    let object = object?;
    let slice: SliceConfig = match serde_json::from_value(object.clone()) {
        Ok(slice) => slice,
        Err(error) => return Some(format!("this is no SliceConfig: {error}")),
    };
    let broken = slice_rules::broken(&slice.spec);
    let leaving = slice.metadata.deletion_timestamp.is_some();
    (!broken.is_empty() && !leaving).then(|| broken.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Review, answer};

    fn ask(object: &Value) -> Value {
        let review: Review = serde_json::from_value(json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "object": object},
        }))
        .unwrap();
        answer(&review)["response"].clone()
    }

    fn slice(subnet: &str) -> Value {
        json!({
            "apiVersion": "controller.kubeslice.io/v1alpha1", "kind": "SliceConfig", "metadata": {"name": "red"},
            "spec": {"sliceSubnet": subnet, "clusters": ["a"]},
        })
    }

    #[test]
    fn a_valid_slice_is_admitted_and_a_deletion_always() {
        assert_eq!(ask(&slice("10.1.0.0/16"))["allowed"], true);
        assert_eq!(ask(&Value::Null)["allowed"], true);
        let mut leaving = slice("");
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(ask(&leaving)["allowed"], true);
    }

    #[test]
    fn an_invalid_slice_is_refused_with_its_rule() {
        let response = ask(&slice("8.8.0.0/16"));
        assert_eq!(response["allowed"], false);
        assert!(response["status"]["message"].as_str().unwrap().contains("spec.sliceSubnet"));
    }
}
