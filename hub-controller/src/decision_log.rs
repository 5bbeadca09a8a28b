//! The decision log: every decision about leadership, as JSON lines.
//!
//! A request that a decision rests on is named by its `Audit-ID`, so that the audit log of the API server that answered
//! it can be joined: what the process says and what the server saw are two witnesses.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use tracing::{debug, error};

/// A decision.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "decision", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Entry<'a> {
    /// The process has started.
    Started {
        /// `active`, `standby` or `standalone`.
        mode: &'a str,
        /// Process id.
        pid: u32,
        /// Seconds without a renewal after which the Active counts as dead.
        window_seconds: f64,
    },
    /// The Active's Lease was looked at.
    Poll {
        /// The request.
        audit_id: &'a str,
        /// Whether it is the last look of a promotion.
        last: bool,
        /// `read`, `absent`, `refused`, `timeout`, `unreachable`, `no-credential`.
        outcome: &'a str,
        /// What was wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The `renewTime` that was read.
        #[serde(skip_serializing_if = "Option::is_none")]
        renew_time: Option<String>,
        /// Uid of the Lease that was read.
        #[serde(skip_serializing_if = "Option::is_none")]
        lease_uid: Option<String>,
        /// What it says about the newest: `first`, `advanced`, `same`, `older`, `empty`, `unread`.
        finding: &'a str,
        /// The newest `renewTime` that was ever read.
        #[serde(skip_serializing_if = "Option::is_none")]
        newest: Option<String>,
        /// Its age on the wall clock, ms; differs from the next where clocks differ.
        #[serde(skip_serializing_if = "Option::is_none")]
        wall_age_ms: Option<i64>,
        /// Since when it was seen, on the monotonic clock, ms: this one counts.
        #[serde(skip_serializing_if = "Option::is_none")]
        seen_age_ms: Option<u64>,
        /// How long the look took, ms.
        took_ms: u64,
        /// `never-read`, `alive`, `stale`.
        verdict: &'a str,
    },
    /// A step of a promotion has ended.
    Step {
        /// Which attempt of this process.
        attempt: u64,
        /// The step.
        step: &'a str,
        /// `done`, `failed`, `timed-out`, `renewed`.
        outcome: &'a str,
        /// The request that it rests on.
        #[serde(skip_serializing_if = "Option::is_none")]
        audit_id: Option<&'a str>,
        /// How long it took, ms.
        took_ms: u64,
        /// What there is to say.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// An attempt to be promoted was given up.
    Aborted {
        /// Which attempt of this process.
        attempt: u64,
        /// At which step.
        step: &'a str,
        /// Whether the mirror was started again.
        mirror_restarted: bool,
    },
    /// The promotion is complete.
    Promoted {
        /// Which attempt of this process.
        attempt: u64,
        /// Uid of the own Lease.
        lease_uid: &'a str,
    },
    /// The own Lease was renewed, or not.
    Renewal {
        /// The last request that was made.
        audit_id: &'a str,
        /// `acquired`, `renewed`, `failed`, `held-by-another`.
        outcome: &'a str,
        /// What was wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The own Lease was given back.
    GaveBack {
        /// The request.
        audit_id: &'a str,
        /// `done` or `failed`.
        outcome: &'a str,
    },
    /// The write fence was opened or closed.
    Fence {
        /// Whether reconcilers may write.
        open: bool,
        /// Number of the leadership within this process.
        term: u64,
        /// Why.
        why: &'a str,
    },
    /// What a Standby may do with what it found.
    Standing {
        /// `standby`, `give-back`, `resume`, `refused`.
        standing: &'a str,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The mirror was started, paused, resumed or ended.
    Mirror {
        /// `started`, `paused`, `stopped`, `resumed`, `ended`.
        state: &'a str,
        /// Writes that are under way.
        in_flight: usize,
    },
    /// One kind was listed anew.
    Resync {
        /// The kind.
        kind: &'a str,
        /// Whether the list was whole.
        whole: bool,
        /// Originals of the kind on the Active.
        originals: usize,
        /// Copies that are deleted for want of an original.
        pruned: usize,
        /// What was wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Everything that exists was reconciled anew.
    Requeued {
        /// How many objects of all nine kinds.
        objects: usize,
        /// Kinds whose cache was not complete; they follow when it is.
        incomplete: &'a [&'a str],
    },
    /// The hub has declared itself, or refused to.
    Published {
        /// Clusters that were written.
        written: usize,
        /// Why it was refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    seq: u64,
    wall: String,
    monotonic_ms: u64,
    identity: &'a str,
    pid: u32,
    #[serde(flatten)]
    entry: &'a Entry<'a>,
}

struct Sink {
    file: Option<File>,
    seq: u64,
}

/// The log of this process. Clones write to the same file.
#[derive(Clone)]
pub struct DecisionLog {
    sink: Arc<Mutex<Sink>>,
    identity: Arc<str>,
    started: Instant,
}

impl DecisionLog {
    /// Appends to `path`, if given; the program's own log has the decisions, too, at level debug.
    pub fn open(path: Option<&Path>, identity: &str) -> io::Result<Self> {
        let open = |path| File::options().create(true).append(true).open(path);
        let file = path.map(open).transpose()?;
        Ok(Self {
            sink: Arc::new(Mutex::new(Sink { file, seq: 0 })),
            identity: identity.into(),
            started: Instant::now(),
        })
    }

    /// A log that goes nowhere.
    pub fn off() -> Self {
        let sink = Arc::new(Mutex::new(Sink { file: None, seq: 0 }));
        Self { sink, identity: "".into(), started: Instant::now() }
    }

    /// Records a decision. A line is written at once and whole, so that a process that is killed leaves what it decided.
    pub fn record(&self, entry: &Entry<'_>) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.seq += 1;
        let line = Line {
            seq: sink.seq,
            wall: Timestamp::now().to_string(),
            monotonic_ms: millis(self.started.elapsed()),
            identity: &self.identity,
            pid: std::process::id(),
            entry,
        };
        let text = match serde_json::to_string(&line) {
            Ok(text) => text,
            Err(failure) => return error!(error = %failure, "a decision could not be written down"),
        };
        debug!(target: "hub_controller::decision", "{text}");
        if let Some(file) = &mut sink.file
            && let Err(failure) = file.write_all(format!("{text}\n").as_bytes())
        {
            error!(error = %failure, "the decision log cannot be written");
        }
    }
}

/// Whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{DecisionLog, Entry};

    #[test]
    fn each_decision_is_a_line_with_a_number_and_both_clocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("decisions.jsonl");
        let log = DecisionLog::open(Some(&path), "hub-b").unwrap();
        log.record(&Entry::Fence { open: true, term: 1, why: "promoted" });
        log.clone().record(&Entry::Mirror { state: "ended", in_flight: 0 });
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), &lines[1]["seq"]), (2, &serde_json::json!(2)));
        assert_eq!(lines[0]["decision"], "fence");
        assert_eq!(lines[0]["identity"], "hub-b");
        assert!(lines[0]["monotonicMs"].is_u64() && lines[0]["wall"].is_string());
    }
}
