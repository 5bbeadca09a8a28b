//! Faults of the hub through the client of its control API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fake_garage::mesh::Pacing;
use fake_garage::{ControlToken, NodeNetwork, Options};
use harness::garage::hub::{Hub, NodeName, NodeSpec};
use serde_json::json;

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn options(folder: &std::path::Path) -> Options {
    let [.., high, low] = std::process::id().wrapping_mul(41).to_be_bytes();
    let first = Ipv4Addr::new(127, 16 + high % 200, low, 40);
    Options {
        listen: SocketAddr::new(first.into(), 0),
        control_token: ControlToken::new("control").unwrap(),
        journal: folder.join("journal.jsonl"),
        run: "test".to_owned(),
        node_network: NodeNetwork { first, count: 20 },
        proxies: [].into(),
        pacing: Pacing::fast(),
        seed: 1,
    }
}

#[tokio::test]
async fn dropping_the_guard_heals_and_the_table_shows_both() {
    let folder = tempfile::TempDir::new().unwrap();
    let running = fake_garage::Hub::start(options(folder.path())).await.unwrap();
    let hub = Hub::new(&running.control_url(), "control").unwrap();
    hub.put_mesh("mesh", &fake_garage::hub::registry::digest(SECRET), &[]).await.unwrap();
    let name = NodeName { site: "east".to_owned(), namespace: "ns".to_owned(), pod: "garage-0".to_owned() };
    let spec: NodeSpec = node_spec();
    hub.put_node(&name, &spec).await.unwrap();
    let fault = hub.hold_fault(&json!({"action": "freeze", "node": name.to_string()})).await.unwrap();
    assert!(hub.table("mesh").await.unwrap().contains("frozen"));
    drop(fault);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while hub.table("mesh").await.unwrap().contains("frozen") {
        assert!(tokio::time::Instant::now() < deadline, "it stays frozen");
        tokio::task::yield_now().await;
    }
    let fault = json!({"action": "clock", "node": name.to_string(), "offsetMs": 5, "expiresMs": 60_000});
    let fault = hub.hold_fault(&fault).await.unwrap();
    assert!(hub.table("mesh").await.unwrap().contains("+5 ms"));
    let id = fault.id().unwrap();
    fault.heal().await.unwrap();
    assert!(hub.table("mesh").await.unwrap().contains("+0 ms"));
    hub.heal_fault(id).await.unwrap();
}

fn node_spec() -> NodeSpec {
    NodeSpec {
        rpc_secret: SECRET.to_owned(),
        admin_token: None,
        metrics_token: None,
        replication_factor: 1,
        consistency_mode: "consistent".to_owned(),
        hostname: "garage-0".to_owned(),
        region: "garage".into(),
        purge_layout: None,
    }
}
