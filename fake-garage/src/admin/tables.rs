//! Calls on buckets, access keys and admin tokens (Garage admin reference §10c).

use serde::Deserialize;

use super::auth::Caller;
use super::call::{body, check_bearer};
use super::error::ApiError;
use super::query::Query;
use super::quorum::Access;
use super::request::{Attribution, Request, Response};
use super::store::bucket::{AliasRequest, CreateBucketRequest, PermissionRequest, UpdateBucketRequest};
use super::store::key::{ImportKeyRequest, KeyRequest};
use super::store::token::{TokenBody, TokenRequest};
use super::store::{Circumstances, Store};

/// A call on buckets, access keys or admin tokens.
#[derive(Debug)]
pub enum TableCall {
    /// `GetCurrentAdminTokenInfo`.
    CurrentToken,
    /// `ListAdminTokens`.
    ListTokens,
    /// `GetAdminTokenInfo`.
    TokenInfo(Selection),
    /// `CreateAdminToken`.
    CreateToken(TokenRequest),
    /// `UpdateAdminToken`.
    UpdateToken(String, TokenRequest),
    /// `DeleteAdminToken`.
    DeleteToken(String),
    /// `ListKeys`.
    ListKeys(Page),
    /// `ListKeysInfo`.
    ListKeysInfo(Page),
    /// `GetKeyInfo`; whether with the secret.
    KeyInfo(Selection, bool),
    /// `CreateKey`.
    CreateKey(KeyRequest),
    /// `ImportKey`.
    ImportKey(ImportKeyRequest),
    /// `UpdateKey`.
    UpdateKey(String, KeyRequest),
    /// `DeleteKey`.
    DeleteKey(String),
    /// `ListBuckets`.
    ListBuckets(Page),
    /// `ListBucketsInfo`.
    ListBucketsInfo(Page),
    /// `GetBucketInfo`; the alias beside identity and pattern.
    BucketInfo(Selection, Option<String>),
    /// `CreateBucket`.
    CreateBucket(CreateBucketRequest),
    /// `UpdateBucket`.
    UpdateBucket(String, UpdateBucketRequest),
    /// `DeleteBucket`.
    DeleteBucket(String),
    /// `CleanupIncompleteUploads`.
    CleanupUploads(CleanupRequest),
    /// `InspectObject`: bucket and key.
    InspectObject(String, String),
    /// `AllowBucketKey`.
    Allow(PermissionRequest),
    /// `DenyBucketKey`.
    Deny(PermissionRequest),
    /// `AddBucketAlias`.
    AddAlias(AliasRequest),
    /// `RemoveBucketAlias`.
    RemoveAlias(AliasRequest),
}

/// Which item: by identity or by pattern.
#[derive(Debug, Default)]
pub struct Selection {
    id: Option<String>,
    search: Option<String>,
}

/// Which part of a list.
#[derive(Debug, Default)]
pub struct Page {
    offset: Option<String>,
    limit: Option<usize>,
}

/// Body of `CleanupIncompleteUploads`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanupRequest {
    bucket_id: String,
    #[serde(rename = "olderThanSecs")]
    _older_than_secs: u64,
}

impl Selection {
    fn of(query: &Query) -> Self {
        let get = |name: &str| query.get(name).map(str::to_owned);
        Self { id: get("id"), search: get("search") }
    }
}

impl Page {
    fn of(query: &Query) -> Result<Self, ApiError> {
        Ok(Self { offset: query.get("offset").map(str::to_owned), limit: query.parsed("limit")? })
    }
}

impl TableCall {
    /// Reads the call of `endpoint`, if it is one of these.
    pub fn read(endpoint: &str, request: &Request, query: &Query) -> Result<Option<Self>, ApiError> {
        let id = || query.required("id").map(str::to_owned);
        Ok(Some(match endpoint {
            "GetCurrentAdminTokenInfo" => {
                check_bearer(request)?;
                Self::CurrentToken
            }
            "ListAdminTokens" => Self::ListTokens,
            "GetAdminTokenInfo" => Self::TokenInfo(Selection::of(query)),
            "CreateAdminToken" => Self::CreateToken(body(request)?),
            "UpdateAdminToken" => {
                let change = body(request)?;
                Self::UpdateToken(id()?, change)
            }
            "DeleteAdminToken" => Self::DeleteToken(id()?),
            _ => return Self::read_key_or_bucket(endpoint, request, query),
        }))
    }

