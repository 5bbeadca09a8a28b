//! Another actor at the admin API: the writer of another site, or a person.

use harness::site::Site;
use reqwest::Method;
use serde_json::{Value, json};

use super::scene::Scene;

impl Scene {
    /// Calls the admin API of the pod of a node as somebody who is no operator; answers status and body.
    pub async fn ask(
        &self,
        site: Site,
        node: &str,
        method: Method,
        call: &str,
        body: &Value,
    ) -> (u16, Value) {
        self.ask_at(&self.address(site, node).await, method, call, body).await
    }

    async fn ask_at(&self, address: &str, method: Method, call: &str, body: &Value) -> (u16, Value) {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = http.request(method, format!("http://{address}:3903/v2/{call}"));
        let request = request.bearer_auth(self.mesh().harness_token());
        let request = if body.is_null() { request } else { request.json(body) };
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The layout as the pod of a node has it.
    pub async fn layout(&self, site: Site, node: &str) -> Value {
        let (status, layout) = self.ask(site, node, Method::GET, "GetClusterLayout", &Value::Null).await;
        assert_eq!(status, 200, "{layout}");
        layout
    }

    /// The layout as the node at an address has it.
    pub async fn layout_at(&self, address: &str) -> Value {
        let (status, layout) = self.ask_at(address, Method::GET, "GetClusterLayout", &Value::Null).await;
        assert_eq!(status, 200, "{layout}");
        layout
    }

    /// Stages role changes through a node.
    pub async fn stage(&self, site: Site, node: &str, roles: Value) {
        let body = json!({ "roles": roles });
        let (status, answer) = self.ask(site, node, Method::POST, "UpdateClusterLayout", &body).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// Stages and applies role changes through a node, as the writer of another site would.
    pub async fn apply(&self, site: Site, node: &str, roles: Value) {
        self.stage(site, node, roles).await;
        let version = self.layout(site, node).await["version"].as_u64().unwrap() + 1;
        let body = json!({ "version": version });
        let (status, answer) = self.ask(site, node, Method::POST, "ApplyClusterLayout", &body).await;
        assert_eq!(status, 200, "{answer}");
    }
}

/// A storage role of 10 GiB, as a writer would give it.
pub fn role(id: &str, zone: &str) -> Value {
    json!({"id": id, "zone": zone, "capacity": 10_u64 << 30, "tags": []})
}

/// The removal of a role.
pub fn removal(id: &str) -> Value {
    json!({"id": id, "remove": true})
}
