//! The merge rules (Garage admin reference §8), in their order.

use fake_garage::layout::{LayoutEvent, LocalLayout};

use crate::fixture::*;

/// Two storage nodes with version 1, one at each site.
fn two_storage_nodes() -> (LocalLayout, LocalLayout) {
    let (mut here, mut there) = (node(A1, 2, 0), node(B1, 2, 0));
    stage(&mut here, &[(A1, storage("a", 100)), (B1, storage("b", 100))], 1);
    apply(&mut here, 2);
    settle(&mut [&mut here, &mut there]);
    (here, there)
}

#[test]
fn rule_1_capture_07b_a_node_far_behind_is_swallowed_with_its_staging() {
    let (mut here, mut there) = two_storage_nodes();
    let mut behind = there.clone();
    stage(&mut behind, &[(X, storage("a", 1))], 99_000);
    for now in [10, 20] {
        apply(&mut here, now);
        settle(&mut [&mut here, &mut there]);
        synchronise(&mut [&mut here, &mut there]);
    }
    assert_eq!(live(&here), [3]);
    let merge = send(&here, &mut behind);
    assert_eq!(merge.events.first(), Some(&LayoutEvent::Replaced { from: 1, to: 3 }));
    assert_eq!(staged(&behind), [], "lost although it was staged later than anything");
}

#[test]
fn rule_1_does_not_hold_for_a_node_that_has_the_oldest_live_version() {
    let (mut here, there) = two_storage_nodes();
    let mut behind = there.clone();
    stage(&mut behind, &[(X, storage("a", 1))], 99_000);
    apply(&mut here, 10);
    assert_eq!(live(&here), [1, 2]);
    let merge = send(&here, &mut behind);
    assert_eq!(merge.events, [LayoutEvent::Merged { from: 1, to: 2 }]);
}

#[test]
fn rule_1_a_fresh_node_that_joins_loses_what_was_staged_on_it() {
    let (here, _) = two_sites(0);
    let mut fresh = node(X, 2, 50_000);
    stage(&mut fresh, &[(X, storage("a", 1))], 60_000);
    let merge = send(&here, &mut fresh);
    assert_eq!(merge.events.first(), Some(&LayoutEvent::Replaced { from: 0, to: 1 }));
    assert_eq!(staged(&fresh), []);
}

#[test]
fn rule_2_a_next_version_is_appended() {
    let (mut here, mut there) = two_sites(0);
    apply(&mut here, 10);
    let merge = send(&here, &mut there);
    assert_eq!(merge.events, [LayoutEvent::Merged { from: 1, to: 2 }]);
    assert_eq!(live(&there), [1, 2]);
}

#[test]
fn rule_2_capture_08_of_two_versions_of_one_number_each_keeps_its_own() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1))], 10);
    apply(&mut here, 11);
    stage(&mut there, &[(Y, storage("b", 1))], 10);
    apply(&mut there, 11);
    let conflict_with =
        |node: &LocalLayout| LayoutEvent::Conflict { version: 2, other: node.current().digest() };
    let (with_here, with_there) = (conflict_with(&here), conflict_with(&there));
    assert!(send(&here, &mut there).events.contains(&with_here));
    assert!(send(&there, &mut here).events.contains(&with_there));
    settle(&mut [&mut here, &mut there]);
    assert!(here.current().role(X).is_some() && here.current().role(Y).is_none());
    assert!(there.current().role(Y).is_some() && there.current().role(X).is_none());
}

#[test]
fn rule_2_capture_08_the_next_version_heals_a_conflict_on_the_appliers_terms() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1))], 10);
    apply(&mut here, 11);
    stage(&mut there, &[(Y, storage("b", 1))], 10);
    apply(&mut there, 11);
    settle(&mut [&mut here, &mut there]);
    apply(&mut here, 30);
    settle(&mut [&mut here, &mut there]);
    assert_eq!(here.current(), there.current());
    assert!(there.current().role(X).is_some() && there.current().role(Y).is_none());
}

#[test]
fn rule_2_capture_07_two_bootstraps_of_one_number_conflict_forever() {
    let (mut here, mut there) = (node(A1, 2, 0), node(B1, 2, 0));
    stage(&mut here, &[(A1, storage("a", 100)), (A2, storage("a", 100))], 1);
    apply(&mut here, 2);
    stage(&mut there, &[(B1, storage("b", 100)), (B2, storage("b", 100))], 1);
    apply(&mut there, 2);
    settle(&mut [&mut here, &mut there]);
    assert_ne!(here.current(), there.current());
    assert_eq!((live(&here), live(&there)), (vec![1], vec![1]));
}

#[test]
fn consequence_14_4_versions_that_differ_in_a_roles_time_only_are_different() {
    let (mut here, mut there) = (node(A1, 2, 0), node(B1, 2, 0));
    for (node, now) in [(&mut here, 1), (&mut there, 2)] {
        stage(node, &[(A1, storage("a", 100)), (A2, storage("a", 100))], now);
        apply(node, 10);
    }
    assert!(
        send(&here, &mut there)
            .events
            .contains(&LayoutEvent::Conflict { version: 1, other: here.current().digest() })
    );
}

#[test]
fn rule_4_a_later_t_replaces_the_staging_area_as_a_whole() {
    let (mut here, mut there) = two_sites(0);
    revert(&mut here, 100);
    stage(&mut here, &[(X, storage("a", 1))], 101);
    stage(&mut there, &[(Y, storage("b", 1))], 5_000);
    send(&here, &mut there);
    assert_eq!(staged(&there), [X]);
    assert!(!send(&there, &mut here).changed);
}

#[test]
fn rule_5_a_configured_node_ignores_a_fresh_one() {
    let (mut here, _) = two_sites(0);
    let mut fresh = node(X, 2, 50_000);
    stage(&mut fresh, &[(X, storage("a", 1))], 60_000);
    let before = here.history().clone();
    assert!(!send(&fresh, &mut here).changed);
    assert_eq!(*here.history(), before);
}

#[test]
fn rule_5_fresh_nodes_share_what_is_staged() {
    let (mut here, mut there) = (node(A1, 2, 0), node(B1, 2, 0));
    stage(&mut here, &[(X, storage("a", 1))], 10);
    send(&here, &mut there);
    assert_eq!(staged(&there), [X]);
}

#[test]
fn rule_6_a_node_acknowledges_what_it_learns_at_once() {
    let (mut here, mut there) = two_sites(0);
    apply(&mut here, 10);
    send(&here, &mut there);
    assert_eq!(there.history().trackers.ack.get(B1, 0), 2);
}
