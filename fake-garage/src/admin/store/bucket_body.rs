//! Buckets as they are asked for and answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::error::ApiError;

/// What a key may do with a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BucketPermissions {
    #[serde(default)]
    pub(super) read: bool,
    #[serde(default)]
    pub(super) write: bool,
    #[serde(default)]
    pub(super) owner: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebsiteConfig {
    pub(super) index_document: String,
    pub(super) error_document: Option<String>,
    pub(super) routing_rules: Vec<Value>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Quotas {
    #[serde(default)]
    pub(super) max_size: Option<u64>,
    #[serde(default)]
    pub(super) max_objects: Option<u64>,
}

/// A bucket as it is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketBody {
    pub(super) id: String,
    pub(super) created: String,
    pub(super) global_aliases: Vec<String>,
    pub(super) website_access: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) website_config: Option<WebsiteConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cors_rules: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lifecycle_rules: Option<Value>,
    pub(super) keys: Vec<BucketKeyBody>,
    pub(super) objects: u64,
    pub(super) bytes: u64,
    pub(super) unfinished_uploads: u64,
    pub(super) unfinished_multipart_uploads: u64,
    pub(super) unfinished_multipart_upload_parts: u64,
    pub(super) unfinished_multipart_upload_bytes: u64,
    pub(super) quotas: Quotas,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BucketKeyBody {
    pub(super) access_key_id: String,
    pub(super) name: String,
    pub(super) permissions: BucketPermissions,
    pub(super) bucket_local_aliases: Vec<String>,
}

/// A bucket in a key's answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyBucketBody {
    pub(super) id: String,
    pub(super) global_aliases: Vec<String>,
    pub(super) local_aliases: Vec<String>,
    pub(super) permissions: BucketPermissions,
}

/// A bucket in `ListBuckets`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketSummary {
    pub(super) id: String,
    pub(super) created: String,
    pub(super) global_aliases: Vec<String>,
    pub(super) local_aliases: Vec<LocalAlias>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LocalAlias {
    pub(super) access_key_id: String,
    pub(super) alias: String,
}

/// Body of `CreateBucket`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateBucketRequest {
    #[serde(default)]
    pub(super) global_alias: Option<String>,
    #[serde(default)]
    pub(super) local_alias: Option<CreateLocalAlias>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateLocalAlias {
    pub(super) access_key_id: String,
    pub(super) alias: String,
    #[serde(default)]
    pub(super) allow: BucketPermissions,
}

/// Body of `UpdateBucket`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateBucketRequest {
    #[serde(default)]
    pub(super) website_access: Option<WebsiteRequest>,
    #[serde(default)]
    pub(super) quotas: Option<Quotas>,
    #[serde(default)]
    pub(super) cors_rules: Option<Value>,
    #[serde(default)]
    pub(super) lifecycle_rules: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebsiteRequest {
    pub(super) enabled: bool,
    #[serde(default)]
    pub(super) index_document: Option<String>,
    #[serde(default)]
    pub(super) error_document: Option<String>,
    #[serde(default)]
    pub(super) routing_rules: Option<Vec<Value>>,
}

/// Body of `AllowBucketKey` and `DenyBucketKey`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    pub(super) bucket_id: String,
    pub(super) access_key_id: String,
    pub(super) permissions: BucketPermissions,
}

/// Body of `AddBucketAlias` and `RemoveBucketAlias`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AliasRequest {
    pub(super) bucket_id: String,
    #[serde(flatten)]
    pub(super) alias: AliasEnum,
}

/// The name is on the wire in error messages.
#[derive(Debug, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum AliasEnum {
    Global { global_alias: String },
    Local { local_alias: String, access_key_id: String },
}

impl AliasRequest {
    /// What the older endpoints say in their query.
    #[must_use]
    pub fn older(bucket_id: &str, alias: &str, access_key_id: Option<&str>) -> Self {
        let alias = match access_key_id {
            None => AliasEnum::Global { global_alias: alias.to_owned() },
            Some(key) => AliasEnum::Local { local_alias: alias.to_owned(), access_key_id: key.to_owned() },
        };
        Self { bucket_id: bucket_id.to_owned(), alias }
    }
}

impl WebsiteRequest {
    pub(super) fn config(self) -> Result<Option<WebsiteConfig>, ApiError> {
        if !self.enabled {
            return if self.index_document.is_some() || self.error_document.is_some() {
                Err(ApiError::bad_request(
                    "Cannot specify indexDocument or errorDocument when disabling website access.",
                ))
            } else {
                Ok(None)
            };
        }
        let index_document = self.index_document.ok_or_else(|| {
            ApiError::bad_request("Please specify indexDocument when enabling website access.")
        })?;
        let routing_rules = self.routing_rules.unwrap_or_default();
        Ok(Some(WebsiteConfig { index_document, error_document: self.error_document, routing_rules }))
    }
}
