//! What is done to histories, and which check is to notice.

use onewriter_history::Event;

use super::edit::{drop_one, is_called, is_layout, is_state, node_id, without};
use super::{Events, calls, layouts, roles, watching};

/// One way to splice a history.
pub(super) struct Splice {
    pub(super) name: &'static str,
    /// The check that must find a violation, or that it cannot tell.
    pub(super) noticed_by: &'static str,
    act: fn(&Events, usize) -> Option<Events>,
}

impl Splice {
    /// The spliced history; `pick` chooses among the events that it fits. None if it fits none.
    pub(super) fn apply(&self, events: &Events, pick: usize) -> Option<Events> {
        (self.act)(events, pick)
    }
}

pub(super) fn all() -> Vec<Splice> {
    let splice = |name, noticed_by, act| Splice { name, noticed_by, act };
    vec![
        splice("a write is the follower's", "follower-never-writes", roles::write_of_follower),
        splice("a write follows a confirmed demotion", "follower-never-writes", |e, _| {
            roles::write_after_demotion(e, true)
        }),
        splice("no status confirms a demotion with a write", "follower-never-writes", |e, _| {
            roles::write_after_demotion(e, false)
        }),
        splice("the roles are lost", "follower-never-writes", |e, _| {
            without(e, |event| is_state(event, "roles"))
        }),
        splice(
            "a write in a term with others is the other site's",
            "one-writer-per-term",
            roles::write_of_other,
        ),
        splice("a follower's role is staged otherwise", "followers-roles-declared", roles::staged_otherwise),
        splice("a follower's role is staged by nobody", "followers-roles-declared", roles::never_staged),
        splice("a follower's node is declared by nobody", "followers-roles-declared", roles::never_declared),
        splice("two versions meet", "one-content-per-version", |e, p| {
            layouts::after_applied(e, p, "conflict")
        }),
        splice("the digests of a version differ", "one-content-per-version", layouts::digests_differ),
        splice("layout events are lost", "one-content-per-version", layouts::no_layout_events),
        splice("a version goes back", "versions-move-forward", layouts::version_goes_back),
        splice("another site applies", "staged-changes-kept", layouts::apply_of_other),
        splice("an apply is dropped", "staged-changes-kept", |e, p| layouts::after_applied(e, p, "dropped")),
        splice("a role goes and comes back", "no-role-toggles", layouts::toggles),
        splice("the removal is lost", "role-goes-first", layouts::removal_lost),
        splice("the pod goes first", "role-goes-first", layouts::pod_goes_first),
        splice("old versions are never retired", "drained-before-removal", |e, _| {
            without(e, |event| is_layout(event, "retired"))
        }),
        splice("old versions are retired too late", "drained-before-removal", layouts::retired_too_late),
        splice("a consumed annotation fires", "consumed-annotations-stay-silent", watching::annotation_fires),
        splice("a write in a quiet time", "quiescence", watching::write_in_quiet),
        splice("nobody calls in a quiet time", "quiescence", watching::silent_quiet),
        splice("the operator keeps telling in a quiet time", "quiescence", watching::told_in_quiet),
        splice("a refusal is not counted", "refusals-counted", watching::refused_once_more),
        splice("a count is of no refusal", "refusals-counted", watching::counted_once_more),
        splice("nobody reads the metrics", "refusals-counted", |e, _| {
            without(e, |event| is_state(event, "metric"))
        }),
        splice("the gauge names another role", "gauge-is-the-role", watching::other_gauge),
        splice("a follower tries something new", "follower-routes-known", watching::unknown_post),
        splice("the writer writes nothing", "control-wrote", calls::no_writes),
        splice("the follower reads nothing", "control-wrote", calls::no_reads),
        splice("a caller is unknown", "every-call-attributed", calls::anonymous),
        splice("an end is lost", "every-call-ended", |e, p| {
            drop_one(e, p, |x| matches!(x, Event::CallEnd(_)))
        }),
        splice("a beginning is lost", "every-event-accounted", |e, p| {
            drop_one(e, p, |event| matches!(event, Event::CallBegin(_)))
        }),
        splice("an apply is of no node", "every-event-accounted", |e, p| {
            drop_one(e, p, |event| is_layout(event, "applied"))
        }),
        splice("a start is lost", "every-event-accounted", |e, p| {
            drop_one(e, p, |event| node_id(event, "started").is_some_and(|node| is_called(e, node)))
        }),
        splice("an end comes before its beginning", "every-event-accounted", calls::end_first),
    ]
}
