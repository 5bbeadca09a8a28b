//! Tables of the mutation core.

use std::collections::{BTreeMap, BTreeSet};

use rstest::rstest;

use super::{Intent, Step, Waiting, has_settled, is_ahead, is_settled, next_step};
use crate::decision::assignment::WantedRole;
use crate::garage::{
    ClusterLayout, LayoutHistory, LayoutParameters, LayoutRole, LayoutVersion, StagedRole, Trackers,
    VersionStatus, ZoneRedundancy,
};

fn wanted(id: &str) -> WantedRole {
    WantedRole {
        id: id.into(),
        zone: "east".into(),
        capacity: Some(1024),
        tags: vec!["a".into(), "b".into()],
    }
}

fn committed(id: &str) -> LayoutRole {
    LayoutRole {
        id: id.into(),
        zone: "east".into(),
        capacity: Some(1024),
        tags: vec!["b".into(), "a".into()],
    }
}

fn staged(id: &str) -> StagedRole {
    StagedRole {
        id: id.into(),
        remove: false,
        zone: Some("east".into()),
        capacity: Some(1024),
        tags: vec!["b".into(), "a".into()],
    }
}

fn removal(id: &str) -> StagedRole {
    StagedRole { id: id.into(), remove: true, ..StagedRole::default() }
}

fn intent(ids: &[&str]) -> Intent {
    Intent { roles: ids.iter().map(|id| wanted(id)).collect(), factor: 2, ..Intent::default() }
}

fn layout(version: i64, roles: &[&str], staged_changes: Vec<StagedRole>) -> ClusterLayout {
    ClusterLayout {
        version,
        roles: roles.iter().map(|id| committed(id)).collect(),
        staged_role_changes: staged_changes,
        ..ClusterLayout::default()
    }
}

fn staged_ids(step: &Step) -> Vec<&str> {
    match step {
        Step::Stage { roles, .. } => roles.iter().map(crate::garage::RoleChange::id).collect(),
        other => panic!("expected to stage, got {other:?}"),
    }
}

#[test]
fn a_layout_as_intended_needs_nothing() {
    assert_eq!(next_step(&layout(1, &["aa", "bb"], vec![]), &intent(&["aa", "bb"])), Step::Nothing);
}

#[test]
fn roles_of_other_sites_are_no_concern() {
    assert_eq!(next_step(&layout(1, &["aa", "bb", "cc"], vec![]), &intent(&["aa", "bb"])), Step::Nothing);
}

#[test]
fn a_missing_role_is_staged_and_nothing_else() {
    let step = next_step(&layout(1, &["aa"], vec![]), &intent(&["aa", "bb"]));
    assert_eq!(staged_ids(&step), ["bb"]);
}

#[test]
fn what_is_staged_already_is_not_staged_again() {
    let step = next_step(&layout(1, &["aa"], vec![staged("bb")]), &intent(&["aa", "bb"]));
    assert_eq!(step, Step::Apply { version: 2 });
}

#[test]
fn a_staged_role_that_differs_is_staged_anew() {
    let mut wrong = staged("bb");
    wrong.zone = Some("west".into());
    let step = next_step(&layout(1, &["aa"], vec![wrong]), &intent(&["aa", "bb"]));
    assert_eq!(staged_ids(&step), ["bb"]);
}

#[test]
fn a_staged_removal_of_a_wanted_role_is_taken_back() {
    let step = next_step(&layout(1, &["aa", "bb"], vec![removal("bb")]), &intent(&["aa", "bb"]));
    assert_eq!(staged_ids(&step), ["bb"]);
}

#[test]
fn foreign_staged_changes_stop_everything() {
    let step = next_step(&layout(1, &["aa"], vec![staged("ff")]), &intent(&["aa", "bb"]));
    assert_eq!(step, Step::Wait(Waiting::Foreign(vec!["ff".into()])));
}

#[test]
fn too_few_nodes_stay_staged_and_wait() {
    let step = next_step(&layout(0, &[], vec![staged("aa")]), &intent(&["aa"]));
    assert_eq!(step, Step::Wait(Waiting::TooFewNodes { storage: 1, factor: 2 }));
}

#[test]
fn the_node_that_completes_the_factor_applies_all() {
    let step = next_step(&layout(0, &[], vec![staged("aa"), staged("bb")]), &intent(&["aa", "bb"]));
    assert_eq!(step, Step::Apply { version: 1 });
}

#[test]
fn a_removal_is_staged_then_applied_then_done() {
    let intent = Intent { removals: BTreeSet::from(["cc".into()]), factor: 2, ..Intent::default() };
    let roles = ["aa", "bb", "cc"];
    assert_eq!(staged_ids(&next_step(&layout(3, &roles, vec![]), &intent)), ["cc"]);
    assert_eq!(next_step(&layout(3, &roles, vec![removal("cc")]), &intent), Step::Apply { version: 4 });
    assert_eq!(next_step(&layout(4, &roles[..2], vec![]), &intent), Step::Nothing);
}

#[test]
fn the_last_storage_node_is_never_removed() {
    let intent = Intent { removals: BTreeSet::from(["aa".into()]), factor: 1, ..Intent::default() };
    let step = next_step(&layout(1, &["aa"], vec![]), &intent);
    assert_eq!(step, Step::Wait(Waiting::LastStorageNode));
}

