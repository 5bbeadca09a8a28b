//! What a Follower waits for (design record "Conditions" and its deviations).

use crate::api::condition::{AWAITING_LAYOUT_WRITER, LAYOUT_WRITER, Verdict};
use crate::api::layout::LayoutSiteRole;
use crate::mutant::{self, Mutant};

/// Work that only the writer site may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterWork {
    /// `GarageNodes` of this site without a role.
    pub without_role: Vec<String>,
    /// `GarageNodes` of this site whose role has to go before they can.
    pub role_removals: Vec<String>,
    /// Stale gateway roles.
    pub tombstones: Vec<String>,
    /// The zone redundancy of the spec differs from the layout's; says how.
    pub replication_drift: Option<String>,
}

/// Both conditions of the feature for a site that declares `role`.
pub fn verdicts(role: LayoutSiteRole, work: &WriterWork) -> [Verdict; 2] {
    match role {
        LayoutSiteRole::Writer => [
            Verdict::new(LAYOUT_WRITER, true, "WriterSite", "this site writes the layout"),
            nothing_pending("this site is the layout writer"),
        ],
        LayoutSiteRole::Follower => [
            Verdict::new(LAYOUT_WRITER, false, "FollowerSite", "the writer site changes the layout"),
            awaiting(work),
        ],
    }
}

fn nothing_pending(message: &str) -> Verdict {
    Verdict::new(AWAITING_LAYOUT_WRITER, false, "NothingPending", message)
}

fn awaiting(work: &WriterWork) -> Verdict {
    let states = |reason, message: String| Verdict::new(AWAITING_LAYOUT_WRITER, true, reason, message);
    if !work.role_removals.is_empty() {
        let names = work.role_removals.join(", ");
        return states("PendingRoleRemoval", format!("the writer must remove the roles of {names}"));
    }
    if !work.without_role.is_empty() {
        let names = work.without_role.join(", ");
        let wrong = mutant::is(Mutant::WrongReason);
        let reason = if wrong { "PendingTombstones" } else { "NodesWithoutRole" };
        return states(reason, format!("the writer must assign roles to {names}"));
    }
    if !work.tombstones.is_empty() {
        let ids = work.tombstones.join(", ");
        return states("PendingTombstones", format!("the writer must remove the stale gateway roles {ids}"));
    }
    match &work.replication_drift {
        Some(drift) => {
            states("ReplicationChange", format!("the writer must change the layout parameters: {drift}"))
        }
        None => nothing_pending("nothing waits for the layout writer"),
    }
}

#[cfg(test)]
mod tests {
    use super::{WriterWork, verdicts};
    use crate::api::condition::Holds;
    use crate::api::layout::LayoutSiteRole::{Follower, Writer};
    use rstest::rstest;

    /// Work of the kinds that the letters name: role, removal, tombstone, drift.
    fn work(kinds: &str) -> WriterWork {
        let one = |kind: char| if kinds.contains(kind) { vec!["x".to_owned()] } else { vec![] };
        WriterWork {
            without_role: one('r'),
            role_removals: one('m'),
            tombstones: one('t'),
            replication_drift: kinds.contains('d').then(|| "spec 2, layout maximum".to_owned()),
        }
    }

    #[rstest]
    #[case(work(""), Holds::No, "NothingPending")]
    #[case(work("r"), Holds::Yes, "NodesWithoutRole")]
    #[case(work("rmtd"), Holds::Yes, "PendingRoleRemoval")]
    #[case(work("rtd"), Holds::Yes, "NodesWithoutRole")]
    #[case(work("td"), Holds::Yes, "PendingTombstones")]
    #[case(work("d"), Holds::Yes, "ReplicationChange")]
    fn a_follower_says_what_it_waits_for(
        #[case] work: WriterWork,
        #[case] holds: Holds,
        #[case] reason: &str,
    ) {
        let [layout_writer, awaiting] = verdicts(Follower, &work);
        assert_eq!((layout_writer.holds, layout_writer.reason), (Holds::No, "FollowerSite"));
        assert_eq!((awaiting.holds, awaiting.reason), (holds, reason));
    }

    #[test]
    fn a_writer_waits_for_nobody() {
        let [layout_writer, awaiting] = verdicts(Writer, &work("rmtd"));
        assert_eq!((layout_writer.holds, layout_writer.reason), (Holds::Yes, "WriterSite"));
        assert_eq!((awaiting.holds, awaiting.reason), (Holds::No, "NothingPending"));
    }
}
