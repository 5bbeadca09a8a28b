//! Transport and reads. The writes are in their own file, behind their permit.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answers::{ClusterHealth, ClusterStatus, ConnectResult, NodeInfo, PerNode};
use super::error::{AdminError, Call};
use super::layout::{ClusterLayout, LayoutHistory};
use super::token::Token;
use crate::crash;

/// Most of an answer that is read.
const BODY_LIMIT: usize = 10 * 1024 * 1024;
/// Most of a refusal that is kept for its message.
const TEXT_LIMIT: usize = 500;

/// How long calls may take (operator contract §1.1).
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// Probes and reads.
    pub read: Duration,
    /// Reads of another site.
    pub remote: Duration,
    /// Layout writes and everything else.
    pub write: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { read: Duration::from_secs(5), remote: Duration::from_secs(3), write: Duration::from_secs(90) }
    }
}

/// A client of one admin endpoint with one token.
#[derive(Clone, Debug)]
pub struct AdminClient {
    http: reqwest::Client,
    endpoint: String,
    token: Token,
    deadlines: Deadlines,
}

impl AdminClient {
    /// The HTTP client that all admin clients share. It honours `HTTP_PROXY` and `NO_PROXY`.
    pub fn http() -> Result<reqwest::Client, AdminError> {
        reqwest::Client::builder()
            .timeout(Deadlines::default().write)
            .connect_timeout(Duration::from_secs(5))
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("garage-operator/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(AdminError::Setup)
    }

    /// A client for this base URL; a trailing slash is dropped.
    pub fn new(http: reqwest::Client, endpoint: &str, token: Token, deadlines: Deadlines) -> Self {
        Self { http, endpoint: endpoint.trim().trim_end_matches('/').to_owned(), token, deadlines }
    }

    /// Reads with the shorter deadline of another site from now on.
    pub fn hurry(&mut self) {
        self.deadlines.read = self.deadlines.remote;
    }

    /// The base URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// `GetClusterStatus`.
    pub async fn cluster_status(&self) -> Result<ClusterStatus, AdminError> {
        self.get("GetClusterStatus").await
    }

    /// `GetClusterHealth`.
    pub async fn cluster_health(&self) -> Result<ClusterHealth, AdminError> {
        self.get("GetClusterHealth").await
    }

    /// `GetClusterLayout`.
    pub async fn cluster_layout(&self) -> Result<ClusterLayout, AdminError> {
        self.get("GetClusterLayout").await
    }

    /// `GetClusterLayoutHistory`.
    pub async fn layout_history(&self) -> Result<LayoutHistory, AdminError> {
        self.get("GetClusterLayoutHistory").await
    }

    /// The identity of the node that answers: `GetNodeInfo?node=self`, in lower case.
    ///
    /// Anything but exactly one success whose key equals its body is an error: an identity is never guessed.
    pub async fn self_identity(&self) -> Result<String, AdminError> {
        let answer: PerNode<NodeInfo> = self.get_from("GetNodeInfo", "?node=self").await?;
        identity_of(&answer).ok_or_else(|| AdminError::Unexpected {
            call: self.call(&Method::GET, "GetNodeInfo"),
            what: format!(
                "{} successes and {} errors instead of exactly one identity of 64 hex digits",
                answer.success.len(),
                answer.error.len()
            ),
        })
    }

    /// `ConnectClusterNodes` with one entry `id@host:port`; an entry that fails is an error.
    pub async fn connect(&self, peer: &str) -> Result<(), AdminError> {
        let request = self.request(Method::POST, "ConnectClusterNodes", self.deadlines.read).json(&[peer]);
        let results: Vec<ConnectResult> = self.send(request, Method::POST, "ConnectClusterNodes").await?;
        match results.as_slice() {
            [ConnectResult { success: true, .. }] => Ok(()),
            [ConnectResult { error, .. }] => {
                Err(self.connect_refused(error.as_deref().unwrap_or("no reason")))
            }
            other => Err(self.connect_refused(&format!("{} results for one entry", other.len()))),
        }
    }

    fn connect_refused(&self, why: &str) -> AdminError {
        let call = self.call(&Method::POST, "ConnectClusterNodes");
        AdminError::Unexpected { call, what: format!("a refusal: {}", cut(why)) }
    }

    async fn get<T: DeserializeOwned>(&self, operation: &'static str) -> Result<T, AdminError> {
        self.get_from(operation, "").await
    }

    pub(super) async fn get_from<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        query: &str,
    ) -> Result<T, AdminError> {
        let request = self.request(Method::GET, &format!("{operation}{query}"), self.deadlines.read);
        self.send(request, Method::GET, operation).await
    }

    pub(super) async fn post<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        operation: &'static str,
        body: Option<&B>,
    ) -> Result<T, AdminError> {
        self.post_to(operation, "", body).await
    }

    pub(super) async fn post_to<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        operation: &'static str,
        query: &str,
        body: Option<&B>,
    ) -> Result<T, AdminError> {
        let mut request = self.request(Method::POST, &format!("{operation}{query}"), self.deadlines.write);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.send(request, Method::POST, operation).await
    }

    fn request(&self, method: Method, operation: &str, deadline: Duration) -> RequestBuilder {
        self.http
            .request(method, format!("{}/v2/{operation}", self.endpoint))
            .bearer_auth(self.token.expose())
            .timeout(deadline)
    }

    pub(super) fn call(&self, method: &Method, operation: &'static str) -> Call {
        let method = if *method == Method::POST { "POST" } else { "GET" };
        Call { method, endpoint: self.endpoint.clone(), operation }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        method: Method,
        operation: &'static str,
    ) -> Result<T, AdminError> {
        let call = self.call(&method, operation);
        let unreachable = |source: reqwest::Error| AdminError::Unreachable {
            call: call.clone(),
            source: source.without_url(),
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let body = read(response).await.map_err(unreachable)?;
        if method == Method::POST {
            crash::wrote(|| call.to_string());
        }
        if !status.is_success() {
            let text = cut(&String::from_utf8_lossy(&body));
            return Err(AdminError::Answered { call, status: status.as_u16(), text });
        }
        serde_json::from_slice(&body).map_err(|source| AdminError::Garbled { call, source })
    }
}

async fn read(mut response: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while body.len() < BODY_LIMIT {
        let Some(chunk) = response.chunk().await? else { break };
        body.extend_from_slice(&chunk);
    }
    body.truncate(BODY_LIMIT);
    Ok(body)
}

fn cut(text: &str) -> String {
    let end = (0..=TEXT_LIMIT.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].trim().to_owned()
}

fn identity_of(answer: &PerNode<NodeInfo>) -> Option<String> {
    let mut successes = answer.success.iter();
    let (key, info) = successes.next()?;
    let alone = successes.next().is_none() && answer.error.is_empty();
    let id = key.to_ascii_lowercase();
    let well_formed = id.len() == 64 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    (alone && well_formed && info.node_id.eq_ignore_ascii_case(&id)).then_some(id)
}
