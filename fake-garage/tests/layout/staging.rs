//! What is staged, what of it is seen, and what survives (Garage admin reference §6 and §8).

use fake_garage::layout::{Parameters, StageError, StageRequest, ZoneRedundancy};
use rstest::rstest;

use crate::fixture::*;

#[rstest]
#[case::case_a_and_b_connected(true)]
#[case::case_f_partitioned(false)]
fn cases_a_b_f_two_sites_that_stage_different_nodes_both_keep_their_change(#[case] connected: bool) {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1))], 10);
    if connected {
        settle(&mut [&mut here, &mut there]);
    }
    stage(&mut there, &[(Y, storage("b", 1))], 20);
    settle(&mut [&mut here, &mut there]);
    assert_eq!(staged(&here), [X, Y]);
    assert_eq!(staged(&there), [X, Y]);
}

#[rstest]
#[case::case_c_connected(true)]
#[case::case_g_partitioned(false)]
fn cases_c_g_of_two_changes_of_one_node_the_later_wins_and_others_stay(#[case] connected: bool) {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1)), (Y, storage("a", 9))], 10);
    if connected {
        settle(&mut [&mut here, &mut there]);
    }
    stage(&mut there, &[(X, storage("b", 2))], 20);
    settle(&mut [&mut here, &mut there]);
    let zone = here.history().staging.roles[&X].value.as_ref().unwrap().zone.clone();
    assert_eq!((zone.as_str(), staged(&here)), ("b", vec![X, Y]));
    assert_eq!(here.history().staging, there.history().staging);
}

#[test]
fn case_l_parameters_of_both_sites_the_later_win_and_roles_are_unaffected() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1))], 10);
    stage_redundancy(&mut here, 1, 11);
    stage_redundancy(&mut there, 2, 12);
    settle(&mut [&mut here, &mut there]);
    let parameters = Parameters { zone_redundancy: ZoneRedundancy::AtLeast(2) };
    assert_eq!(here.history().visible_parameters(), Some(parameters));
    assert_eq!(staged(&there), [X]);
}

#[test]
fn case_d_what_has_arrived_becomes_part_of_the_others_version() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1))], 10);
    settle(&mut [&mut here, &mut there]);
    apply(&mut there, 20);
    settle(&mut [&mut here, &mut there]);
    assert!(here.current().role(X).is_some());
    assert_eq!(staged(&here), []);
}

#[test]
fn case_e_a_revert_takes_everybodys_staged_changes() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1))], 10);
    stage(&mut there, &[(Y, storage("b", 1))], 11);
    settle(&mut [&mut here, &mut there]);
    revert(&mut here, 20);
    settle(&mut [&mut here, &mut there]);
    assert_eq!((staged(&here), staged(&there)), (vec![], vec![]));
}

#[rstest]
#[case::case_h_staged_before_the_apply(10, 20)]
#[case::case_i_staged_after_the_apply_and_lost_although_newer(3_020, 20)]
fn cases_h_i_what_an_apply_has_not_seen_is_lost(#[case] staged_at: u64, #[case] applied_at: u64) {
    let (mut here, mut there) = two_sites(0);
    stage(&mut there, &[(Y, storage("b", 1))], staged_at);
    apply(&mut here, applied_at);
    settle(&mut [&mut here, &mut there]);
    assert_eq!((staged(&here), staged(&there)), (vec![], vec![]));
    assert!(there.current().role(Y).is_none());
}

#[rstest]
#[case::case_j_staged_before_the_revert(10, 20)]
#[case::case_k_staged_after_the_revert_and_lost_although_newer(2_020, 20)]
#[case::case_n_staged_within_the_gossip_delay(21, 20)]
fn cases_j_k_what_a_revert_has_not_seen_is_lost_even_if_it_had_nothing_to_revert(
    #[case] staged_at: u64,
    #[case] reverted_at: u64,
) {
    let (mut here, mut there) = two_sites(0);
    stage(&mut here, &[(X, storage("a", 1))], staged_at);
    assert_eq!(staged(&here), [X], "the caller has seen it staged");
    revert(&mut there, reverted_at);
    settle(&mut [&mut here, &mut there]);
    assert_eq!(staged(&here), []);
}

#[test]
fn case_n_a_stage_that_has_seen_the_revert_stays() {
    let (mut here, mut there) = two_sites(0);
    revert(&mut there, 20);
    settle(&mut [&mut here, &mut there]);
    stage(&mut here, &[(X, storage("a", 1))], 21);
    settle(&mut [&mut here, &mut there]);
    assert_eq!(staged(&there), [X]);
}

