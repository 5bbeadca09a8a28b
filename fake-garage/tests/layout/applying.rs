//! Computing versions (Garage admin reference §6 and §7).

use fake_garage::layout::{ApplyError, LayoutEvent};
use rstest::rstest;

use crate::fixture::*;

#[rstest]
#[case::stale(1)]
#[case::future(3)]
#[case::zero(0)]
#[case::largest(u64::MAX)]
fn capture_04_only_the_local_version_plus_one_can_be_applied(#[case] version: u64) {
    let (here, _) = two_sites(0);
    assert_eq!(here.apply(version, 10).unwrap_err().to_string(), "Invalid new layout version");
}

#[test]
fn capture_04_the_version_is_checked_before_anything_else() {
    assert_eq!(node(A1, 2, 0).apply(2, 1).unwrap_err(), ApplyError::WrongVersion);
}

#[test]
fn capture_04_applying_nothing_makes_an_identical_version() {
    let (mut here, _) = two_sites(0);
    let before = here.current().clone();
    assert_eq!(apply(&mut here, 10), [LayoutEvent::Applied { from: 1, to: 2 }]);
    let after = here.current();
    assert_eq!(after.roles, before.roles);
    assert_eq!(after.stored_partitions(), before.stored_partitions());
    assert!(after.replica_sets().eq(before.replica_sets()), "nothing moves");
}

#[test]
fn capture_04_a_refused_apply_leaves_staging_and_version_alone() {
    let mut here = node(A1, 2, 0);
    stage(&mut here, &[(A1, storage("a", 1))], 1);
    let before = here.history().clone();
    assert_eq!(
        here.apply(1, 2).unwrap_err().to_string(),
        "The number of nodes with positive capacity (1) is smaller than the replication factor (2)."
    );
    assert_eq!(*here.history(), before);
}

#[test]
fn capture_04_a_gateway_alone_in_a_second_zone_makes_the_layout_impossible_under_maximum() {
    let mut here = node(A1, 2, 0);
    stage(&mut here, &[(A1, storage("a", 1)), (A2, storage("a", 1)), (B1, gateway("b"))], 1);
    assert_eq!(
        here.apply(1, 2).unwrap_err().to_string(),
        "The number of zones with non-gateway nodes (1) is smaller than the redundancy parameter (2)"
    );
}

#[test]
fn capture_21_more_than_256_storage_nodes_are_refused() {
    let mut here = node(A1, 2, 0);
    let id = |number: u16| {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        fake_garage::layout::NodeId::new(bytes)
    };
    let roles: Vec<_> = (0..257).map(|number| (id(number), storage("a", 1))).collect();
    stage(&mut here, &roles, 1);
    assert_eq!(
        here.apply(1, 2).unwrap_err().to_string(),
        "There are more than 256 non-gateway nodes in the new layout. This is not allowed."
    );
    stage(&mut here, &[(id(256), None)], 3);
    assert_eq!(here.apply(1, 4).unwrap().history.current().storage_nodes().len(), 256);
}

#[test]
fn capture_04_after_an_apply_nothing_is_staged_and_the_parameters_stay() {
    let (mut here, _) = two_sites(0);
    stage_redundancy(&mut here, 1, 10);
    apply(&mut here, 11);
    assert!(here.history().staging.roles.is_empty());
    assert_eq!(here.history().staging.parameters.value, here.current().parameters);
    assert_eq!(here.history().visible_parameters(), None);
}

#[test]
fn capture_04_a_removed_node_leaves_no_trace_in_the_version() {
    let (mut here, _) = two_sites(0);
    stage(&mut here, &[(B2, None)], 10);
    apply(&mut here, 11);
    assert!(!here.current().roles.contains_key(&B2));
}

#[test]
fn capture_20_two_nodes_with_the_same_version_and_staging_compute_the_same() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(B2, storage("b", 50)), (X, storage("a", 30))], 10);
    settle(&mut [&mut here, &mut there]);
    let (one, other) = (here.apply(2, 20).unwrap(), there.apply(2, 90).unwrap());
    assert_eq!(one.history.current(), other.history.current());
    assert_eq!(one.statistics, other.statistics);
}

#[test]
fn capture_23_an_own_version_is_dropped_if_another_one_came_first() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1))], 10);
    let computed = here.apply(2, 11).unwrap();
    stage(&mut there, &[(Y, storage("b", 1))], 12);
    apply(&mut there, 13);
    send(&there, &mut here);
    let merge = here.adopt(&computed.history);
    assert!(
        merge
            .events
            .contains(&LayoutEvent::Dropped { version: 2, other: computed.history.current().digest() }),
        "{:?}",
        merge.events
    );
    assert!(here.current().role(X).is_none() && here.current().role(Y).is_some());
    assert_eq!(staged(&here), [], "and nothing tells that there was a change");
}

#[test]
fn section_6_preview_changes_nothing() {
    let (mut here, _) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1))], 10);
    let before = here.history().clone();
    here.preview(20).unwrap();
    assert_eq!(*here.history(), before);
}

#[test]
fn section_6_statistics_and_message_of_a_first_layout() {
    let mut here = node(A1, 2, 0);
    stage(&mut here, &[(A1, storage("site-a", 100)), (B1, storage("site-b", 100))], 1);
    let statistics = here.preview(2).unwrap().statistics;
    insta::assert_snapshot!(fake_garage::layout::message::lines(&statistics).join("\n"));
}
