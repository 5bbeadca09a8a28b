//! What a reader is shown of a layout (Garage admin reference §6).

#![allow(clippy::unnecessary_wraps, reason = "a change is a role or a removal")]

use fake_garage::admin::Profile;
use fake_garage::admin::layout::{history_body, layout_body};
use fake_garage::layout::{Change, ConsistencyMode, LayoutHistory, LocalLayout, Role};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixture::*;

fn layout(node: &LocalLayout) -> Value {
    serde_json::to_value(layout_body(node.history(), Profile::V2_5)).unwrap()
}

fn history(node: &LocalLayout) -> Value {
    serde_json::to_value(history_body(node.history())).unwrap()
}

#[test]
fn section_6_a_layout_that_was_never_applied_is_version_0_with_nothing_in_it() {
    let expected = json!({"version": 0, "roles": [], "parameters": {"zoneRedundancy": "maximum"}, "partitionSize": 0, "stagedRoleChanges": [], "stagedParameters": null});
    assert_eq!(layout(&node(A1, 2, 0)), expected);
}

#[test]
fn section_6_roles_are_sorted_and_a_gateway_stores_nothing() {
    let mut here = node(A1, 2, 0);
    stage(&mut here, &[(B1, gateway("a")), (A2, storage("a", 100)), (A1, storage("a", 100))], 1);
    apply(&mut here, 2);
    let roles = layout(&here)["roles"].clone();
    let ids: Vec<_> = roles.as_array().unwrap().iter().map(|role| role["id"].clone()).collect();
    assert_eq!(ids, [json!(A1), json!(A2), json!(B1)]);
    let gateway = json!({"id": B1, "zone": "a", "tags": [], "capacity": null, "storedPartitions": 0, "usableCapacity": 0});
    assert_eq!(roles[2], gateway);
    let size = layout(&here)["partitionSize"].as_u64().unwrap();
    assert_eq!(roles[0]["usableCapacity"], 256 * size, "stored partitions times their size");
}

#[test]
fn capture_03_staged_parameters_are_null_when_equal_to_the_current_ones() {
    let (mut here, _) = two_sites(0);
    stage_redundancy(&mut here, 2, 10);
    assert_eq!(layout(&here)["stagedParameters"], json!({"zoneRedundancy": {"atLeast": 2}}));
    apply(&mut here, 11);
    assert_eq!(layout(&here)["stagedParameters"], Value::Null);
    stage_redundancy(&mut here, 1, 12);
    revert(&mut here, 13);
    assert_eq!(layout(&here)["stagedParameters"], Value::Null, "a revert stages the current ones");
}

#[test]
fn capture_02_a_fresh_node_shows_version_0_as_current() {
    let expected = json!({"currentVersion": 0, "minAck": 0, "versions": [{"version": 0, "status": "Current", "storageNodes": 0, "gatewayNodes": 0}], "updateTrackers": null});
    assert_eq!(history(&node(A1, 2, 0)), expected);
}

#[test]
fn capture_05_versions_are_shown_newest_first_with_trackers_of_everyone_in_a_live_one() {
    let (mut here, mut there) = two_sites(0);
    synchronise(&mut [&mut here, &mut there]);
    stage(&mut here, &[(X, gateway("a"))], 10);
    apply(&mut here, 11);
    let shown = history(&here);
    assert_eq!(
        shown["versions"][0],
        json!({"version": 2, "status": "Current", "storageNodes": 4, "gatewayNodes": 1})
    );
    assert_eq!(shown["versions"][1]["status"], "Draining");
    let trackers = shown["updateTrackers"].as_object().unwrap();
    assert_eq!(trackers.len(), 5, "the gateway too");
    assert_eq!(
        trackers[&X.to_string()],
        json!({"ack": 1, "sync": 1, "syncAck": 1}),
        "raised to the oldest live version"
    );
    assert_eq!(trackers[&A1.to_string()]["ack"], 2);
}

#[rstest]
#[case::a_role_beats_a_removal(None, storage("a", 1))]
#[case::then_the_later_zone(storage("a", 9), storage("b", 1))]
#[case::then_a_number_beats_a_gateway(gateway("a"), storage("a", 1))]
#[case::then_the_larger_capacity(storage("a", 1), storage("a", 2))]
#[case::then_the_tags(tagged("x"), tagged("y"))]
fn capture_03_of_one_node_twice_the_larger_change_wins_whichever_comes_first(
    #[case] less: Change,
    #[case] more: Change,
) {
    for order in [[&less, &more], [&more, &less]] {
        let (mut here, _) = two_sites(0);
        stage(&mut here, &order.map(|change| (X, change.clone())), 10);
        assert_eq!(here.history().staging.roles[&X].value, more);
    }
}

fn tagged(tag: &str) -> Change {
    Some(Role { zone: "a".to_owned(), capacity: None, tags: vec![tag.to_owned()] })
}

#[test]
fn section_6_a_staged_change_is_later_than_the_role_it_would_replace() {
    let mut here = node(A1, 2, 0);
    stage(&mut here, &[(A1, storage("a", 1)), (A2, storage("a", 1))], 5_000);
    apply(&mut here, 5_001);
    stage(&mut here, &[(A1, storage("a", 2))], 100);
    assert_eq!(here.history().staging.roles[&A1].at, 5_001, "the clock went back, the change does not");
    apply(&mut here, 101);
    assert_eq!(here.current().role(A1).unwrap().capacity, Some(2 * GB));
}

#[test]
fn capture_04_nothing_can_be_applied_on_a_fresh_node_without_roles() {
    let refused = node(A1, 2, 0).apply(1, 1).unwrap_err().to_string();
    assert_eq!(
        refused,
        "The number of nodes with positive capacity (0) is smaller than the replication factor (2)."
    );
}

#[test]
fn capture_12_the_message_tells_the_partition_size_before_and_how_much_moves() {
    let (mut here, _) = two_sites(0);
    stage(&mut here, &[(B2, storage("b", 50))], 10);
    let computed = here.preview(11).unwrap();
    let message = fake_garage::layout::message::lines(&computed.statistics);
    assert_eq!(
        message[4],
        "Optimal partition size:                     557.7 MiB (745.1 MiB in previous layout)"
    );
    assert_eq!(message[8], "A total of 43 new copies of partitions need to be transferred.");
}

#[test]
fn section_6_a_low_partition_size_and_a_low_usable_capacity_are_warned_of() {
    let mut here = node(A1, 2, 0);
    let tiny = Some(Role { zone: "a".to_owned(), capacity: Some(1024), tags: vec![] });
    stage(&mut here, &[(A1, tiny), (A2, storage("b", 1))], 1);
    let statistics = here.preview(2).unwrap().statistics;
    assert!(statistics.low_partition_size && statistics.low_usable_capacity);
    let message = fake_garage::layout::message::lines(&statistics).join("\n");
    assert!(message.contains("WARNING: The partition size is low (< 100)"), "{message}");
}

#[test]
fn section_9_degraded_history_never_shows_draining() {
    let mut here = LocalLayout::start(A1, ConsistencyMode::Degraded, LayoutHistory::fresh(1, 0));
    for now in [1, 2, 3] {
        stage(&mut here, &[(A1, storage("a", now))], now);
        apply(&mut here, now);
        assert!(!history(&here).to_string().contains("Draining"));
    }
}
