//! Two contents of one version, and what becomes of them (Garage admin reference §8).

use fake_garage::layout::{LayoutEvent, LocalLayout};

use crate::fixture::*;

/// Two sites with a version 2 each, which have met.
fn conflicting() -> (LocalLayout, LocalLayout) {
    let (mut here, mut there) = two_sites(0);
    synchronise(&mut [&mut here, &mut there]);
    stage(&mut here, &[(A1, storage("a", 50))], 10);
    apply(&mut here, 11);
    stage(&mut there, &[(B1, storage("b", 70))], 10);
    apply(&mut there, 11);
    settle(&mut [&mut here, &mut there]);
    (here, there)
}

fn is_conflict(event: &LayoutEvent) -> bool {
    matches!(event, LayoutEvent::Conflict { .. })
}

#[test]
fn capture_08_who_only_receives_keeps_what_arrived_first() {
    let (here, there) = conflicting();
    let mut other = node(A2, 2, 0);
    send(&there, &mut other);
    send(&here, &mut other);
    assert_eq!(other.current().digest(), there.current().digest());
}

#[test]
fn capture_08_a_conflict_is_told_on_every_exchange_of_full_states() {
    let (here, mut there) = conflicting();
    for _ in 0..3 {
        assert!(send(&here, &mut there).events.iter().any(is_conflict));
    }
}

#[test]
fn capture_08_conflicting_nodes_have_the_same_gossip_digest() {
    let (here, there) = conflicting();
    assert_ne!(here.current().digest(), there.current().digest());
    let (one, other) = (here.history().gossip_digest(), there.history().gossip_digest());
    assert_eq!((one.current, one.live, one.staging), (other.current, other.live, other.staging));
}

#[test]
fn capture_08_a_change_staged_on_one_side_is_filtered_by_each_sides_own_roles() {
    let (mut here, mut there) = conflicting();
    stage(&mut here, &[(A1, storage("a", 100))], 100);
    settle(&mut [&mut here, &mut there]);
    assert_eq!(staged(&here), [A1]);
    assert_eq!(staged(&there), [], "it is what this side has already");
    assert!(there.history().staging.roles.contains_key(&A1), "and yet it is here");
}

#[test]
fn capture_08_a_conflicting_version_retires_as_any_other_and_then_nothing_tells_of_it() {
    let (mut here, mut there) = conflicting();
    apply(&mut here, 100);
    for node in [A2, B2] {
        // The two nodes that nobody plays here have done what is asked of them.
        for state in [&mut here, &mut there] {
            let mut trackers = state.history().trackers.clone();
            trackers.clamp([node], 3);
            state.merge_trackers(&trackers);
        }
    }
    synchronise(&mut [&mut here, &mut there]);
    synchronise(&mut [&mut here, &mut there]);
    assert_eq!((live(&here), live(&there)), (vec![3], vec![3]));
    assert_eq!(here.current().digest(), there.current().digest());
    assert!(!send(&here, &mut there).events.iter().any(is_conflict));
}

#[test]
fn rule_4_areas_of_the_same_t_are_joined_entry_by_entry_and_a_smaller_t_is_ignored() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1)), (Y, storage("a", 1))], 10);
    stage(&mut there, &[(Y, storage("b", 2))], 11);
    send(&there, &mut here);
    assert_eq!(staged(&here), [X, Y]);
    assert_eq!(here.history().staging.roles[&Y].at, 11, "the later one");
    revert(&mut here, 50);
    assert!(!send(&there, &mut here).changed, "its T is smaller");
}
