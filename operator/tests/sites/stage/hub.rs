//! Faults and rules of the hub.

use reqwest::Method;
use serde_json::{Value, json};

use super::scene::Scene;

/// The hub's control API, as far as tests use it.
#[derive(Clone)]
pub struct Control {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Control({})", self.base)
    }
}

/// A rule about single calls. It stays until it is removed.
#[derive(Debug)]
#[must_use]
pub struct Rule {
    control: Control,
    id: u64,
}

impl Control {
    pub fn new(base: &str, token: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, base: format!("{base}/control/v1"), token: token.to_owned() }
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let request = self.http.request(method.clone(), format!("{}{path}", self.base));
        let answer = request.bearer_auth(&self.token).json(body).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{method} {path} {body}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Meshes, nodes, routes.
    pub async fn state(&self) -> Value {
        self.call(Method::GET, "/state", &Value::Null).await
    }
}

impl Scene {
    /// Breaks or mends something.
    pub async fn fault(&self, fault: Value) {
        self.control().call(Method::POST, "/faults", &fault).await;
    }

    /// A fault on calls of `path` (without `/v2/`; empty for all) of the scene's mesh: on `count` of them, 0 for all.
    pub async fn rule(&self, path: &str, count: u64, effect: Value) -> Rule {
        let mut pattern = json!({"mesh": self.mesh().name});
        if !path.is_empty() {
            pattern["path"] = format!("/v2/{path}").into();
        }
        let body = json!({"match": pattern, "count": count, "effect": effect});
        let answer = self.control().call(Method::POST, "/rules", &body).await;
        Rule { control: self.control().clone(), id: answer["id"].as_u64().unwrap() }
    }

    /// The hub's word about every node of the scene's mesh.
    pub async fn mesh_nodes(&self) -> Vec<Value> {
        let state = self.control().state().await;
        state["meshes"][&self.mesh().name]["nodes"].as_array().cloned().unwrap_or_default()
    }
}

impl Rule {
    /// On how many calls it acted so far.
    pub async fn acted(&self) -> u64 {
        let rules = self.control.call(Method::GET, "/rules", &Value::Null).await;
        let own = rules.as_array().unwrap().iter().find(|rule| rule["id"] == self.id);
        own.map_or(0, |rule| rule["acted"].as_u64().unwrap())
    }

    /// Ends it; calls that it holds go on.
    pub async fn remove(self) {
        self.control.call(Method::DELETE, &format!("/rules/{}", self.id), &json!({})).await;
    }
}
