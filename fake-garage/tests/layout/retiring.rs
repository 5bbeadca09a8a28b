//! Trackers and retirement (Garage admin reference §9).

use fake_garage::layout::{ConsistencyMode, LayoutEvent, LayoutHistory, LocalLayout, NodeId, SkipError};

use crate::fixture::*;

/// All nodes of a cluster with version 1, of replication factor `factor`.
fn cluster(roles: &[(NodeId, fake_garage::layout::Change)], factor: usize) -> Vec<LocalLayout> {
    let mut nodes: Vec<_> = roles.iter().map(|(id, _)| node(*id, factor, 0)).collect();
    stage(&mut nodes[0], roles, 1);
    apply(&mut nodes[0], 2);
    settle(&mut nodes.iter_mut().collect::<Vec<_>>());
    nodes
}

fn four(factor: usize) -> Vec<LocalLayout> {
    let roles =
        [(A1, storage("a", 100)), (A2, storage("a", 100)), (B1, storage("b", 100)), (B2, storage("b", 100))];
    cluster(&roles, factor)
}

/// Everything that can happen among the nodes happens.
fn run(nodes: &mut [LocalLayout]) {
    for _ in 0..4 {
        let mut all: Vec<_> = nodes.iter_mut().collect();
        settle(&mut all);
        synchronise(&mut all);
    }
}

fn skip(nodes: &mut [LocalLayout], version: u64, allow_missing_data: bool, dead: NodeId) {
    let skipped = nodes[0].skip_dead_nodes(version, allow_missing_data, |id| id != dead).unwrap();
    nodes[0].adopt(&skipped.history);
    run(nodes);
}

fn remove(nodes: &mut [LocalLayout], id: NodeId, now: u64) {
    stage(&mut nodes[0], &[(id, None)], now);
    apply(&mut nodes[0], now + 1);
    run(nodes);
}

#[test]
fn capture_04_the_first_version_leaves_no_version_0_behind() {
    let nodes = four(2);
    assert_eq!((live(&nodes[0]), old(&nodes[0])), (vec![1], vec![]));
}

#[test]
fn capture_19_a_version_is_acknowledged_then_synchronised_then_the_old_one_retires() {
    let mut nodes = four(2);
    apply(&mut nodes[0], 10);
    settle(&mut nodes.iter_mut().collect::<Vec<_>>());
    assert_eq!(nodes[0].history().min_ack(), 2);
    assert_eq!(live(&nodes[0]), [1, 2], "acknowledged by all, synchronised by nobody");
    for node in &mut nodes[..3] {
        let round = node.sync_round();
        node.finish_sync(round);
    }
    settle(&mut nodes.iter_mut().collect::<Vec<_>>());
    assert_eq!(nodes[0].history().synchronised(), 1, "one has not synchronised");
    run(&mut nodes);
    for node in &nodes {
        assert_eq!((live(node), old(node)), (vec![2], vec![1]));
    }
}

#[test]
fn section_9_synchronisation_reaches_no_further_than_what_everybody_has_acknowledged() {
    let mut nodes = four(2);
    apply(&mut nodes[0], 10);
    let round = nodes[0].sync_round();
    assert_eq!((round.current, round.min_ack, round.oldest), (2, 1, 1));
    nodes[0].finish_sync(round);
    assert_eq!(nodes[0].history().trackers.sync.get(A1, 0), 1);
}

#[test]
fn capture_04_at_most_five_retired_versions_are_kept() {
    let mut nodes = four(2);
    for now in 1..9 {
        apply(&mut nodes[0], now * 100);
        run(&mut nodes);
    }
    assert_eq!((live(&nodes[3]), old(&nodes[3])), (vec![9], vec![4, 5, 6, 7, 8]));
}

#[test]
fn capture_05_with_factor_2_a_dead_storage_node_holds_everything_until_data_may_be_missing() {
    let mut nodes = four(2);
    let mut alive: Vec<_> = nodes.drain(..3).collect();
    apply(&mut alive[0], 10);
    run(&mut alive);
    assert_eq!((live(&alive[0]), alive[0].history().min_ack()), (vec![1, 2], 1));
    skip(&mut alive, 2, false, B2);
    assert_eq!(
        (live(&alive[0]), alive[0].history().min_ack()),
        (vec![1, 2], 2),
        "its synchronisation is missing"
    );
    remove(&mut alive, B2, 20);
    skip(&mut alive, 3, false, B2);
    assert_eq!(live(&alive[0]), [1, 2, 3], "it stores data in live versions");
    skip(&mut alive, 3, true, B2);
    assert_eq!((live(&alive[0]), old(&alive[0])), (vec![3], vec![1, 2]));
}

