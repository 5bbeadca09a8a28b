//! Tables of the evidence for a second writer.

use rstest::rstest;

use super::{
    Content, Elsewhere, OTHER_CONTENT, UNKNOWN_VERSION, acknowledge, forget_versions, intend, observe,
};
use crate::api::layout::LayoutSiteRole::{Follower, Writer};
use crate::api::observed::LayoutWriterStatus;
use crate::garage::{ClusterLayout, LayoutParameters, LayoutRole, StagedRole, ZoneRedundancy};

fn content(version: i64, digest: &str) -> Content {
    Content { version, digest: digest.to_owned() }
}

fn elsewhere(version: i64, digest: &str) -> Vec<Elsewhere> {
    vec![Elsewhere { site: "west".into(), content: content(version, digest) }]
}

/// A Writer that found version 4.
fn writer() -> LayoutWriterStatus {
    observe(None, Writer, Some(&content(4, "d4")), &[])
}

fn reason(record: &LayoutWriterStatus) -> Option<&str> {
    record.foreign.as_ref().map(|foreign| foreign.reason.as_str())
}

#[test]
fn the_version_that_was_found_at_the_beginning_is_no_evidence() {
    let record = observe(Some(&writer()), Writer, Some(&content(4, "d4")), &[]);
    assert_eq!((reason(&record), record.last_applied_version), (None, None));
}

#[test]
fn a_version_that_another_site_held_already_arrives_later_without_being_evidence() {
    let record = observe(None, Writer, Some(&content(4, "d4")), &elsewhere(5, "d5"));
    assert_eq!(reason(&observe(Some(&record), Writer, Some(&content(5, "d5")), &[])), None);
}

#[test]
fn a_layout_that_was_there_before_these_nodes_joined_it_is_no_evidence() {
    let record = observe(None, Writer, Some(&content(0, "d0")), &[]);
    let joined = observe(Some(&record), Writer, Some(&content(7, "d7")), &[]);
    assert_eq!((reason(&joined), joined.baseline_version), (None, Some(7)));
    assert_eq!(reason(&observe(Some(&joined), Writer, Some(&content(8, "d8")), &[])), Some(UNKNOWN_VERSION));
}

#[test]
fn what_was_intended_and_is_live_was_applied_by_this_writer() {
    let record = intend(Some(&writer()), &content(4, "d4"), &content(5, "d5"));
    // A crash in between leaves the record as it is.
    let record = observe(Some(&record), Writer, Some(&content(5, "d5")), &[]);
    assert_eq!((reason(&record), record.last_applied_version), (None, Some(5)));
}

#[test]
fn an_apply_right_after_another_counts_both() {
    let record = intend(Some(&writer()), &content(4, "d4"), &content(5, "d5"));
    let record = intend(Some(&record), &content(5, "d5"), &content(6, "d6"));
    let late = observe(Some(&record), Writer, Some(&content(5, "d5")), &[]);
    assert_eq!((reason(&late), late.last_applied_version), (None, Some(5)));
    let record = observe(Some(&late), Writer, Some(&content(6, "d6")), &[]);
    assert_eq!((reason(&record), record.last_applied_version), (None, Some(6)));
}

#[rstest]
#[case::never_intended(writer(), content(5, "x"))]
#[case::other_content(intend(Some(&writer()), &content(4, "d4"), &content(5, "d5")), content(5, "x"))]
#[case::further(intend(Some(&writer()), &content(4, "d4"), &content(5, "d5")), content(7, "x"))]
fn a_version_that_this_writer_did_not_apply_is_evidence(
    #[case] record: LayoutWriterStatus,
    #[case] live: Content,
) {
    let seen = observe(Some(&record), Writer, Some(&live), &[]);
    assert_eq!(reason(&seen), Some(UNKNOWN_VERSION));
    let again = observe(Some(&seen), Writer, Some(&live), &[]);
    assert_eq!(again, seen, "the same sight changes nothing");
}

