//! A drain proof from its beginning to its end, and what sets it back.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::{Advance, DrainProof, Seen, advance};
use crate::garage::Worker;

const QUIET: Duration = Duration::from_secs(670);

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn resync(state: &str, queue: u64, errors: u64) -> Worker {
    Worker {
        id: 3,
        name: "Block resync worker #1".into(),
        state: json!(state),
        queue_length: Some(queue),
        persistent_errors: Some(errors),
        ..Worker::default()
    }
}

fn disabled() -> Worker {
    Worker { id: 4, name: "Block resync worker #2".into(), state: json!("idle"), ..Worker::default() }
}

fn repair(id: u64, state: &str, errors: u64) -> Worker {
    Worker { id, name: "Block repair worker".into(), state: json!(state), errors, ..Worker::default() }
}

fn seen(workers: &[Worker]) -> Seen {
    let all: Vec<Worker> = workers.to_vec();
    Seen {
        layout_version: 4,
        workers: BTreeMap::from([("aa".to_owned(), all.clone()), ("bb".to_owned(), all)]),
        block_errors: BTreeMap::from([("aa".to_owned(), 0), ("bb".to_owned(), 0)]),
    }
}

fn idle() -> [Worker; 2] {
    [resync("idle", 0, 0), disabled()]
}

fn repaired(state: &str) -> Seen {
    seen(&[&idle()[..], &[repair(9, state, 0)]].concat())
}

/// The proof when the quiet period has just begun, at second 100.
fn quiet() -> DrainProof {
    let begun = advance(&DrainProof::default(), &seen(&idle()), &at(1), QUIET).proof;
    let proof = advance(&begun, &repaired("done"), &at(100), QUIET).proof;
    assert_eq!(proof.quiet_since, Some(at(100)));
    proof
}

#[test]
fn it_first_records_the_newest_worker_of_each_node() {
    let Advance { proof, launch, waiting } = advance(&DrainProof::default(), &seen(&idle()), &at(1), QUIET);
    assert_eq!(proof.baseline, BTreeMap::from([("aa".to_owned(), 4), ("bb".to_owned(), 4)]));
    assert!(launch.is_empty() && waiting.is_some(), "nothing is started before it is recorded");
}

#[test]
fn then_it_starts_a_repair_on_each_node() {
    let begun = advance(&DrainProof::default(), &seen(&idle()), &at(1), QUIET).proof;
    assert_eq!(advance(&begun, &seen(&idle()), &at(2), QUIET).launch, ["aa", "bb"]);
}

#[test]
fn an_older_repair_does_not_count() {
    let old = seen(&[&idle()[..], &[repair(9, "done", 0)]].concat());
    let begun = advance(&DrainProof::default(), &old, &at(1), QUIET).proof;
    assert_eq!(advance(&begun, &old, &at(2), QUIET).launch, ["aa", "bb"]);
}

#[test]
fn a_repair_under_way_or_with_errors_is_waited_for() {
    let begun = advance(&DrainProof::default(), &seen(&idle()), &at(1), QUIET).proof;
    for unfinished in [repaired("busy"), seen(&[&idle()[..], &[repair(9, "done", 1)]].concat())] {
        let Advance { proof, launch, waiting } = advance(&begun, &unfinished, &at(2), QUIET);
        assert_eq!((proof.quiet_since, launch.len()), (None, 0));
        assert!(waiting.unwrap().contains("under way"));
    }
}

#[test]
fn it_is_complete_after_the_quiet_period_and_not_before() {
    assert!(advance(&quiet(), &repaired("done"), &at(769), QUIET).waiting.is_some());
    let Advance { proof, waiting, .. } = advance(&quiet(), &repaired("done"), &at(770), QUIET);
    assert_eq!((proof.completed_at, waiting), (Some(at(770)), None));
}

#[test]
fn a_changed_error_count_begins_the_quiet_period_anew() {
    let moved = seen(&[resync("idle", 0, 2), disabled(), repair(9, "done", 0)]);
    let proof = advance(&quiet(), &moved, &at(500), QUIET).proof;
    assert_eq!(proof.quiet_since, Some(at(500)));
}

#[test]
fn errors_busy_workers_queues_and_missing_blocks_keep_it_open() {
    let mut missing = repaired("done");
    missing.block_errors.insert("bb".to_owned(), 1);
    let with = |worker: Worker| seen(&[worker, disabled(), repair(9, "done", 0)]);
    for open in [missing, with(resync("busy", 0, 0)), with(resync("idle", 7, 0))] {
        assert!(advance(&quiet(), &open, &at(9_000), QUIET).waiting.is_some());
    }
    let mut erring = quiet();
    erring.errors = BTreeMap::from([("aa".to_owned(), 1), ("bb".to_owned(), 1)]);
    assert!(advance(&erring, &with(resync("idle", 0, 1)), &at(9_000), QUIET).waiting.is_some());
}

#[test]
fn another_layout_version_or_another_set_of_nodes_begins_anew() {
    let mut newer = repaired("done");
    newer.layout_version = 5;
    let mut fewer = repaired("done");
    fewer.workers.remove("bb");
    for changed in [newer, fewer] {
        let proof = advance(&quiet(), &changed, &at(9_000), QUIET).proof;
        assert_eq!((proof.quiet_since, proof.repairs.len()), (None, 0));
        assert_eq!(proof.baseline["aa"], 9);
    }
}

#[test]
fn a_repair_that_was_lost_with_its_process_is_started_again() {
    assert_eq!(advance(&quiet(), &seen(&idle()), &at(200), QUIET).launch, ["aa", "bb"]);
}
