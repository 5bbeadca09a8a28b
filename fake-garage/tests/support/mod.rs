//! A hub for tests, and a client for it.

use std::net::{Ipv4Addr, SocketAddr};

use fake_garage::mesh::Pacing;
use fake_garage::{ControlToken, Hub, NodeNetwork, Options, ServeError};
use onewriter_history::{Event, History};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) mod network;
use network::network;

/// Token of the control API.
pub(crate) const CONTROL: &str = "control-token";
/// Secret of the mesh that [`TestHub::mesh`] registers.
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A hub in this process, on addresses of its own.
pub(crate) struct TestHub {
    pub(crate) http: reqwest::Client,
    pub(crate) control: String,
    pub(crate) proxy: SocketAddr,
    folder: TempDir,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), ServeError>>,
}

impl TestHub {
    /// Starts a hub.
    pub(crate) async fn start() -> Self {
        let [high, low] = network();
        let at = |last| SocketAddr::new(Ipv4Addr::new(127, high, low, last).into(), 0);
        let folder = TempDir::new().unwrap();
        let probe = tokio::net::TcpListener::bind(at(4)).await.unwrap();
        let proxy = probe.local_addr().unwrap();
        drop(probe);
        let options = Options {
            listen: at(3),
            control_token: ControlToken::new(CONTROL).unwrap(),
            journal: folder.path().join("journal.jsonl"),
            run: "test".to_owned(),
            node_network: NodeNetwork { first: Ipv4Addr::new(127, high, low, 10), count: 200 },
            proxies: [("east".to_owned(), proxy)].into(),
            pacing: Pacing::fast(),
            seed: 1,
        };
        let hub = Hub::start(options).await.unwrap();
        let control = format!("{}/control/v1", hub.control_url());
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(hub.run(async move {
            stopped.await.ok();
        }));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, control, proxy, folder, stop, running }
    }

    /// The history's file.
    pub(crate) fn journal(&self) -> std::path::PathBuf {
        self.folder.path().join("journal.jsonl")
    }

    /// Stops the hub and reads what it has recorded.
    pub(crate) async fn finish(self) -> History {
        self.stop.send(()).unwrap();
        self.running.await.unwrap().unwrap();
        History::read(&self.folder.path().join("journal.jsonl")).unwrap()
    }

    /// A call of the control API.
    pub(crate) async fn control(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let method = method.parse().unwrap();
        let request = self.http.request(method, format!("{}{path}", self.control)).bearer_auth(CONTROL);
        let response = request.json(&body).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or_default())
    }

    /// Registers a mesh with tokens of both sites' operators and the harness.
    pub(crate) async fn mesh(&self, name: &str, secret: &str) -> (u16, Value) {
        let token = |caller: &str, target: &str| json!({"token": format!("{name}-{caller}-{target}"), "caller": caller, "target": target, "label": format!("{caller}@{target}")});
        let tokens =
            [token("east", "east"), token("east", "west"), token("west", "west"), token("west", "east")];
        let body = json!({"rpcSecretSha256": fake_garage::hub::registry::digest(secret), "tokens": tokens});
        self.control("PUT", &format!("/meshes/{name}"), body).await
    }

    /// Starts a node.
    pub(crate) async fn node(&self, site: &str, pod: &str, secret: &str) -> TestNode {
        let body = json!({"rpcSecret": secret, "adminToken": null, "metricsToken": null, "replicationFactor": 2, "consistencyMode": "consistent", "hostname": pod});
        let (status, answer) = self.control("PUT", &format!("/nodes/{site}/ns/{pod}"), body).await;
        assert_eq!(status, 200, "{answer}");
        TestNode {
            site: site.to_owned(),
            id: answer["nodeId"].as_str().unwrap().to_owned(),
            address: answer["address"].as_str().unwrap().to_owned(),
        }
    }

    /// A call of a node's admin API with the token of a caller for that site.
    pub(crate) async fn admin(
        &self,
        node: &TestNode,
        caller: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let url = format!("http://{}:3903{path}", node.address);
        let token = format!("mesh-{caller}-{}", node.site);
        let mut request = self.http.request(method.parse().unwrap(), url).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or_default())
    }
}

/// A node that runs.
#[derive(Debug, Clone)]
pub(crate) struct TestNode {
    pub(crate) site: String,
    pub(crate) id: String,
    pub(crate) address: String,
}

impl TestNode {
    /// The entry by which others connect to it.
    pub(crate) fn entry(&self) -> String {
        format!("{}@{}:3901", self.id, self.address)
    }
}

/// Asks again until the answer is the expected one: events in the hub take a few milliseconds.
pub(crate) async fn eventually<T, F: Future<Output = T>>(
    mut ask: impl FnMut() -> F,
    good: impl Fn(&T) -> bool,
) -> T
where
    T: std::fmt::Debug,
{
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let answer = ask().await;
        if good(&answer) {
            return answer;
        }
        assert!(tokio::time::Instant::now() < deadline, "it never came to that; last seen: {answer:?}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// The events of one kind in a history.
pub(crate) fn events<'a, T>(history: &'a History, pick: impl Fn(&'a Event) -> Option<T> + 'a) -> Vec<T> {
    history.records.iter().filter_map(|record| pick(&record.event)).collect()
}
