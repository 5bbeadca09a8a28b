//! Every call that began has ended.

use std::collections::{BTreeMap, BTreeSet};

use onewriter_history::{Event, History};

use super::calls::requests;
use super::roles::Roles;
use crate::checks::{Check, Finding, Witness};

/// Every request in the history has its end beside it. One without was in flight when its recorder died.
#[derive(Debug)]
pub struct EveryCallEnded;

impl Check for EveryCallEnded {
    fn name(&self) -> &'static str {
        "every-call-ended"
    }

    fn claim(&self) -> &'static str {
        "every call that began has ended"
    }

    fn judge(&self, history: &History) -> Vec<Finding> {
        let (roles, _) = Roles::of(history);
        let ended: BTreeSet<u64> = history.records.iter().filter_map(ended_call).collect();
        requests(history)
            .filter(|(_, call)| !ended.contains(&call.call))
            .map(|(record, call)| {
                let message = format!("{} {} began and its end was never recorded", call.method, call.path);
                let cell = roles.cell(&call.mesh, record.seq);
                Finding::unknown(cell, message, Some(Witness::around(history, record)))
            })
            .collect()
    }
}

fn ended_call(record: &onewriter_history::Record) -> Option<u64> {
    match &record.event {
        Event::CallEnd(end) => Some(end.call),
        _ => None,
    }
}

/// The error text of every call that was refused.
pub(super) fn errors_by_call(history: &History) -> BTreeMap<u64, &str> {
    let errors = history.records.iter().filter_map(|record| match &record.event {
        Event::CallEnd(end) => Some((end.call, end.error.as_deref()?)),
        _ => None,
    });
    errors.collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call};
    use super::*;

    #[test]
    fn a_call_without_an_end_leaves_the_verdict_open() {
        let example = Example::new().call(call("east").write("/v2/ApplyClusterLayout").unfinished());
        let findings = EveryCallEnded.judge(&example.history());
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("never recorded"));
    }

    #[test]
    fn finished_calls_are_fine() {
        let example = Example::new().call(call("east").get("/v2/GetClusterLayout"));
        assert_eq!(EveryCallEnded.judge(&example.history()), []);
    }
}
