//! Anything at all on a node's port, over a stream in memory and under virtual time.
//!
//! The first byte says how the rest is sent: in pieces of that many bytes (0: all at once); with its highest bit set
//! the caller then neither sends nor closes any more. However it goes, the connection ends, the answer looks like HTTP,
//! and the history is whole: what began has ended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fake_garage::hub::Clock;
use fake_garage::hub::journal::Recorder;
use fake_garage::hub::listener;
use fake_garage::hub::registry::{Registry, digest};
use fake_garage::hub::shared::Shared;
use fake_garage::mesh::Pacing;
use onewriter_history::{Event, Header, History, Journal, Source};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

/// No connection lasts longer than this unless its caller waits for an answer that a node withholds.
const LONGEST: Duration = Duration::from_mins(10);

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let Some((mode, bytes)) = data.split_first() else { return };
    let folder = tempfile::Builder::new().prefix("port").tempdir_in(memory()).unwrap();
    let journal = folder.path().join("journal.jsonl");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let answer = runtime.unwrap().block_on(connect(&journal, *mode, bytes));
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1."),
        "not HTTP: {:?}",
        String::from_utf8_lossy(&answer)
    );
    check_history(&journal);
}

/// A folder that costs no disk.
fn memory() -> &'static Path {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared } else { Path::new("/tmp") }
}

async fn connect(journal: &Path, mode: u8, bytes: &[u8]) -> Vec<u8> {
    let journal = Journal::create(journal, &Header::new("fuzz"), Source::hub()).unwrap();
    let shared = Arc::new(Shared::new(Recorder::new(journal, Clock::Machine), Pacing::fast()));
    let registry = Registry::new(shared, "127.0.0.1+1".parse().unwrap(), 0);
    let token = json!({"token": "t", "caller": "east", "target": "*", "label": "east"});
    let mesh = json!({"rpcSecretSha256": digest(&"ab".repeat(32)), "tokens": [token]});
    registry.register("mesh", serde_json::from_value(mesh).unwrap()).unwrap();
    for (name, address) in [("east/n/a-0", "10.0.0.1"), ("west/n/b-0", "10.0.0.2")] {
        let node = json!({"rpcSecret": "ab".repeat(32), "replicationFactor": 1, "hostname": name, "address": address});
        let site = name.split('/').next().unwrap();
        registry.start_node(name, site, serde_json::from_value(node).unwrap()).await.unwrap();
    }
    let place = registry.node("east/n/a-0").unwrap();
    let (caller, node) = tokio::io::duplex(1 << 16);
    let served = tokio::spawn(listener::serve_stream(node, place.actor, place.node));
    let answer = call(caller, mode, bytes).await;
    tokio::time::timeout(LONGEST, served).await.expect("the connection ends").expect("no panic");
    registry.forget("mesh").unwrap();
    answer
}

async fn call(caller: DuplexStream, mode: u8, bytes: &[u8]) -> Vec<u8> {
    let (mut reading, mut writing) = tokio::io::split(caller);
    let piece = usize::from(mode & 0x7f);
    let send = async {
        for piece in bytes.chunks(if piece == 0 { bytes.len().max(1) } else { piece }) {
            if writing.write_all(piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
        if mode & 0x80 == 0 {
            writing.shutdown().await.ok();
        } else {
            // A caller that is just slow: the node gives up first.
            tokio::time::sleep(LONGEST).await;
        }
    };
    let mut answer = Vec::new();
    tokio::select! {
        _ = reading.read_to_end(&mut answer) => {}
        () = async { send.await; std::future::pending().await } => {}
        () = tokio::time::sleep(LONGEST) => {}
    }
    answer
}

fn check_history(journal: &Path) {
    let history = History::read(journal).expect("the history is whole");
    let mut open = std::collections::BTreeSet::new();
    for record in history.records {
        match record.event {
            Event::CallBegin(begin) => assert!(open.insert(begin.call), "call {} begins twice", begin.call),
            Event::CallEnd(end) => assert!(open.remove(&end.call), "call {} ends and never began", end.call),
            _ => {}
        }
    }
    assert!(open.is_empty(), "calls without an end: {open:?}");
}