#[test]
fn capture_06_with_factor_3_a_dead_storage_node_only_has_to_leave_the_current_version() {
    let mut nodes = four(3);
    let mut alive: Vec<_> = nodes.drain(..3).collect();
    apply(&mut alive[0], 10);
    skip(&mut alive, 2, false, B2);
    assert_eq!(alive[0].history().synchronised(), 2, "a write quorum has synchronised");
    assert_eq!(live(&alive[0]), [1, 2], "the dead node cannot tell that it knows");
    remove(&mut alive, B2, 20);
    assert_eq!(old(&alive[0]), [1]);
    skip(&mut alive, 3, false, B2);
    assert_eq!((live(&alive[0]), old(&alive[0])), (vec![3], vec![1, 2]));
}

#[test]
fn capture_13_a_dead_gateway_holds_retirement_while_it_is_in_the_current_version() {
    let roles =
        [(A1, storage("a", 100)), (A2, storage("a", 100)), (B1, storage("b", 100)), (B2, gateway("b"))];
    let mut nodes = cluster(&roles, 2);
    let mut alive: Vec<_> = nodes.drain(..3).collect();
    apply(&mut alive[0], 10);
    run(&mut alive);
    assert_eq!(alive[0].history().min_ack(), 1, "its acknowledgement is missing");
    skip(&mut alive, 2, false, B2);
    assert_eq!(live(&alive[0]), [1, 2], "it cannot tell that it knows");
    remove(&mut alive, B2, 20);
    skip(&mut alive, 3, false, B2);
    assert_eq!(live(&alive[0]), [3], "its synchronisation never counted");
}

#[test]
fn capture_14_a_single_node_keeps_its_previous_version_until_the_next_change() {
    let mut nodes = cluster(&[(A1, storage("a", 100))], 1);
    let values = |nodes: &[LocalLayout]| {
        let trackers = &nodes[0].history().trackers;
        (trackers.ack.get(A1, 0), trackers.sync.get(A1, 0), trackers.sync_ack.get(A1, 0))
    };
    apply(&mut nodes[0], 10);
    run(&mut nodes);
    assert_eq!((live(&nodes[0]), values(&nodes)), (vec![1, 2], (2, 2, 1)));
    apply(&mut nodes[0], 20);
    run(&mut nodes);
    assert_eq!((live(&nodes[0]), old(&nodes[0]), values(&nodes)), (vec![2, 3], vec![1], (3, 3, 2)));
}

#[test]
fn capture_14_degraded_only_the_current_version_is_kept() {
    let history = LayoutHistory::fresh(1, 0);
    let mut node = LocalLayout::start(A1, ConsistencyMode::Degraded, history);
    stage(&mut node, &[(A1, storage("a", 100))], 1);
    apply(&mut node, 2);
    assert!(apply(&mut node, 10).contains(&LayoutEvent::Retired { version: 1 }));
    assert_eq!((live(&node), old(&node)), (vec![2], vec![1]));
}

#[test]
fn capture_04_nothing_can_be_skipped_while_one_version_is_live() {
    let nodes = four(2);
    assert_eq!(nodes[0].skip_dead_nodes(1, false, |_| true).unwrap_err(), SkipError::NothingDrains);
}

#[test]
fn capture_05_only_versions_after_the_oldest_live_one_can_be_skipped_to() {
    let mut nodes = four(2);
    apply(&mut nodes[0], 10);
    apply(&mut nodes[0], 20);
    for version in [0, 1, 4] {
        assert_eq!(
            nodes[0].skip_dead_nodes(version, false, |_| true).unwrap_err().to_string(),
            "Invalid version, you may use the following version numbers: 2 3"
        );
    }
}

#[test]
fn capture_05_skipping_twice_changes_nothing_the_second_time() {
    let mut nodes = four(2);
    apply(&mut nodes[0], 10);
    let first = nodes[0].skip_dead_nodes(2, false, |id| id != B2).unwrap();
    assert_eq!((first.ack.as_slice(), first.sync.as_slice()), (&[B2][..], &[][..]));
    nodes[0].adopt(&first.history);
    let second = nodes[0].skip_dead_nodes(2, false, |id| id != B2).unwrap();
    assert!(second.ack.is_empty() && second.sync.is_empty());
}
