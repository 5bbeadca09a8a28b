//! Comparing an answer with what real Garage answered.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::binding::Bindings;
use super::forced::{Facts, layout_facts, statistics_facts};
use crate::layout::PARTITIONS;

/// One thing that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where, such as `$.roles[0].zone`.
    pub path: String,
    /// What was expected there.
    pub expected: String,
    /// What was answered there.
    pub answered: String,
}

impl Difference {
    /// A difference at `path`.
    #[must_use]
    pub fn new(path: &str, expected: impl std::fmt::Display, answered: impl std::fmt::Display) -> Self {
        Self { path: path.to_owned(), expected: format!("{expected}"), answered: format!("{answered}") }
    }
}

/// Compares JSON values.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// Values of placeholders.
    pub bindings: &'a mut Bindings,
    /// Paths that are not compared.
    pub volatile: &'a [String],
    /// Replication factor of the answering node.
    pub factor: usize,
    /// What was found.
    pub differences: Vec<Difference>,
}

/// Values that differ from run to run, as the format names them; only their kind is compared. The counters of workers,
/// tables and blocks agree in the sessions at hand, but not on a real program that has stored something.
const VOLATILE_KEYS: [&str; 20] = [
    // Dates of the day of the recording.
    "lifecycle-last-completed",
    "scrub-next-run",
    "lastSeenSecsAgo",
    "dataPartition",
    "metadataPartition",
    "resyncQueueLen",
    "hostname",
    "created",
    "freeform",
    "items",
    "merkleItems",
    "merkleQueueLen",
    "insertQueueLen",
    "gcQueueLen",
    "rcEntries",
    "resyncErrors",
    "queueLength",
    "errors",
    "consecutiveErrors",
    "persistentErrors",
];

/// Values that go with a node's host name.
const TOLD_KEYS: [&str; 3] = ["dataPartition", "metadataPartition", "resyncQueueLen"];

/// Figures that depend on the chosen assignment.
const ASSIGNED_KEYS: [&str; 5] =
    ["storedPartitions", "usableCapacity", "newPartitions", "totalReplicatedPartitions", "uniquePartitions"];

