//! Requests whose warnings can be read: the Kubernetes client drops them.

use harness::site::Site;
use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

use crate::stage::Scene;
use crate::stage::manifest::CLUSTER;

/// What the API server answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    /// Texts of the `Warning` headers.
    pub warnings: Vec<String>,
}

impl Answer {
    /// The message of a refusal.
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// Warnings of the operator's own: the API server adds one about the deprecated version.
    pub fn own_warnings(&self) -> Vec<&str> {
        self.warnings.iter().map(String::as_str).filter(|text| !text.contains("is deprecated")).collect()
    }
}

/// The path of the scene's clusters in a version.
pub fn collection(scene: &Scene, version: &str) -> String {
    format!("/apis/garage.rajsingh.info/{version}/namespaces/{}/garageclusters", scene.namespace())
}

/// The path of the scene's cluster in a version.
pub fn object(scene: &Scene, version: &str) -> String {
    format!("{}/{CLUSTER}", collection(scene, version))
}

/// Sends a request to the API server of a site.
pub async fn send(scene: &Scene, site: Site, method: Method, path: &str, body: &Value) -> Answer {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, kind);
    let answer = scene.client(site).send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let warnings = answer.headers().get_all(header::WARNING).iter();
    let warnings = warnings.map(|value| text_of(value.to_str().unwrap())).collect();
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    Answer { status, body: serde_json::from_slice(&bytes).unwrap_or_default(), warnings }
}

/// `299 - "text"` (RFC 7234, "Warning").
fn text_of(header: &str) -> String {
    let start = header.find('"').map_or(0, |start| start + 1);
    header[start..].trim_end_matches('"').replace("\\\"", "\"")
}
