//! What can be asked for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::hub::request::LARGEST_OFFSET;
use crate::layout::Held;
use crate::mesh::{Cut, Loss, Slowness};

/// Body of `POST /faults`.
///
/// Faults that last have `expiresMs`: after that many milliseconds they are healed by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum FaultRequest {
    /// Ends a process as SIGKILL does. Healed, it is started with the files that are left.
    Kill {
        /// The node, `site/namespace/pod`.
        node: String,
        /// What it loses.
        #[serde(default)]
        lose: LossName,
        /// When it is healed by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_ms: Option<u64>,
    },
    /// Ends a process as SIGKILL does and starts it anew.
    Restart {
        /// The node, `site/namespace/pod`.
        node: String,
        /// What it loses meanwhile.
        #[serde(default)]
        lose: LossName,
    },
    /// Stops a process in its tracks, as SIGSTOP does. Healed, it goes on.
    Freeze {
        /// The node, `site/namespace/pod`.
        node: String,
        /// When it is healed by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_ms: Option<u64>,
    },
    /// Lets a frozen process go on, however often it was frozen.
    Resume {
        /// The node, `site/namespace/pod`.
        node: String,
    },
    /// Takes all metadata from a node and starts it anew under another identity.
    Wipe {
        /// The node, `site/namespace/pod`.
        node: String,
    },
    /// Takes the layout file from every node of a mesh, all of them being down at that moment.
    Purge {
        /// The mesh.
        mesh: String,
    },
    /// Separates two groups.
    Partition {
        /// The mesh.
        mesh: String,
        /// The groups; an entry is a site or a node.
        between: [Vec<String>; 2],
        /// How.
        kind: CutName,
        /// When it is healed by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_ms: Option<u64>,
    },
    /// Slows the links from one group to another. The way back stays as it is.
    Slow {
        /// The mesh.
        mesh: String,
        /// Where messages come from; an entry is a site or a node.
        from: Vec<String>,
        /// Where they go.
        to: Vec<String>,
        /// Extra time of each message.
        #[serde(default)]
        latency_ms: u64,
        /// How much more it is at most, left to chance.
        #[serde(default)]
        jitter_ms: u64,
        /// How many packets of a thousand are lost; each is sent again 200 ms later, and so on, doubled.
        #[serde(default)]
        loss_per_mille: u64,
        /// When it is healed by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_ms: Option<u64>,
    },
    /// Keeps a node from raising its own trackers: writes that never end hold `ack`, tables that are never copied
    /// hold `sync`.
    HoldTrackers {
        /// The node, `site/namespace/pod`.
        node: String,
        /// Which; all where none is given.
        #[serde(default = "all_trackers")]
        trackers: Vec<TrackerName>,
        /// When it is healed by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_ms: Option<u64>,
    },
    /// Sets a node's wall clock. Healed, it shows what it would have shown.
    Clock {
        /// The node, `site/namespace/pod`.
        node: String,
        /// How many milliseconds it is ahead; negative if behind.
        offset_ms: i64,
        /// When it is healed by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_ms: Option<u64>,
    },
    /// Heals all partitions and slow links of a mesh.
    Heal {
        /// The mesh.
        mesh: String,
    },
}

fn all_trackers() -> Vec<TrackerName> {
    vec![TrackerName::Ack, TrackerName::Sync, TrackerName::SyncAck]
}

/// The longest latency and jitter that can be asked for, in milliseconds.
const LONGEST_LATENCY: u64 = 3_600_000;

impl FaultRequest {
    /// What is done, as it is named.
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Kill { .. } => "kill",
            Self::Restart { .. } => "restart",
            Self::Freeze { .. } => "freeze",
            Self::Resume { .. } => "resume",
            Self::Wipe { .. } => "wipe",
            Self::Purge { .. } => "purge",
            Self::Partition { .. } => "partition",
            Self::Slow { .. } => "slow",
            Self::HoldTrackers { .. } => "hold-trackers",
            Self::Clock { .. } => "clock",
            Self::Heal { .. } => "heal",
        }
    }

    /// When it is healed by itself; `None` if it lasts until it is healed, or does not last.
    #[must_use]
    pub fn expires(&self) -> Option<Duration> {
        let ms = match self {
            Self::Kill { expires_ms, .. }
            | Self::Freeze { expires_ms, .. }
            | Self::Partition { expires_ms, .. }
            | Self::Slow { expires_ms, .. }
            | Self::HoldTrackers { expires_ms, .. }
            | Self::Clock { expires_ms, .. } => *expires_ms,
            Self::Restart { .. }
            | Self::Resume { .. }
            | Self::Wipe { .. }
            | Self::Purge { .. }
            | Self::Heal { .. } => None,
        };
        ms.map(Duration::from_millis)
    }

    /// What makes no sense in it, if anything.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.expires().is_some_and(|after| after.is_zero()) {
            return Some("expiresMs must be at least 1; leave it out for a fault that lasts".to_owned());
        }
        match self {
            Self::Slow { loss_per_mille: 1000.., .. } => Some(
                "lossPerMille must be below 1000; where every packet is lost there is a silent partition"
                    .to_owned(),
            ),
            Self::Slow { latency_ms: 0, jitter_ms: 0, loss_per_mille: 0, .. } => {
                Some("nothing is slow; give latencyMs, jitterMs or lossPerMille".to_owned())
            }
            Self::Slow { latency_ms, jitter_ms, .. } if *latency_ms.max(jitter_ms) > LONGEST_LATENCY => {
                Some(format!("latencyMs and jitterMs can be at most {LONGEST_LATENCY} (an hour)"))
            }
            Self::Clock { offset_ms, .. } if offset_ms.unsigned_abs() > LARGEST_OFFSET => {
                Some("offsetMs must be less than ten years".to_owned())
            }
            Self::HoldTrackers { trackers, .. } if trackers.is_empty() => {
                Some("no tracker is named; leave `trackers` out to hold all of them".to_owned())
            }
            _ => None,
        }
    }
}