    fn read_key_or_bucket(
        endpoint: &str,
        request: &Request,
        query: &Query,
    ) -> Result<Option<Self>, ApiError> {
        let id = || query.required("id").map(str::to_owned);
        Ok(Some(match endpoint {
            "ListKeys" => Self::ListKeys(Page::of(query)?),
            "ListKeysInfo" => Self::ListKeysInfo(Page::of(query)?),
            "GetKeyInfo" => {
                let with_secret = query.parsed("showSecretKey")?.unwrap_or(false);
                Self::KeyInfo(Selection::of(query), with_secret)
            }
            "CreateKey" => Self::CreateKey(body(request)?),
            "ImportKey" => Self::ImportKey(body(request)?),
            "UpdateKey" => {
                let change = body(request)?;
                Self::UpdateKey(id()?, change)
            }
            "DeleteKey" => Self::DeleteKey(id()?),
            "ListBuckets" => Self::ListBuckets(Page::of(query)?),
            "ListBucketsInfo" => Self::ListBucketsInfo(Page::of(query)?),
            "GetBucketInfo" => {
                Self::BucketInfo(Selection::of(query), query.get("globalAlias").map(str::to_owned))
            }
            "CreateBucket" => Self::CreateBucket(body(request)?),
            "UpdateBucket" => {
                let change = body(request)?;
                Self::UpdateBucket(id()?, change)
            }
            "DeleteBucket" => Self::DeleteBucket(id()?),
            "CleanupIncompleteUploads" => Self::CleanupUploads(body(request)?),
            "InspectObject" => {
                Self::InspectObject(query.required("bucketId")?.to_owned(), query.required("key")?.to_owned())
            }
            "AllowBucketKey" => Self::Allow(body(request)?),
            "DenyBucketKey" => Self::Deny(body(request)?),
            "AddBucketAlias" => Self::AddAlias(alias(request, query)?),
            "RemoveBucketAlias" => Self::RemoveAlias(alias(request, query)?),
            _ => return Ok(None),
        }))
    }

    /// What the call does with tables; `None` for what the node knows by itself.
    #[must_use]
    pub const fn access(&self, caller: &Caller) -> Option<Access> {
        match self {
            Self::CurrentToken => match caller {
                Caller::Dynamic(_) => Some(Access::Read),
                Caller::Configured | Caller::Anyone => None,
            },
            Self::ListTokens
            | Self::TokenInfo(_)
            | Self::ListKeys(_)
            | Self::ListKeysInfo(_)
            | Self::KeyInfo(..)
            | Self::ListBuckets(_)
            | Self::ListBucketsInfo(_)
            | Self::BucketInfo(..)
            | Self::CleanupUploads(_)
            | Self::InspectObject(..) => Some(Access::Read),
            _ => Some(Access::Write),
        }
    }

    /// Checks arguments that are checked before any table is asked.
    pub fn check(&self) -> Result<(), ApiError> {
        match self {
            Self::CreateBucket(request) => request.check(),
            _ => Ok(()),
        }
    }

