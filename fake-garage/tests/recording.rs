//! Whoever has an answer finds the call in the history's file, whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "shared with other tests")]
mod support;

use std::collections::BTreeSet;

use onewriter_history::{Event, History};
use support::{SECRET, TestHub};

/// Calls that have ended, as the file tells right now.
fn ended(hub: &TestHub) -> usize {
    let history = History::read(&hub.journal()).unwrap();
    history.records.iter().filter(|record| matches!(record.event, Event::CallEnd(_))).count()
}

#[tokio::test]
async fn an_answered_call_is_in_the_file() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    let node = hub.node("east", "garage-0", SECRET).await;
    for answered in 1..=50 {
        assert_eq!(hub.admin(&node, "east", "GET", "/v2/GetClusterLayout", None).await.0, 200);
        assert_eq!(ended(&hub), answered);
    }
    hub.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_come_at_once_are_each_in_the_file_and_in_one_order() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    let node = hub.node("east", "garage-0", SECRET).await;
    let turn = async || {
        for _ in 0..20 {
            hub.admin(&node, "east", "GET", "/v2/GetClusterLayout", None).await;
        }
    };
    tokio::join!(turn(), turn(), turn(), turn());
    let history = hub.finish().await;
    let mut open = BTreeSet::new();
    for record in &history.records {
        match &record.event {
            Event::CallBegin(begin) => assert!(open.insert(begin.call), "call {} began twice", begin.call),
            Event::CallEnd(end) => assert!(open.remove(&end.call), "call {} never began", end.call),
            _ => {}
        }
    }
    assert!(open.is_empty(), "calls {open:?} never ended");
}
