//! The client of the hub's control API.

use std::fmt;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long one control call may take. The hub answers from memory.
const LIMIT: Duration = Duration::from_secs(10);

/// The hub did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// It could not be reached, or broke off.
    #[error("the hub does not answer {method} {path}")]
    Unreachable {
        /// HTTP method.
        method: Method,
        /// Path of the call.
        path: String,
        /// Why.
        source: reqwest::Error,
    },
    /// It refused.
    #[error("the hub refused {method} {path} with {status}: {reason}")]
    Refused {
        /// HTTP method.
        method: Method,
        /// Path of the call.
        path: String,
        /// HTTP status.
        status: StatusCode,
        /// Its own words.
        reason: String,
    },
}

/// A token of a mesh and whose it is.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallerToken {
    /// The secret itself.
    pub token: String,
    /// Who calls with it: a site or `harness`.
    pub caller: String,
    /// The site whose nodes accept it; `*` for all.
    pub target: String,
    /// How it is named in histories.
    pub label: String,
}

impl fmt::Debug for CallerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallerToken({})", self.label)
    }
}

/// What a node is started with.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// The mesh's shared secret, 64 hex digits.
    pub rpc_secret: String,
    /// The node's own static admin token.
    pub admin_token: Option<String>,
    /// The node's own static metrics token.
    pub metrics_token: Option<String>,
    /// `replication_factor` of its configuration.
    pub replication_factor: u32,
    /// `consistency_mode` of its configuration.
    pub consistency_mode: String,
    /// Its host name.
    pub hostname: String,
    /// `s3_region` of its configuration, which error answers repeat.
    pub region: String,
    /// Name of a purge of the layout file, carried out before the start, once for each name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge_layout: Option<String>,
}

impl fmt::Debug for NodeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeSpec").field("hostname", &self.hostname).finish_non_exhaustive()
    }
}

/// A node that runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningNode {
    /// Loopback address that it listens on.
    pub address: String,
    /// Garage's identity of it.
    pub node_id: String,
}

/// Where a node lives: site, namespace, pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeName {
    /// Site.
    pub site: String,
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.site, self.namespace, self.pod)
    }
}

/// Talks to the hub. Cheap to clone.
#[derive(Clone)]
pub struct Hub {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hub({})", self.base)
    }
}

impl Hub {
    /// A client of the hub at `base` (`http://address:port`) with its control token.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(base: &str, token: &str) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().no_proxy().timeout(LIMIT).build()?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), token: token.to_owned() })
    }

    /// Registers a mesh: nodes that share `rpc_secret_sha256` (hex) belong to it, callers are told by `tokens`.
    pub async fn put_mesh(
        &self,
        mesh: &str,
        rpc_secret_sha256: &str,
        tokens: &[CallerToken],
    ) -> Result<(), HubError> {
        let body = serde_json::json!({"rpcSecretSha256": rpc_secret_sha256, "tokens": tokens});
        self.call(Method::PUT, format!("/meshes/{mesh}"), Some(body)).await.map(drop)
    }

    /// Ends every node of a mesh and forgets it. One that is not known is fine.
    pub async fn delete_mesh(&self, mesh: &str) -> Result<(), HubError> {
        self.delete(format!("/meshes/{mesh}")).await
    }

    /// Starts a node, or answers where it runs already.
    pub async fn put_node(&self, name: &NodeName, spec: &NodeSpec) -> Result<RunningNode, HubError> {
        let path = format!("/nodes/{name}");
        let body = serde_json::to_value(spec).unwrap_or_default();
        let answer = self.call(Method::PUT, path.clone(), Some(body)).await?;
        answer.json().await.map_err(|source| HubError::Unreachable { method: Method::PUT, path, source })
    }

    /// Stops a node as SIGTERM would; its files stay. One that is not known is fine.
    pub async fn delete_node(&self, name: &NodeName) -> Result<(), HubError> {
        self.delete(format!("/nodes/{name}")).await
    }

    /// Replaces the name table of a site's proxy: host name to addresses.
    pub async fn put_routes(
        &self,
        site: &str,
        names: &std::collections::BTreeMap<String, Vec<String>>,
    ) -> Result<(), HubError> {
        let body = serde_json::json!({ "names": names });
        self.call(Method::PUT, format!("/routes/{site}"), Some(body)).await.map(drop)
    }

    /// Injects a fault: an object with an `action`, as the hub's control API takes it. Returns the number of one that lasts.
    pub async fn fault(&self, fault: &Value) -> Result<Option<u64>, HubError> {
        let path = "/faults".to_owned();
        let answer = self.call(Method::POST, path.clone(), Some(fault.clone())).await?;
        let unreachable = |source| HubError::Unreachable { method: Method::POST, path, source };
        let answer = answer.bytes().await.map_err(unreachable)?;
        Ok(serde_json::from_slice::<Value>(&answer).ok().and_then(|answer| answer["id"].as_u64()))
    }

    /// Ends a fault. One that is not known is fine: it may have ended by itself.
    pub async fn end_fault(&self, id: u64) -> Result<(), HubError> {
        self.delete(format!("/faults/{id}")).await
    }

    /// Adds a rule on single calls, and returns its number.
    pub async fn add_rule(&self, rule: &Value) -> Result<u64, HubError> {
        let path = "/rules".to_owned();
        let answer = self.call(Method::POST, path.clone(), Some(rule.clone())).await?;
        let answer: Value = answer.json().await.map_err(|source| HubError::Unreachable {
            method: Method::POST,
            path,
            source,
        })?;
        Ok(answer["id"].as_u64().unwrap_or_default())
    }

    /// Removes a rule. One that is not known is fine: it may have ended by itself.
    pub async fn remove_rule(&self, id: u64) -> Result<(), HubError> {
        self.delete(format!("/rules/{id}")).await
    }

    /// All rules, each with how often it acted.
    pub async fn rules(&self) -> Result<Value, HubError> {
        let path = "/rules".to_owned();
        let answer = self.call(Method::GET, path.clone(), None).await?;
        answer.json().await.map_err(|source| HubError::Unreachable { method: Method::GET, path, source })
    }

    pub(super) async fn delete(&self, path: String) -> Result<(), HubError> {
        match self.call(Method::DELETE, path, None).await {
            Err(HubError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    pub(super) async fn call(
        &self,
        method: Method,
        path: String,
        body: Option<Value>,
    ) -> Result<reqwest::Response, HubError> {
        let url = format!("{}/control/v1{path}", self.base);
        let mut request = self.http.request(method.clone(), url).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await;
        let answer = answer.map_err(|source| HubError::Unreachable {
            method: method.clone(),
            path: path.clone(),
            source,
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let reason = answer.text().await.unwrap_or_default();
        Err(HubError::Refused { method, path, status, reason })
    }
}