#[test]
fn a_removal_below_the_factor_is_not_even_staged() {
    let intent = Intent { removals: BTreeSet::from(["bb".into()]), factor: 2, ..Intent::default() };
    let step = next_step(&layout(1, &["aa", "bb"], vec![]), &intent);
    assert_eq!(step, Step::Wait(Waiting::TooFewNodes { storage: 1, factor: 2 }));
}

#[rstest]
#[case(Some(ZoneRedundancy::Maximum), None, Step::Nothing)]
#[case(Some(ZoneRedundancy::AtLeast(2)), Some(ZoneRedundancy::AtLeast(2)), Step::Apply { version: 2 })]
#[case(None, None, Step::Nothing)]
fn parameters_are_changed_only_when_the_spec_names_them(
    #[case] wanted: Option<ZoneRedundancy>,
    #[case] staged: Option<ZoneRedundancy>,
    #[case] step: Step,
) {
    let parameters = |zone_redundancy| LayoutParameters { zone_redundancy };
    let mut layout = layout(1, &["aa", "bb"], vec![]);
    layout.parameters = Some(parameters(ZoneRedundancy::Maximum));
    layout.staged_parameters = staged.map(parameters);
    let intent = Intent { parameters: wanted.map(parameters), ..intent(&["aa", "bb"]) };
    assert_eq!(next_step(&layout, &intent), step);
}

#[test]
fn parameters_that_drifted_are_staged() {
    let mut layout = layout(1, &["aa", "bb"], vec![]);
    layout.parameters = Some(LayoutParameters { zone_redundancy: ZoneRedundancy::Maximum });
    let wanted = LayoutParameters { zone_redundancy: ZoneRedundancy::AtLeast(2) };
    let intent = Intent { parameters: Some(wanted), ..intent(&["aa", "bb"]) };
    assert_eq!(next_step(&layout, &intent), Step::Stage { roles: vec![], parameters: Some(wanted) });
}

#[rstest]
#[case::nobody_knows_it(layout(1, &["aa"], vec![]), &["bb"])]
#[case::it_has_a_role(layout(1, &["aa", "bb"], vec![]), &[])]
#[case::one_is_staged_already(layout(1, &["aa"], vec![staged("bb")]), &[])]
fn a_declared_node_has_to_be_seen_before_its_first_role(
    #[case] layout: ClusterLayout,
    #[case] unproven: &[&str],
) {
    let intent = Intent { declared: BTreeSet::from(["bb".to_owned()]), ..intent(&["aa", "bb"]) };
    let found = intent.unproven(&layout);
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), unproven);
    let rest = intent.without(&found);
    assert_eq!(rest.roles.len(), 2 - unproven.len());
}

fn history(statuses: &[VersionStatus], syncs: Option<&[i64]>) -> LayoutHistory {
    let current = i64::try_from(statuses.len()).unwrap();
    let versions = statuses.iter().zip((1..=current).rev());
    LayoutHistory {
        current_version: current,
        min_ack: 1,
        versions: versions.map(|(status, version)| LayoutVersion { version, status: *status }).collect(),
        update_trackers: syncs.map(|syncs| {
            let tracker = |sync: &i64| Trackers { ack: *sync, sync: *sync, sync_ack: 1 };
            syncs
                .iter()
                .enumerate()
                .map(|(n, sync)| (n.to_string(), tracker(sync)))
                .collect::<BTreeMap<_, _>>()
        }),
    }
}

#[rstest]
#[case(&[VersionStatus::Current], None, true)]
#[case(&[VersionStatus::Current, VersionStatus::Historical], None, true)]
#[case(&[VersionStatus::Current, VersionStatus::Draining], None, false)]
#[case(&[VersionStatus::Current, VersionStatus::Draining], Some(&[][..]), false)]
#[case(&[VersionStatus::Current, VersionStatus::Draining], Some(&[2, 1][..]), false)]
#[case(&[VersionStatus::Current, VersionStatus::Draining], Some(&[2, 2][..]), true)]
fn a_history_is_settled_when_nothing_drains_or_everyone_synced(
    #[case] statuses: &[VersionStatus],
    #[case] syncs: Option<&[i64]>,
    #[case] settled: bool,
) {
    assert_eq!(is_settled(&history(statuses, syncs)), settled);
}

#[rstest]
#[case::this_very_one(1, true)]
#[case::an_older_one(0, true)]
#[case::one_that_the_node_has_not_heard_of(2, false)]
fn a_version_is_settled_only_where_it_is_known(#[case] version: i64, #[case] settled: bool) {
    assert_eq!(has_settled(&history(&[VersionStatus::Current], None), version), settled);
}

#[rstest]
#[case::the_same(layout(1, &["aa"], vec![staged("bb")]), false)]
#[case::a_newer_version(layout(2, &["aa"], vec![]), true)]
#[case::an_older_version(layout(0, &[], vec![staged("cc")]), false)]
#[case::a_change_more(layout(1, &["aa"], vec![staged("bb"), staged("cc")]), true)]
#[case::a_change_less(layout(1, &["aa"], vec![]), false)]
#[case::another_change_of_the_same_node(layout(1, &["aa"], vec![removal("bb")]), true)]
#[case::a_change_that_is_a_role_here(layout(1, &[], vec![staged("aa")]), false)]
#[case::a_removal_of_no_role_here(layout(1, &["dd"], vec![removal("dd")]), false)]
fn a_node_is_ahead_when_it_shows_what_the_other_has_not_heard(
    #[case] other: ClusterLayout,
    #[case] ahead: bool,
) {
    assert_eq!(is_ahead(&other, &layout(1, &["aa"], vec![staged("bb")])), ahead);
}
