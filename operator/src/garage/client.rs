//! Transport and reads. The writes are in their own file, behind their permit.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answers::{ClusterHealth, ClusterStatus, ConnectResult, NodeInfo, PerNode};
use super::error::{AdminError, Call};
use super::layout::{ClusterLayout, LayoutHistory};
use super::token::Token;
use super::transport::{Http, Request};
use crate::crash;

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
    http: Http,
    endpoint: String,
    token: Token,
    deadlines: Deadlines,
}

impl AdminClient {
    /// A client for this base URL; a trailing slash is dropped.
    pub fn new(http: Http, endpoint: &str, token: Token, deadlines: Deadlines) -> Self {
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
        let body = encoded(&[peer], || self.call(&Method::POST, "ConnectClusterNodes"))?;
        let deadline = self.deadlines.read;
        let results: Vec<ConnectResult> =
            self.send(Method::POST, "ConnectClusterNodes", "", Some(body), deadline).await?;
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
        self.send(Method::GET, operation, query, None, self.deadlines.read).await
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
        let body = body.map(|body| encoded(body, || self.call(&Method::POST, operation))).transpose()?;
        self.send(Method::POST, operation, query, body, self.deadlines.write).await
    }

    pub(super) fn call(&self, method: &Method, operation: &'static str) -> Call {
        let method = if *method == Method::POST { "POST" } else { "GET" };
        Call { method, endpoint: self.endpoint.clone(), operation }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        operation: &'static str,
        query: &str,
        body: Option<Vec<u8>>,
        deadline: Duration,
    ) -> Result<T, AdminError> {
        let (call, writes) = (self.call(&method, operation), method == Method::POST);
        let url = format!("{}/v2/{operation}{query}", self.endpoint);
        let request = Request { method, url, token: &self.token, body, deadline };
        let reply = match self.http.send(request).await {
            Ok(reply) => reply,
            Err(source) => return Err(AdminError::Unreachable { call, source }),
        };
        if writes {
            crash::wrote(|| call.to_string());
        }
        if !reply.status.is_success() {
            let text = cut(&String::from_utf8_lossy(&reply.body));
            return Err(AdminError::Answered { call, status: reply.status.as_u16(), text });
        }
        serde_json::from_slice(&reply.body).map_err(|source| AdminError::Garbled { call, source })
    }
}

fn encoded<B: Serialize>(body: &B, call: impl FnOnce() -> Call) -> Result<Vec<u8>, AdminError> {
    serde_json::to_vec(body)
        .map_err(|error| AdminError::Unexpected { call: call(), what: format!("nothing: {error}") })
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
