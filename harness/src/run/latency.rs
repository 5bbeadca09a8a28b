//! How long after a condition became true a wait for it returned.

use std::collections::{BTreeMap, VecDeque};

use onewriter_history::{Event, Record};
use serde_json::Value;

/// Subject of the state event with which a wait returns.
pub const WAIT: &str = "wait";

/// How many versions of objects are remembered. A wait returns soon after the version that it was for.
const VERSIONS: usize = 1 << 16;

/// Compares the moments at which waits returned with those at which API servers had completed the writes that made their
/// conditions true (the audit entries' `stageTimestamp`).
///
/// A wait whose condition was true when it began is not counted. Versions of objects are known from state events with
/// `site` and `resourceVersion`, which follow audit entries at their moments.
#[derive(Debug, Default)]
pub struct Latency {
    versions: BTreeMap<(String, String), u64>,
    order: VecDeque<(String, String)>,
    waiting: Vec<Wait>,
    micros: Vec<u64>,
}

#[derive(Debug)]
struct Wait {
    version: (String, String),
    began_ns: u64,
    returned_ns: u64,
}

impl Latency {
    /// Takes the next event.
    pub fn take(&mut self, record: &Record) {
        let Event::State(state) = &record.event else { return };
        let text = |key: &str| state.value.get(key).and_then(Value::as_str);
        let (Some(site), Some(version)) = (text("site"), text("resourceVersion")) else { return };
        let version = (site.to_owned(), version.to_owned());
        if state.subject != WAIT {
            self.learn(version, record.mono_ns);
            return;
        }
        let began_ns = state.value.get("beganNs").and_then(Value::as_u64).unwrap_or(u64::MAX);
        self.waiting.push(Wait { version, began_ns, returned_ns: record.mono_ns });
        if self.waiting.len() >= 1024 {
            self.settle();
        }
    }

    fn learn(&mut self, version: (String, String), at: u64) {
        if version.1.is_empty() || self.versions.contains_key(&version) {
            return;
        }
        if self.order.len() == VERSIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.settle();
            self.versions.remove(&oldest);
        }
        self.order.push_back(version.clone());
        self.versions.insert(version, at);
    }

    /// Measures the waits whose version is known. An entry may come a moment after the wait that it ended.
    fn settle(&mut self) {
        for wait in std::mem::take(&mut self.waiting) {
            let Some(true_at) = self.versions.get(&wait.version) else { continue };
            if *true_at >= wait.began_ns {
                self.micros.push(wait.returned_ns.saturating_sub(*true_at) / 1000);
            }
        }
    }

    /// The figures by name: `waits`, and of their latencies in microseconds `waitP50Us`, `waitP99Us`, `waitMaxUs`.
    #[must_use]
    pub fn figures(mut self) -> BTreeMap<String, u64> {
        self.settle();
        self.micros.sort_unstable();
        let Some(last) = self.micros.len().checked_sub(1) else { return BTreeMap::new() };
        // The smallest value that is not below that share of all.
        let share = |percent: usize| self.micros[((last + 1) * percent).div_ceil(100).saturating_sub(1)];
        let figures = [("waits", last as u64 + 1), ("waitP50Us", share(50)), ("waitP99Us", share(99))];
        let figures = figures.into_iter().chain([("waitMaxUs", self.micros[last])]);
        figures.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onewriter_history::{Moment, Source, State};
    use serde_json::json;

    fn state(at: u64, subject: &str, value: Value) -> Record {
        let event = Event::State(State { cell: None, mesh: None, subject: subject.to_owned(), value });
        let at_now = Moment::now().at;
        Record { seq: 1, at: at_now, mono_ns: at * 1000, source: Source::hub(), source_seq: 1, event }
    }

    fn written(at: u64, version: &str) -> Record {
        state(at, "object", json!({"site": "east", "resourceVersion": version}))
    }

    fn waited(from: u64, to: u64, version: &str) -> Record {
        state(to, WAIT, json!({"site": "east", "resourceVersion": version, "beganNs": from * 1000}))
    }

    fn figures(records: &[Record]) -> BTreeMap<String, u64> {
        let mut latency = Latency::default();
        for record in records {
            latency.take(record);
        }
        latency.figures()
    }

    #[test]
    fn a_wait_takes_from_the_write_that_fulfils_it_to_its_return() {
        let figures = figures(&[written(10, "1"), waited(5, 13, "1"), waited(5, 17, "2"), written(16, "2")]);
        assert_eq!((figures["waits"], figures["waitP50Us"], figures["waitP99Us"]), (2, 1, 3));
    }

    #[test]
    fn what_was_true_before_the_wait_began_is_not_counted() {
        assert_eq!(figures(&[written(10, "1"), waited(11, 12, "1")]), BTreeMap::new());
    }

    #[test]
    fn a_version_that_no_server_told_of_is_not_counted() {
        assert_eq!(figures(&[waited(5, 12, "1")]), BTreeMap::new());
    }
}
