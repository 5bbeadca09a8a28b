//! Which endpoint a request asks for (Garage admin reference §2).

use super::error::ApiError;
use super::query::Query;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// `OPTIONS`, for browsers.
    Options,
    /// `GET /health`.
    Health,
    /// `GET /metrics`.
    Metrics,
    /// `GET /check?domain=…`.
    CheckDomain,
    /// An endpoint of version 2, by its name; also where an older path leads to it.
    Endpoint(&'static str),
}

/// Endpoints that are read with GET.
const READS: [&str; 18] = [
    "GetAdminTokenInfo",
    "GetBucketInfo",
    "GetClusterHealth",
    "GetClusterLayout",
    "GetClusterLayoutHistory",
    "GetClusterStatistics",
    "GetClusterStatus",
    "GetCurrentAdminTokenInfo",
    "GetKeyInfo",
    "GetNodeInfo",
    "GetNodeStatistics",
    "InspectObject",
    "ListAdminTokens",
    "ListBlockErrors",
    "ListBuckets",
    "ListBucketsInfo",
    "ListKeys",
    "ListKeysInfo",
];

/// Endpoints that are called with POST.
const CALLS: [&str; 30] = [
    "AddBucketAlias",
    "AllowBucketKey",
    "ApplyClusterLayout",
    "CleanupIncompleteUploads",
    "ClusterLayoutSkipDeadNodes",
    "ConnectClusterNodes",
    "CreateAdminToken",
    "CreateBucket",
    "CreateKey",
    "CreateMetadataSnapshot",
    "DeleteAdminToken",
    "DeleteBucket",
    "DeleteKey",
    "DenyBucketKey",
    "GetBlockInfo",
    "GetWorkerInfo",
    "GetWorkerVariable",
    "ImportKey",
    "LaunchRepairOperation",
    "ListWorkers",
    "PreviewClusterLayoutChanges",
    "PurgeBlocks",
    "RemoveBucketAlias",
    "RetryBlockResync",
    "RevertClusterLayout",
    "SetWorkerVariable",
    "UpdateAdminToken",
    "UpdateBucket",
    "UpdateClusterLayout",
    "UpdateKey",
];

/// Endpoints that 2.3 does not have.
const SINCE_2_5: [&str; 2] = ["ListKeysInfo", "ListBucketsInfo"];

/// Finds the endpoint of a request. `newest` tells whether those of 2.5 exist.
pub fn route(method: &str, path: &str, query: &Query, newest: bool) -> Result<Route, ApiError> {
    let unknown = || ApiError::bad_request(format_args!("Unknown API endpoint: {method} {path}"));
    for version in ["v1", "v0"] {
        if let Some(rest) =
            path.strip_prefix('/').and_then(|path| path.strip_prefix(version)?.strip_prefix('/'))
        {
            return match older(version, method, rest, query).ok_or_else(unknown)? {
                Older::Served(name) => Ok(Route::Endpoint(name)),
                Older::Retired(name) => Err(ApiError::bad_request(format_args!(
                    "{version}/ endpoint is no longer supported: {name}"
                ))),
            };
        }
    }
    match (method, path) {
        ("OPTIONS", _) => Ok(Route::Options),
        ("GET", "/health") => Ok(Route::Health),
        ("GET", "/metrics") => Ok(Route::Metrics),
        ("GET", "/check") => Ok(Route::CheckDomain),
        _ => newest_endpoint(method, path, newest).map(Route::Endpoint).ok_or_else(unknown),
    }
}

fn newest_endpoint(method: &str, path: &str, newest: bool) -> Option<&'static str> {
    let name = path.strip_prefix("/v2/")?;
    let names: &[&'static str] = match method {
        "GET" => &READS,
        "POST" => &CALLS,
        _ => return None,
    };
    let found = names.iter().copied().find(|known| *known == name)?;
    (newest || !SINCE_2_5.contains(&found)).then_some(found)
}