/// What a node loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossName {
    /// Nothing.
    #[default]
    Nothing,
    /// The file that holds the layout.
    LayoutFile,
    /// Everything.
    AllMetadata,
}

impl From<LossName> for Loss {
    fn from(name: LossName) -> Self {
        match name {
            LossName::Nothing => Self::Nothing,
            LossName::LayoutFile => Self::LayoutFile,
            LossName::AllMetadata => Self::AllMetadata,
        }
    }
}

/// How nodes are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutName {
    /// Packets vanish.
    Silent,
    /// Connections are refused and torn.
    Reset,
}

impl From<CutName> for Cut {
    fn from(name: CutName) -> Self {
        match name {
            CutName::Silent => Self::Silent,
            CutName::Reset => Self::Reset,
        }
    }
}

/// A tracker of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TrackerName {
    /// What it has acknowledged.
    Ack,
    /// What its tables are synchronised to.
    Sync,
    /// What it has seen everyone synchronised to.
    SyncAck,
}

/// The trackers of that name.
pub(super) fn held(trackers: &[TrackerName]) -> Held {
    Held {
        ack: trackers.contains(&TrackerName::Ack),
        sync: trackers.contains(&TrackerName::Sync),
        sync_ack: trackers.contains(&TrackerName::SyncAck),
    }
}

pub(super) fn slowness(latency_ms: u64, jitter_ms: u64, loss_per_mille: u64) -> Slowness {
    let least = Duration::from_millis(latency_ms);
    Slowness { latency: least..least + Duration::from_millis(jitter_ms), loss_per_mille }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn read(value: Value) -> Result<FaultRequest, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn a_fault_reads_as_it_is_written() {
        let value = json!({"action": "slow", "mesh": "m", "from": ["east"], "to": ["west"], "latencyMs": 80, "jitterMs": 0, "lossPerMille": 5, "expiresMs": 100});
        let fault = read(value.clone()).unwrap();
        assert_eq!((fault.action(), fault.expires()), ("slow", Some(Duration::from_millis(100))));
        assert_eq!(serde_json::to_value(&fault).unwrap(), value);
    }

    #[test]
    fn all_trackers_are_held_where_none_is_named() {
        let fault = read(json!({"action": "hold-trackers", "node": "n"})).unwrap();
        let FaultRequest::HoldTrackers { trackers, .. } = fault else { panic!("{fault:?}") };
        assert_eq!(held(&trackers), Held { ack: true, sync: true, sync_ack: true });
    }

    #[rstest]
    #[case::what_does_not_last(json!({"action": "restart", "node": "n", "expiresMs": 5}), "unknown field `expiresMs`")]
    #[case::an_unknown_action(json!({"action": "explode", "node": "n"}), "unknown variant `explode`")]
    #[case::no_node(json!({"action": "freeze"}), "missing field `node`")]
    fn what_cannot_be_read_is_told(#[case] value: Value, #[case] message: &str) {
        let error = read(value).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }

    #[rstest]
    #[case::no_time(json!({"action": "freeze", "node": "n", "expiresMs": 0}), "expiresMs must be at least 1")]
    #[case::nothing_slow(json!({"action": "slow", "mesh": "m", "from": [], "to": []}), "nothing is slow")]
    #[case::all_lost(json!({"action": "slow", "mesh": "m", "from": [], "to": [], "lossPerMille": 1000}), "silent partition")]
    #[case::too_slow(json!({"action": "slow", "mesh": "m", "from": [], "to": [], "latencyMs": 3_600_001}), "at most 3600000")]
    #[case::no_tracker(json!({"action": "hold-trackers", "node": "n", "trackers": []}), "no tracker")]
    #[case::no_clock(json!({"action": "clock", "node": "n", "offsetMs": 400_000_000_000_i64}), "ten years")]
    fn what_makes_no_sense_is_told(#[case] value: Value, #[case] message: &str) {
        let problem = read(value).unwrap().problem().unwrap();
        assert!(problem.contains(message), "{problem}");
    }
}
