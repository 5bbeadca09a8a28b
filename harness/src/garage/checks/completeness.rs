//! Every call that began has ended.

use std::sync::Arc;

use onewriter_history::{Event, Record};

use super::calls::request;
use super::roles::Roles;
use crate::checks::{Check, Finding, Found, Judge, OpenCalls, Recent, Seen, Witness};

/// Every request in the history has its end beside it. One without was in flight when its recorder died.
#[derive(Debug, Clone, Copy)]
pub struct EveryCallEnded;

impl Check for EveryCallEnded {
    fn name(&self) -> &'static str {
        "every-call-ended"
    }

    fn claim(&self) -> &'static str {
        "every call that began has ended"
    }

    fn needs(&self) -> &'static str {
        "the beginnings and ends of calls"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Completeness::default())
    }
}

#[derive(Default)]
struct Completeness {
    roles: Roles,
    open: OpenCalls<Arc<Record>>,
}

impl Completeness {
    fn never_ended(&self, record: &Record, witness: Witness) -> Option<Finding> {
        let call = request(record)?;
        let message = format!("{} {} began and its end was never recorded", call.method, call.path);
        Some(Finding::unknown(self.roles.cell(&call.mesh), message, Some(witness)))
    }
}

impl Judge for Completeness {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        match &seen.record.event {
            Event::CallBegin(begin) => {
                let lost = self.open.begin(begin.call, seen.record.clone());
                let lost = lost.and_then(|lost| self.never_ended(&lost, seen.recent.witness(&lost)));
                if let Some(finding) = lost {
                    found.add(finding);
                }
            }
            Event::CallEnd(end) => drop(self.open.end(end.call)),
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.roles.forget(mesh);
    }

    fn end(&mut self, recent: &Recent, found: &mut Found) {
        for record in self.open.values() {
            if let Some(finding) = self.never_ended(record, recent.witness(record)) {
                found.add(finding);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged};
    use super::*;

    #[test]
    fn a_call_without_an_end_leaves_the_verdict_open() {
        let example = Example::new().call(call("east").write("/v2/ApplyClusterLayout").unfinished());
        let findings = judged(&EveryCallEnded, &example);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("never recorded"));
    }

    #[test]
    fn finished_calls_are_fine() {
        let example = Example::new().call(call("east").get("/v2/GetClusterLayout"));
        assert_eq!(judged(&EveryCallEnded, &example), []);
    }
}