#[test]
fn evidence_found_at_the_next_apply_is_kept() {
    let record = intend(Some(&writer()), &content(5, "x"), &content(6, "d6"));
    assert_eq!(reason(&record), Some(UNKNOWN_VERSION));
    assert_eq!(reason(&observe(Some(&record), Writer, Some(&content(6, "d6")), &[])), Some(UNKNOWN_VERSION));
}

#[rstest]
#[case(4, "d4", None)]
#[case(4, "x", Some(OTHER_CONTENT))]
#[case(5, "x", None)]
#[case(3, "x", None)]
fn another_content_of_the_same_version_is_evidence_for_either_role(
    #[case] version: i64,
    #[case] digest: &str,
    #[case] expected: Option<&str>,
) {
    for role in [Writer, Follower] {
        let record = observe(None, role, Some(&content(4, "d4")), &elsewhere(version, digest));
        assert_eq!(reason(&record), expected);
    }
}

#[test]
fn a_follower_takes_no_version_for_evidence() {
    let record = observe(None, Follower, Some(&content(4, "d4")), &[]);
    assert_eq!(reason(&observe(Some(&record), Follower, Some(&content(9, "d9")), &[])), None);
}

#[test]
fn another_role_counts_anew() {
    let seen = observe(Some(&writer()), Writer, Some(&content(5, "x")), &[]);
    let demoted = observe(Some(&seen), Follower, Some(&content(5, "x")), &[]);
    assert_eq!(reason(&demoted), None);
    let promoted = observe(Some(&demoted), Writer, Some(&content(8, "y")), &[]);
    assert_eq!((reason(&promoted), promoted.baseline_version), (None, Some(8)));
}

#[test]
fn a_layout_that_was_purged_on_purpose_is_counted_anew() {
    let record = forget_versions(&writer());
    let record = intend(Some(&record), &content(0, "d0"), &content(1, "d1"));
    assert_eq!(reason(&observe(Some(&record), Writer, Some(&content(1, "d1")), &[])), None);
}

#[test]
fn acknowledged_evidence_is_gone_until_there_is_more() {
    let seen = observe(Some(&writer()), Writer, Some(&content(5, "x")), &[]);
    let seen = acknowledge(&seen);
    assert_eq!(reason(&observe(Some(&seen), Writer, Some(&content(5, "x")), &[])), None);
    assert_eq!(reason(&observe(Some(&seen), Writer, Some(&content(6, "x")), &[])), Some(UNKNOWN_VERSION));
}

fn role(id: &str, tags: &[&str]) -> LayoutRole {
    LayoutRole {
        id: id.into(),
        zone: "east".into(),
        capacity: Some(1),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
    }
}

#[test]
fn content_is_the_same_whatever_its_order_and_differs_with_what_garage_stores() {
    let layout = |roles: Vec<LayoutRole>| ClusterLayout { version: 1, roles, ..ClusterLayout::default() };
    let one = Content::of(&layout(vec![role("aa", &["x", "y"]), role("bb", &[])]));
    assert_eq!(one, Content::of(&layout(vec![role("BB", &[]), role("aa", &["y", "x"])])));
    assert_ne!(one, Content::of(&layout(vec![role("aa", &["x"]), role("bb", &[])])));
    let mut parameters = layout(vec![role("aa", &["x", "y"]), role("bb", &[])]);
    parameters.parameters = Some(LayoutParameters { zone_redundancy: ZoneRedundancy::AtLeast(2) });
    assert_ne!(one, Content::of(&parameters));
}

#[test]
fn the_content_after_an_apply_is_known_before_it() {
    let staged = StagedRole {
        id: "BB".into(),
        remove: false,
        zone: Some("east".into()),
        capacity: Some(1),
        tags: vec!["t".into()],
    };
    let removal = StagedRole { id: "aa".into(), remove: true, ..StagedRole::default() };
    let before = ClusterLayout {
        version: 1,
        roles: vec![role("aa", &[]), role("bb", &[]), role("cc", &[])],
        staged_role_changes: vec![staged, removal],
        ..ClusterLayout::default()
    };
    let after = ClusterLayout {
        version: 2,
        roles: vec![role("bb", &["t"]), role("cc", &[])],
        ..ClusterLayout::default()
    };
    assert_eq!(Content::after_apply(&before), Content::of(&after));
}