impl Comparison<'_> {
    /// Compares a whole body.
    pub fn body(&mut self, expected: &Value, answered: &Value) {
        self.value("$", expected, answered);
    }

    fn differ(&mut self, path: &str, expected: impl std::fmt::Display, answered: impl std::fmt::Display) {
        self.differences.push(Difference::new(path, expected, answered));
    }

    fn is_volatile(&self, path: &str) -> bool {
        self.volatile.iter().any(|volatile| {
            path.strip_prefix(volatile.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    fn value(&mut self, path: &str, expected: &Value, answered: &Value) {
        if self.is_volatile(path) {
            return;
        }
        match (expected, answered) {
            (Value::Object(expected), Value::Object(answered)) => self.object(path, expected, answered),
            (Value::Array(expected), Value::Array(answered)) => self.array(path, expected, answered),
            (Value::String(wanted), Value::String(got)) => {
                if !self.bindings.matches(&sorted_matches(wanted), &sorted_matches(got)) {
                    self.differ(path, expected, answered);
                }
            }
            _ if expected == answered => {}
            _ => self.differ(path, expected, answered),
        }
    }

    fn object(&mut self, path: &str, expected: &Map<String, Value>, answered: &Map<String, Value>) {
        let layout = layout_facts(expected, self.factor).or_else(|| statistics_facts(expected));
        if let Some(facts) = layout {
            return self.assigned_object(path, expected, answered, &facts);
        }
        self.members(path, expected, answered, &mut |this, path, key, expected, answered| {
            if key == "message" && expected.is_array() {
                this.message(path, expected, answered);
            } else if VOLATILE_KEYS.contains(&key) {
                this.kind(path, expected, answered);
            } else if key == "ackUpdated" || key == "syncUpdated" {
                this.value(path, &sorted(expected), &sorted(answered));
            } else {
                this.value(path, expected, answered);
            }
        });
        // The table of a message can only be judged with the figures beside it.
        if let (Some(message), Some(Value::Object(figures))) =
            (expected.get("message"), expected.get("statistics"))
        {
            let forced = statistics_facts(figures).is_some_and(|facts| facts.all_forced());
            let table = |message: Option<&Value>| message.and_then(Value::as_array)?.last().cloned();
            if let (true, Some(wanted), Some(got)) =
                (forced, table(Some(message)), table(answered.get("message")))
            {
                self.value(&format!("{path}.message[last]"), &wanted, &got);
            }
        }
    }

    fn members(
        &mut self,
        path: &str,
        expected: &Map<String, Value>,
        answered: &Map<String, Value>,
        compare: &mut dyn FnMut(&mut Self, &str, &str, &Value, &Value),
    ) {
        let expected = &self.with_bound_keys(expected, answered);
        let keys: BTreeSet<_> = expected.keys().chain(answered.keys()).collect();
        let unknown = self.is_volatile(&format!("{path}.hostname"));
        for key in keys {
            let at = format!("{path}.{key}");
            match (expected.get(key), answered.get(key)) {
                _ if self.is_volatile(&at) => {}
                // What a node tells about itself is known as a whole or not at all.
                (None, Some(_)) | (Some(_), None) if unknown && TOLD_KEYS.contains(&key.as_str()) => {}
                (Some(expected), Some(answered)) => compare(self, &at, key, expected, answered),
                (Some(expected), None) => self.differ(&at, expected, "(absent)"),
                (None, Some(answered)) => self.differ(&at, "(absent)", answered),
                (None, None) => {}
            }
        }
    }

    /// A layout or its statistics: what depends on the chosen assignment is compared where it is forced.
    fn assigned_object(
        &mut self,
        path: &str,
        expected: &Map<String, Value>,
        answered: &Map<String, Value>,
        facts: &Facts,
    ) {
        let (forced, all) = (facts.forced(), facts.all_forced());
        self.members(path, expected, answered, &mut |this, path, key, expected, answered| {
            if matches!(key, "roles" | "zones") {
                this.assigned(path, expected, answered, &forced, all);
            } else {
                this.value(path, expected, answered);
            }
        });
        self.sum_of_stored(path, answered, facts);
    }

    fn assigned(
        &mut self,
        path: &str,
        expected: &Value,
        answered: &Value,
        forced: &BTreeSet<String>,
        all: bool,
    ) {
        match (expected, answered) {
            (Value::Array(wanted), Value::Array(got)) if wanted.len() == got.len() => {
                for (place, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                    self.assigned(&format!("{path}[{place}]"), wanted, got, forced, all);
                }
            }
            (Value::Object(wanted), Value::Object(got)) => {
                let id = wanted.get("id").and_then(Value::as_str);
                let compared = id.map_or(all, |id| {
                    forced.contains(id) || wanted.get("capacity").is_some_and(Value::is_null)
                });
                self.members(path, wanted, got, &mut |this, path, key, wanted, got| {
                    if ASSIGNED_KEYS.contains(&key) && !compared {
                        this.kind(path, wanted, got);
                    } else {
                        this.assigned(path, wanted, got, forced, all);
                    }
                });
            }
            _ => self.value(path, expected, answered),
        }
    }

    /// Whatever the assignment: all copies are there, and every figure follows from the number of partitions.
    fn sum_of_stored(&mut self, path: &str, answered: &Map<String, Value>, facts: &Facts) {
        let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
        let nodes: Vec<&Value> = match (answered.get("roles"), answered.get("zones")) {
            (Some(Value::Array(roles)), _) => roles.iter().collect(),
            (_, Some(Value::Array(zones))) => {
                zones.iter().filter_map(|zone| zone.get("nodes")?.as_array()).flatten().collect()
            }
            _ => return,
        };
        let sum: u64 = nodes.iter().filter_map(|node| number(node, "storedPartitions")).sum();
        let wanted = u64::try_from(PARTITIONS * facts.factor).unwrap_or(u64::MAX);
        if sum != wanted {
            self.differ(&format!("{path} (sum of storedPartitions)"), wanted, sum);
        }
        for node in nodes {
            let stored = number(node, "storedPartitions").unwrap_or(0);
            let usable = number(node, "usableCapacity").unwrap_or(0);
            let capacity = number(node, "capacity").or_else(|| number(node, "totalCapacity")).unwrap_or(0);
            if usable != stored * facts.partition_size || usable > capacity {
                self.differ(&format!("{path} (usableCapacity)"), stored * facts.partition_size, usable);
            }
        }
    }

    /// The expected members, with the values of placeholders for keys.
    fn with_bound_keys(
        &mut self,
        expected: &Map<String, Value>,
        answered: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut bound = Map::new();
        for (key, value) in expected {
            let filled = self.bindings.fill(key);
            let surplus = answered.keys().find(|key| !expected.contains_key(*key));
            let unbound = filled.starts_with('<');
            let name = surplus.filter(|key| unbound && self.bindings.matches(&filled, key)).cloned();
            bound.insert(name.unwrap_or(filled), value.clone());
        }
        bound
    }

    /// Answered items in the order of the expected ones, where new identities may stand elsewhere.
    fn in_expected_order(&self, expected: &[Value], answered: &[Value]) -> Vec<Value> {
        let id = |item: &Value| item.get("id").and_then(Value::as_str).map(str::to_owned);
        let mut left: Vec<_> = answered.to_vec();
        let wanted: Vec<_> = expected.iter().map(|item| id(item).map(|id| self.bindings.fill(&id))).collect();
        if !expected.iter().filter_map(id).any(|id| id.starts_with('<')) {
            return left;
        }
        let mut ordered = vec![None; wanted.len()];
        for (slot, wanted) in ordered.iter_mut().zip(&wanted) {
            if let Some(place) = left.iter().position(|item| id(item) == *wanted) {
                *slot = Some(left.remove(place));
            }
        }
        let mut rest = left.into_iter();
        ordered.into_iter().map(|item| item.or_else(|| rest.next()).unwrap_or(Value::Null)).collect()
    }

    fn array(&mut self, path: &str, expected: &[Value], answered: &[Value]) {
        if expected.len() != answered.len() {
            self.differ(path, Value::from(expected.to_vec()), Value::from(answered.to_vec()));
            return;
        }
        let answered = self.in_expected_order(expected, answered);
        for (place, (expected, answered)) in expected.iter().zip(&answered).enumerate() {
            self.value(&format!("{path}[{place}]"), expected, answered);
        }
    }

    /// The lines of a message but the last one, which is a table.
    fn message(&mut self, path: &str, expected: &Value, answered: &Value) {
        let lines = |value: &Value| {
            let lines = value.as_array().cloned().unwrap_or_default();
            lines.split_last().map(|(_, lines)| lines.to_vec()).unwrap_or_default()
        };
        self.array(path, &lines(expected), &lines(answered));
    }

    /// Both are null, or both are values of the same kind.
    fn kind(&mut self, path: &str, expected: &Value, answered: &Value) {
        if std::mem::discriminant(expected) != std::mem::discriminant(answered) {
            self.differ(path, expected, answered);
        } else if let (Some(expected), Some(answered)) = (expected.as_object(), answered.as_object())
            && !expected.keys().eq(answered.keys())
        {
            let keys = |map: &Map<String, Value>| format!("{:?}", map.keys().collect::<Vec<_>>());
            self.differ(path, keys(expected), keys(answered));
        }
    }
}

fn sorted(value: &Value) -> Value {
    let mut items = value.as_array().cloned().unwrap_or_default();
    items.sort_by_key(ToString::to_string);
    Value::from(items)
}

/// The identities in a message about several matching nodes come in no particular order.
fn sorted_matches(text: &str) -> String {
    let list = text.contains("Multiple nodes matching").then(|| text.split_once('[')).flatten();
    let Some((head, ids)) = list else { return text.to_owned() };
    let mut ids: Vec<_> = ids.trim_end_matches(']').split(", ").collect();
    ids.sort_unstable();
    format!("{head}[{}]", ids.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differences(expected: &Value, answered: &Value, volatile: &[&str]) -> Vec<String> {
        let volatile: Vec<_> = volatile.iter().map(ToString::to_string).collect();
        let mut comparison = Comparison {
            bindings: &mut Bindings::default(),
            volatile: &volatile,
            factor: 2,
            differences: Vec::new(),
        };
        comparison.body(expected, answered);
        comparison.differences.into_iter().map(|difference| difference.path).collect()
    }

    #[test]
    fn a_missing_and_a_surplus_key_are_differences() {
        assert_eq!(differences(&json!({"a": 1}), &json!({"b": 1}), &[]), ["$.a", "$.b"]);
    }

    #[test]
    fn of_volatile_values_only_the_kind_counts() {
        assert!(differences(&json!({"lastSeenSecsAgo": 3}), &json!({"lastSeenSecsAgo": 9}), &[]).is_empty());
        assert_eq!(
            differences(&json!({"lastSeenSecsAgo": 3}), &json!({"lastSeenSecsAgo": null}), &[]).len(),
            1
        );
    }

    #[test]
    fn volatile_paths_are_left_out_with_what_is_below_them() {
        let (one, two) = (json!({"a": [{"b": 1}], "ab": 1}), json!({"a": [{"b": 2}], "ab": 2}));
        assert_eq!(differences(&one, &two, &["$.a"]), ["$.ab"]);
    }

    #[test]
    fn the_order_of_updated_nodes_does_not_count() {
        assert!(
            differences(&json!({"ackUpdated": ["a", "b"]}), &json!({"ackUpdated": ["b", "a"]}), &[])
                .is_empty()
        );
    }
}
