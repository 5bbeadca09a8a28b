//! The reviews that the API server sends (admission.k8s.io/v1, apiextensions.k8s.io/v1), as far as they are read.

use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A review of either kind; the answer has the same envelope.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review<T> {
    /// `admission.k8s.io/v1` or `apiextensions.k8s.io/v1`.
    pub api_version: String,
    /// `AdmissionReview` or `ConversionReview`.
    pub kind: String,
    /// What is asked.
    pub request: T,
}

/// Whether a change is admitted.
#[derive(Clone, Debug, Deserialize)]
pub struct AdmissionRequest {
    /// Names the request in its answer.
    pub uid: String,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: String,
    /// The object as it shall be; absent for DELETE.
    #[serde(default)]
    pub object: Option<Value>,
    /// The object as it was; absent for CREATE.
    #[serde(default, rename = "oldObject")]
    pub old_object: Option<Value>,
}

/// Objects in another version.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionRequest {
    /// Names the request in its answer.
    pub uid: String,
    /// `group/version` that is wanted.
    #[serde(rename = "desiredAPIVersion")]
    pub desired_api_version: String,
    /// The objects.
    pub objects: Vec<Value>,
}

/// The answer to an admission request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionResponse {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Status {
    code: u16,
    message: String,
}

impl AdmissionResponse {
    /// The change is admitted.
    pub fn allow(uid: impl Into<String>, warnings: Vec<String>) -> Self {
        Self { uid: uid.into(), allowed: true, warnings, ..Self::default() }
    }

    /// The change is refused.
    pub fn refuse(uid: impl Into<String>, message: impl Into<String>, warnings: Vec<String>) -> Self {
        let status = Some(Status { code: 403, message: message.into() });
        Self { uid: uid.into(), allowed: false, status, warnings, ..Self::default() }
    }

    /// The change is admitted with these edits (RFC 6902).
    pub fn patched(uid: impl Into<String>, patch: &Value, warnings: Vec<String>) -> Self {
        let patch = Some(ByteString(patch.to_string().into_bytes()));
        Self { patch_type: Some("JSONPatch"), patch, ..Self::allow(uid, warnings) }
    }
}

/// The answer in its envelope.
pub fn envelope<T>(review: &Review<T>, response: &impl Serialize) -> Value {
    json!({ "apiVersion": review.api_version, "kind": review.kind, "response": response })
}
