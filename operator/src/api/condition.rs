//! Condition types and reasons (operator contract §4.3, design record "Status").

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::{Schema, SchemaGenerator};

/// The object does what its spec says.
pub const READY: &str = "Ready";
/// Which layout role this site plays; absent while `siteRole` is absent.
pub const LAYOUT_WRITER: &str = "LayoutWriter";
/// Whether this Follower has work that only a Writer may do.
pub const AWAITING_LAYOUT_WRITER: &str = "AwaitingLayoutWriter";
/// Whether all roles of a cluster that was asked to drain are gone; absent unless it was.
pub const STORAGE_DRAIN_READY: &str = "StorageDrainReady";
/// Whether the nodes have the replication factor of the spec; absent while they do.
pub const REPLICATION_FACTOR: &str = "ReplicationFactor";
/// Somebody else writes the layout; absent without evidence.
pub const FOREIGN_LAYOUT_WRITER: &str = "ForeignLayoutWriter";
/// Whether stale gateway roles wait for their removal; absent while there are none.
pub const GATEWAY_TOMBSTONES: &str = "GatewayTombstones";
/// How far a node is on its way out of the layout; absent while it stays.
pub const DRAIN_PREPARED: &str = "DrainPrepared";

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    Yes,
    /// It does not.
    No,
}

impl From<bool> for Holds {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// A condition as a decision states it, without the moment it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Condition type.
    pub kind: &'static str,
    /// Whether it holds.
    pub holds: Holds,
    /// Reason in `CamelCase`.
    pub reason: &'static str,
    /// What a person should know.
    pub message: String,
}

impl Verdict {
    /// States a condition.
    pub fn new(
        kind: &'static str,
        holds: impl Into<Holds>,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, holds: holds.into(), reason, message: message.into() }
    }

    fn status(&self) -> &'static str {
        match self.holds {
            Holds::Yes => "True",
            Holds::No => "False",
        }
    }
}

/// The conditions that follow from `verdicts`: a condition that keeps its status keeps its transition time, and one
/// that is no longer stated is dropped.
pub fn merge(
    before: &[Condition],
    verdicts: &[Verdict],
    generation: Option<i64>,
    now: &Time,
) -> Vec<Condition> {
    verdicts
        .iter()
        .map(|verdict| {
            let since = before
                .iter()
                .find(|old| old.type_ == verdict.kind && old.status == verdict.status())
                .map_or_else(|| now.clone(), |old| old.last_transition_time.clone());
            Condition {
                type_: verdict.kind.to_owned(),
                status: verdict.status().to_owned(),
                reason: verdict.reason.to_owned(),
                message: verdict.message.clone(),
                observed_generation: generation,
                last_transition_time: since,
            }
        })
        .collect()
}

/// The condition of this type, if it is there.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// The schema of a list of conditions: a map keyed by type, so that server-side apply merges entry by entry.
pub fn list_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<Vec<Condition>>();
    schema.insert("x-kubernetes-list-type".into(), "map".into());
    schema.insert("x-kubernetes-list-map-keys".into(), serde_json::json!(["type"]));
    schema
}

#[cfg(test)]
mod tests {
    use super::{READY, Verdict, merge};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn a_condition_keeps_its_transition_time_while_its_status_stays() {
        let before = merge(&[], &[Verdict::new(READY, false, "Pending", "")], Some(1), &at(10));
        let after = merge(&before, &[Verdict::new(READY, false, "StillPending", "")], Some(2), &at(20));
        assert_eq!(after[0].last_transition_time, at(10));
        assert_eq!(after[0].reason, "StillPending");
    }

    #[test]
    fn a_condition_that_changes_its_status_begins_anew() {
        let before = merge(&[], &[Verdict::new(READY, false, "Pending", "")], Some(1), &at(10));
        let after = merge(&before, &[Verdict::new(READY, true, "NodeReady", "")], Some(1), &at(20));
        assert_eq!(after[0].last_transition_time, at(20));
    }

    #[test]
    fn a_condition_that_is_no_longer_stated_is_dropped() {
        let before = merge(&[], &[Verdict::new(READY, true, "NodeReady", "")], None, &at(10));
        assert!(merge(&before, &[], None, &at(20)).is_empty());
    }
}