enum Older {
    Served(&'static str),
    Retired(&'static str),
}

fn older(version: &str, method: &str, rest: &str, query: &Query) -> Option<Older> {
    use Older::{Retired, Served};
    let first = version == "v0";
    Some(match (method, rest) {
        ("OPTIONS", _) => Retired("Options"),
        ("GET", "status") => Retired("GetClusterStatus"),
        ("GET", "health") if first => Retired("GetClusterHealth"),
        ("GET", "health") => Served("GetClusterHealth"),
        ("POST", "connect") => Served("ConnectClusterNodes"),
        ("GET", "layout") if first => Retired("GetClusterLayout"),
        ("GET", "layout") => Served("GetClusterLayout"),
        ("POST", "layout") => Retired("UpdateClusterLayout"),
        ("POST", "layout/apply") => Served("ApplyClusterLayout"),
        ("POST", "layout/revert") => Served("RevertClusterLayout"),
        ("GET", "key") if query.has("id") || query.has("search") => Served("GetKeyInfo"),
        ("GET", "key") => Served("ListKeys"),
        ("POST", "key") if query.has("id") => Served("UpdateKey"),
        ("POST", "key") => Served("CreateKey"),
        ("POST", "key/import") => Served("ImportKey"),
        ("DELETE", "key") => Retired("DeleteKey"),
        ("GET", "bucket") if query.has("id") || query.has("globalAlias") => Served("GetBucketInfo"),
        ("GET", "bucket") => Served("ListBuckets"),
        ("POST", "bucket") => Served("CreateBucket"),
        ("PUT", "bucket") => Served("UpdateBucket"),
        ("DELETE", "bucket") => Retired("DeleteBucket"),
        ("POST", "bucket/allow") => Served("AllowBucketKey"),
        ("POST", "bucket/deny") => Served("DenyBucketKey"),
        ("PUT", "bucket/alias/global" | "bucket/alias/local") => Served("AddBucketAlias"),
        ("DELETE", "bucket/alias/global" | "bucket/alias/local") => Served("RemoveBucketAlias"),
        _ => return None,
    })
}

/// Whether the endpoint of a request reads a body. The others are answered without regard to it.
#[must_use]
pub fn takes_body(method: &str, path: &str) -> bool {
    const WITHOUT: [&str; 7] = [
        "/v2/PreviewClusterLayoutChanges",
        "/v2/RevertClusterLayout",
        "/v2/CreateMetadataSnapshot",
        "/v2/DeleteAdminToken",
        "/v2/DeleteBucket",
        "/v2/DeleteKey",
        "/v1/layout/revert",
    ];
    let known = path.strip_prefix("/v2/").is_none_or(|name| CALLS.contains(&name));
    let older = |version| path.starts_with(version);
    match method {
        "POST" if path.starts_with("/v2/") => known && !WITHOUT.contains(&path),
        "POST" | "PUT" | "DELETE" => (older("/v1/") || older("/v0/")) && !WITHOUT.contains(&path),
        _ => false,
    }
}

/// Whether a request is one of the layout writes, whatever the answer will be.
///
/// These are POSTs to the four paths that change a layout, and to their older forms, retired ones included.
#[must_use]
pub fn is_layout_write(method: &str, path: &str) -> bool {
    const WRITES: [&str; 10] = [
        "/v2/UpdateClusterLayout",
        "/v2/ApplyClusterLayout",
        "/v2/RevertClusterLayout",
        "/v2/ClusterLayoutSkipDeadNodes",
        "/v1/layout",
        "/v1/layout/apply",
        "/v1/layout/revert",
        "/v0/layout",
        "/v0/layout/apply",
        "/v0/layout/revert",
    ];
    method == "POST" && WRITES.contains(&path)
}

/// Whether the bodies of a request may hold a secret, so that they are not recorded.
#[must_use]
pub fn may_hold_secret(path: &str) -> bool {
    path.contains("Key") || path.contains("Token") || path.contains("/key")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::unknown("GET", "/v2/NoSuchEndpoint")]
    #[case::trailing_slash("GET", "/v2/GetClusterHealth/")]
    #[case::double_slash("GET", "//v2/GetClusterHealth")]
    #[case::wrong_case("GET", "/v2/getclusterhealth")]
    #[case::encoded("GET", "/v2/GetCluster%48ealth")]
    #[case::method("POST", "/v2/GetClusterHealth")]
    #[case::preview_is_post("GET", "/v2/PreviewClusterLayoutChanges")]
    #[case::head("HEAD", "/health")]
    #[case::no_special_under_v2("GET", "/v2/Health")]
    fn capture_01_there_is_no_404_and_no_405(#[case] method: &str, #[case] path: &str) {
        let error = route(method, path, &Query::default(), true).unwrap_err();
        assert_eq!(error.status(), 400);
        assert_eq!(error.message(), format!("Bad request: Unknown API endpoint: {method} {path}"));
    }

    #[test]
    fn capture_01_retired_paths_say_so() {
        let error = route("POST", "/v1/layout", &Query::default(), true).unwrap_err();
        assert_eq!(error.message(), "Bad request: v1/ endpoint is no longer supported: UpdateClusterLayout");
    }

    #[rstest]
    #[case("POST", "/v2/UpdateClusterLayout", true)]
    #[case("GET", "/v2/UpdateClusterLayout", false)]
    #[case("POST", "/v2/PreviewClusterLayoutChanges", false)]
    #[case("POST", "/v1/layout", true)]
    #[case("POST", "/v0/layout/revert", true)]
    fn a_layout_write_is_told_by_method_and_path(
        #[case] method: &str,
        #[case] path: &str,
        #[case] write: bool,
    ) {
        assert_eq!(is_layout_write(method, path), write);
    }

    #[test]
    fn endpoints_of_2_5_are_unknown_to_2_3() {
        assert!(route("GET", "/v2/ListKeysInfo", &Query::default(), true).is_ok());
        assert!(route("GET", "/v2/ListKeysInfo", &Query::default(), false).is_err());
    }
}