#[test]
fn capture_22_s1_a_write_that_has_seen_one_from_the_future_wins() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut there, &[(X, storage("future", 1))], 60_000);
    settle(&mut [&mut here, &mut there]);
    stage(&mut here, &[(X, storage("present", 1))], 100);
    settle(&mut [&mut here, &mut there]);
    assert_eq!(there.history().staging.roles[&X].value.as_ref().unwrap().zone, "present");
}

#[test]
fn capture_22_s2_of_writes_that_have_not_seen_each_other_the_clock_ahead_wins() {
    let (mut here, mut there) = two_sites(0);
    stage(&mut there, &[(X, storage("written first, clock ahead", 1))], 60_000);
    stage(&mut here, &[(X, storage("written second", 1))], 5_000);
    settle(&mut [&mut here, &mut there]);
    assert_eq!(here.history().staging.roles[&X].value.as_ref().unwrap().zone, "written first, clock ahead");
}

#[test]
fn capture_22_s4_a_t_from_the_future_does_no_harm_to_later_staging() {
    let (mut here, mut there) = two_sites(0);
    revert(&mut there, 60_000);
    settle(&mut [&mut here, &mut there]);
    stage(&mut here, &[(X, storage("a", 1))], 100);
    settle(&mut [&mut here, &mut there]);
    assert_eq!(staged(&there), [X]);
}

#[test]
fn section_8_staging_does_not_move_t_and_apply_and_revert_do() {
    let (mut here, _) = two_sites(0);
    let before = here.history().staging.moved;
    stage(&mut here, &[(X, storage("a", 1))], 10);
    assert_eq!(here.history().staging.moved, before);
    revert(&mut here, 5);
    assert_eq!(here.history().staging.moved, 5, "the clock is ahead");
    revert(&mut here, 5);
    assert_eq!(here.history().staging.moved, 6, "the clock stands still");
    apply(&mut here, 5);
    assert_eq!(here.history().staging.moved, 7);
}

#[test]
fn capture_04_an_entry_equal_to_the_current_role_is_hidden() {
    let (mut here, _) = two_sites(0);
    stage(&mut here, &[(A1, storage("a", 100)), (X, None)], 10);
    assert_eq!(staged(&here), []);
    assert_eq!(here.history().staging.roles.len(), 2, "it is stored all the same");
}

#[test]
fn section_12_2_3_shows_the_removal_of_a_node_without_role() {
    let (mut here, _) = two_sites(0);
    stage(&mut here, &[(X, None)], 10);
    let shown: Vec<_> = here.history().visible_changes(true).map(|(id, _)| id).collect();
    assert_eq!(shown, [X]);
}

#[test]
fn capture_03_of_one_node_twice_in_a_request_the_larger_value_wins() {
    let mut here = node(A1, 2, 0);
    stage(&mut here, &[(X, storage("a", 20)), (X, storage("a", 10))], 10);
    assert_eq!(here.history().staging.roles[&X].value, storage("a", 20));
    stage(&mut here, &[(Y, storage("a", 20)), (Y, None)], 10);
    assert_eq!(here.history().staging.roles[&Y].value, storage("a", 20), "a removal is smaller than a role");
    stage(&mut here, &[(A2, gateway("a")), (A2, storage("a", 1))], 10);
    assert_eq!(
        here.history().staging.roles[&A2].value,
        storage("a", 1),
        "a gateway is smaller than a number"
    );
}

#[test]
fn capture_03_one_bad_entry_and_nothing_is_staged() {
    let here = node(A1, 2, 0);
    let tiny = fake_garage::layout::Role { zone: "a".to_owned(), capacity: Some(1023), tags: vec![] };
    let request = StageRequest { roles: vec![(X, storage("a", 1)), (Y, Some(tiny))], parameters: None };
    assert_eq!(here.stage(&request, 10).unwrap_err(), StageError::CapacityTooSmall);
}

#[rstest]
#[case(0, "The zone redundancy must be at least 1.")]
#[case(3, "The zone redundancy must be smaller or equal to the replication factor (2).")]
fn capture_03_a_redundancy_that_cannot_be_is_refused(#[case] zones: usize, #[case] message: &str) {
    let parameters = Parameters { zone_redundancy: ZoneRedundancy::AtLeast(zones) };
    let request = StageRequest { roles: vec![], parameters: Some(parameters) };
    assert_eq!(node(A1, 2, 0).stage(&request, 1).unwrap_err().to_string(), message);
}