    /// Does what the call asks for.
    pub fn perform(
        self,
        store: &mut Store,
        caller: &Caller,
        origin: &Attribution,
        has_metrics_token: bool,
        at: Circumstances,
    ) -> Result<Response, ApiError> {
        let tokens = &mut store.tokens;
        Ok(match self {
            Self::CurrentToken => Response::json(&match caller {
                Caller::Dynamic(id) => tokens.get(Some(id), None, at.now)?,
                Caller::Configured | Caller::Anyone => TokenBody::configured("admin_token", "*"),
            }),
            Self::ListTokens => {
                let mut list = vec![TokenBody::configured("admin_token", "*")];
                list.extend(has_metrics_token.then(|| TokenBody::configured("metrics_token", "Metrics")));
                list.extend(tokens.list(at.now));
                Response::json(&list)
            }
            Self::TokenInfo(which) => {
                Response::json(&tokens.get(which.id.as_deref(), which.search.as_deref(), at.now)?)
            }
            Self::CreateToken(request) => Response::json(&tokens.create(request, origin.clone(), at)?),
            Self::UpdateToken(id, request) => Response::json(&tokens.update(&id, request, at.now)?),
            Self::DeleteToken(id) => Response::json(&tokens.delete(&id)?),
            other => return other.perform_on_keys(store, at),
        })
    }

    fn perform_on_keys(self, store: &mut Store, at: Circumstances) -> Result<Response, ApiError> {
        let Store { keys, buckets, .. } = store;
        Ok(match self {
            Self::ListKeys(page) => Response::json(&keys.list(page.offset.as_deref(), page.limit, at.now)),
            Self::ListKeysInfo(page) => {
                Response::json(&keys.list_info(page.offset.as_deref(), page.limit, buckets, at.now)?)
            }
            Self::KeyInfo(which, with_secret) => {
                let (id, search) = (which.id.as_deref(), which.search.as_deref());
                Response::json(&keys.get(id, search, with_secret, buckets, at.now)?)
            }
            Self::CreateKey(request) => Response::json(&keys.create(request, at)?),
            Self::ImportKey(request) => Response::json(&keys.import(request, at.now)?),
            Self::UpdateKey(id, request) => Response::json(&keys.update(&id, request, buckets, at.now)?),
            Self::DeleteKey(id) => {
                keys.delete(&id)?;
                buckets.forget_key(&id);
                Response::json(&())
            }
            other => return other.perform_on_buckets(store, at),
        })
    }

    fn perform_on_buckets(self, store: &mut Store, at: Circumstances) -> Result<Response, ApiError> {
        let Store { keys, buckets, .. } = store;
        Ok(match self {
            Self::ListBuckets(page) => Response::json(&buckets.list(page.offset.as_deref(), page.limit)),
            Self::ListBucketsInfo(page) => {
                Response::json(&buckets.list_info(page.offset.as_deref(), page.limit, keys)?)
            }
            Self::BucketInfo(which, alias) => {
                let (id, search) = (which.id.as_deref(), which.search.as_deref());
                Response::json(&buckets.get(id, alias.as_deref(), search, keys)?)
            }
            Self::CreateBucket(request) => Response::json(&buckets.create(request, keys, at)?),
            Self::UpdateBucket(id, request) => Response::json(&buckets.update(&id, request, keys)?),
            Self::DeleteBucket(id) => Response::json(&buckets.delete(&id)?),
            Self::CleanupUploads(request) => {
                buckets.check(&request.bucket_id)?;
                Response::json(&serde_json::json!({"uploadsDeleted": 0}))
            }
            Self::InspectObject(bucket, key) => {
                buckets.check(&bucket)?;
                return Err(ApiError::new(404, "NoSuchKey", format!("Key not found: {key}")));
            }
            Self::Allow(request) => Response::json(&buckets.permit(&request, true, keys)?),
            Self::Deny(request) => Response::json(&buckets.permit(&request, false, keys)?),
            Self::AddAlias(request) => Response::json(&buckets.add_alias(request, keys)?),
            Self::RemoveAlias(request) => Response::json(&buckets.remove_alias(request, keys)?),
            _ => return Err(ApiError::internal("a call reached tables that it is not about")),
        })
    }
}

/// Since version 2 an alias is in the body; before, it was in the query.
fn alias(request: &Request, query: &Query) -> Result<AliasRequest, ApiError> {
    if request.path.starts_with("/v2/") {
        return body(request);
    }
    let (id, alias) = (query.required("id")?, query.required("alias")?);
    let key = if request.path.ends_with("/local") { Some(query.required("accessKeyId")?) } else { None };
    Ok(AliasRequest::older(id, alias, key))
}
