//! Four nodes of one mesh in a hub that goes by a virtual clock.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fake_garage::admin::Request;
use fake_garage::admin::request::Attribution;
use fake_garage::hub::registry::{MeshRequest, NodeRequest};
use fake_garage::mesh::Pacing;
use fake_garage::{Clock, ControlToken, FaultGuard, Hub, NodeNetwork, Options};
use jiff::Timestamp;
use onewriter_history::{Event, Fault, History, LayoutState, Record};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
pub(crate) const NODES: [&str; 4] = ["east/ns/g-0", "east/ns/g-1", "west/ns/g-0", "west/ns/g-1"];

/// Addresses for one hub at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses([u8; 2]);

impl Addresses {
    /// Some that no other hub of this machine's tests has, as a rule.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(7_000);
        let place = std::process::id().wrapping_mul(37).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let [.., high, low] = place.to_be_bytes();
        Self([16 + high % 200, low])
    }
}

pub(crate) struct World {
    hub: Hub,
    folder: TempDir,
}

pub(crate) fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(crate) async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

impl World {
    pub(crate) async fn with_layout() -> Self {
        Self::of(Addresses::new(), Pacing::fast(), 1).await
    }

    /// Four connected nodes with version 1.
    pub(crate) async fn of(Addresses([high, low]): Addresses, pacing: Pacing, seed: u64) -> Self {
        let folder = TempDir::new().unwrap();
        let options = Options {
            listen: SocketAddr::new(Ipv4Addr::new(127, high, low, 3).into(), 0),
            control_token: ControlToken::new("control").unwrap(),
            journal: folder.path().join("journal.jsonl"),
            run: "virtual".to_owned(),
            node_network: NodeNetwork { first: Ipv4Addr::new(127, high, low, 10), count: 200 },
            proxies: [].into(),
            pacing,
            seed,
        };
        let clock = Clock::virtual_from(Timestamp::from_second(1_790_000_000).unwrap());
        let hub = Hub::start_by(clock, options).await.unwrap();
        let world = Self { hub, folder };
        world.join().await;
        world
    }

    async fn join(&self) {
        let registry = self.hub.registry();
        let secret = fake_garage::hub::registry::digest(SECRET);
        let tokens = json!([{"token": "token", "caller": "harness", "target": "*", "label": "all"}]);
        let mesh: MeshRequest = read(json!({"rpcSecretSha256": secret, "tokens": tokens}));
        registry.register("mesh", mesh).unwrap();
        let mut entries = Vec::new();
        let mut roles = Vec::new();
        for name in NODES {
            let site = &name[..4];
            let node: NodeRequest =
                read(json!({"rpcSecret": SECRET, "replicationFactor": 2, "hostname": &name[8..]}));
            let started = registry.start_node(name, site, node).await.unwrap();
            entries.push(format!("{}@{}:3901", started.node_id, started.address));
            roles.push(
                json!({"id": started.node_id, "zone": site, "capacity": 1_000_000_000_u64, "tags": []}),
            );
        }
        pass(300).await;
        self.ok(0, "POST", "/v2/ConnectClusterNodes", json!(entries)).await;
        pass(25_000).await;
        self.ok(0, "POST", "/v2/UpdateClusterLayout", json!({ "roles": roles })).await;
        self.ok(0, "POST", "/v2/ApplyClusterLayout", json!({"version": 1})).await;
        pass(5_000).await;
    }

    /// Calls a node; 0 means that there was no answer.
    pub(crate) async fn call(&self, node: usize, method: &str, path: &str, body: Value) -> (u16, Value) {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.map(str::to_owned),
            authorization: Some(b"Bearer token".to_vec()),
            body: if body.is_null() { Vec::new() } else { body.to_string().into_bytes() },
            origin: Attribution::default(),
        };
        match self.hub.call(NODES[node], request).await.unwrap() {
            Some(answer) => (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default()),
            None => (0, Value::Null),
        }
    }

    pub(crate) async fn ok(&self, node: usize, method: &str, path: &str, body: Value) -> Value {
        let (status, body) = self.call(node, method, path, body).await;
        assert_eq!(status, 200, "{path}: {body}\n{}", self.table());
        body
    }

    pub(crate) async fn get(&self, node: usize, path: &str) -> Value {
        self.ok(node, "GET", path, Value::Null).await
    }

    pub(crate) async fn fault(&self, fault: Value) -> FaultGuard {
        self.hub.fault(read(fault)).await.unwrap()
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(crate) fn table(&self) -> String {
        self.hub.table(None).unwrap()
    }

    /// The state of a node as the control API tells it.
    pub(crate) fn state(&self, node: usize) -> Value {
        let state = fake_garage::hub::state::HubState::of(self.hub.registry());
        serde_json::to_value(state).unwrap()["meshes"]["mesh"]["nodes"][node].clone()
    }

    /// Stops the hub and gives its history as it stands in the file.
    pub(crate) async fn finish(self) -> String {
        let registry = Arc::clone(self.hub.registry());
        self.hub.run(std::future::ready(())).await.unwrap();
        for actor in registry.meshes() {
            let nodes: Vec<_> = actor.read(|cluster| cluster.mesh().nodes().map(|(node, _)| node).collect());
            for node in nodes {
                actor.port_closed(node).await;
            }
        }
        std::fs::read_to_string(self.folder.path().join("journal.jsonl")).unwrap()
    }
}

pub(crate) fn records(history: &str) -> Vec<Record> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.jsonl");
    std::fs::write(&path, history).unwrap();
    History::read(&path).unwrap().records
}

pub(crate) fn faults(history: &str) -> Vec<Fault> {
    let fault = |record: Record| match record.event {
        Event::Fault(fault) => Some(fault),
        _ => None,
    };
    records(history).into_iter().filter_map(fault).collect()
}

pub(crate) fn layout_events(history: &str) -> Vec<LayoutState> {
    let layout = |record: Record| match record.event {
        Event::State(state) if state.subject == "layout" => Some(read(state.value)),
        _ => None,
    };
    records(history).into_iter().filter_map(layout).collect()
}
