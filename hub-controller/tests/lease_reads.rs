//! Looking at the Active's Lease, against servers that answer as told, or not at all.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json};
use hub_controller::decision::staleness::{Finding, Verdict};
use hub_controller::decision_log::DecisionLog;
use hub_controller::ha::remote::ActiveHub;
use hub_controller::ha::watcher::{LeaseWatcher, Looking};
use hub_controller::metrics::Metrics;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A watcher, its decision log, and what keeps them alive.
struct Scene {
    watcher: LeaseWatcher,
    decisions: std::path::PathBuf,
    _folder: tempfile::TempDir,
    _way: watch::Sender<Option<ActiveHub>>,
}

impl Scene {
    fn new(server: Option<SocketAddr>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let decisions = folder.path().join("decisions.jsonl");
        let hub = server.map(|address| {
            let client = Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap();
            ActiveHub { generation: 1, client }
        });
        let way = watch::Sender::new(hub);
        let looking = Looking {
            namespace: "hub".into(),
            name: "lease".into(),
            interval: Duration::from_millis(100),
            dial: Duration::from_millis(200),
            lease_duration: Duration::from_secs(3),
            padding: Duration::from_secs(1),
        };
        let log = DecisionLog::open(Some(&decisions), "hub-b").unwrap();
        let watcher = LeaseWatcher::new(way.subscribe(), looking, log, Arc::new(Metrics::new()));
        Self { watcher, decisions, _folder: folder, _way: way }
    }

    fn last(&self) -> Value {
        let text = std::fs::read_to_string(&self.decisions).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }
}

/// Answers each request with the next of these.
async fn server(answers: Vec<(StatusCode, Value)>) -> SocketAddr {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let routes = Router::new().fallback(move || {
        let (status, body) = answers.lock().unwrap().pop_front().expect("one answer per look");
        async move { (status, Json(body)).into_response() }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

fn lease(renew_time: Option<&str>) -> (StatusCode, Value) {
    let spec = json!({"holderIdentity": "hub-a", "leaseDurationSeconds": 3, "renewTime": renew_time});
    (
        StatusCode::OK,
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lease", "uid": "u"}, "spec": spec,
        }),
    )
}

fn refusal(code: u16, reason: &str) -> (StatusCode, Value) {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason,
    });
    (StatusCode::from_u16(code).unwrap(), status)
}

#[tokio::test]
async fn only_a_newer_time_is_life() {
    let [early, late, latest] = ["00", "10", "20"].map(|second| format!("2026-01-01T00:00:{second}.000000Z"));
    let address = server(vec![
        lease(Some(&late)),
        lease(Some(&late)),
        lease(Some(&early)),
        lease(None),
        refusal(403, "Forbidden"),
        refusal(404, "NotFound"),
        lease(Some(&latest)),
    ])
    .await;
    let scene = Scene::new(Some(address));
    let mut findings = Vec::new();
    let mut outcomes = Vec::new();
    for _ in 0..7 {
        findings.push(scene.watcher.look(false).await.finding);
        outcomes.push(scene.last()["outcome"].as_str().unwrap().to_owned());
    }
    let expected = [
        Finding::First,
        Finding::Same,
        Finding::Older,
        Finding::Empty,
        Finding::Unread,
        Finding::Unread,
        Finding::Advanced,
    ];
    assert_eq!(findings, expected);
    assert_eq!(outcomes, ["read", "read", "read", "read", "refused", "absent", "read"]);
    assert_eq!(scene.last()["newest"], "2026-01-01T00:00:20Z");
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers_is_given_up_after_the_dial_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let scene = Scene::new(Some(listener.local_addr().unwrap()));
    let look = tokio::time::timeout(Duration::from_secs(10), scene.watcher.look(false)).await.unwrap();
    assert_eq!((look.finding, look.verdict), (Finding::Unread, Verdict::NeverRead));
    let poll = scene.last();
    assert_eq!(poll["outcome"], "timeout");
    assert!(poll["tookMs"].as_u64().unwrap() >= 200, "{poll}");
}

#[tokio::test]
async fn nobody_and_no_credential_are_told_apart() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let scene = Scene::new(Some(gone));
    scene.watcher.look(false).await;
    assert_eq!(scene.last()["outcome"], "unreachable");
    let scene = Scene::new(None);
    scene.watcher.look(true).await;
    assert_eq!(scene.last()["outcome"], "no-credential");
    assert_eq!(scene.last()["last"], true);
}
