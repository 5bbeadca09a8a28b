//! Proof that a silent run was not an idle one.

use onewriter_history::{Event, History};

use super::calls::requests;
use super::roles::{EXPECTATION, Expectation};
use crate::checks::{Check, Finding};

/// Who was to write the layout wrote it, and who was to stay silent did read it.
#[derive(Debug)]
pub struct ControlWrote;

impl Check for ControlWrote {
    fn name(&self) -> &'static str {
        "control-wrote"
    }

    fn claim(&self) -> &'static str {
        "every site that was to write wrote, and every site that was to stay silent was there"
    }

    fn judge(&self, history: &History) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut judged = 0;
        for record in &history.records {
            let Event::State(state) = &record.event else { continue };
            if state.subject != EXPECTATION {
                continue;
            }
            judged += 1;
            let cell = state.cell.as_deref();
            let expectation = serde_json::from_value::<Expectation>(state.value.clone());
            if let (Some(mesh), Ok(expectation)) = (&state.mesh, expectation) {
                findings.extend(unmet(history, cell, mesh, &expectation));
            } else {
                let message = format!("the expectation at #{} cannot be read", record.seq);
                findings.push(Finding::unknown(cell, message, None));
            }
        }
        if judged == 0 {
            findings.push(Finding::unknown(None, "no cell said what it expects: nothing was proved", None));
        }
        findings
    }
}

fn unmet(history: &History, cell: Option<&str>, mesh: &str, expectation: &Expectation) -> Vec<Finding> {
    let count = |site: &str, write: bool| {
        requests(history)
            .filter(|(_, call)| call.mesh == mesh && call.caller.as_deref() == Some(site))
            .filter(|(_, call)| {
                if write { call.layout_write } else { call.method == "GET" && call.path.contains("Layout") }
            })
            .count()
    };
    let silent_writers = expectation.writes.iter().filter(|site| count(site, true) == 0).map(|site| {
        let message =
            format!("{site} was to write the layout and did not: the silence of the others proves nothing");
        Finding::unknown(cell, message, None)
    });
    let absent_readers = expectation.reads.iter().filter(|site| count(site, false) == 0).map(|site| {
        Finding::unknown(cell, format!("{site} never read the layout: its silence proves nothing"), None)
    });
    silent_writers.chain(absent_readers).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call};
    use super::*;
    use crate::checks::Severity;

    #[test]
    fn an_idle_writer_leaves_the_verdict_open() {
        let example = Example::new().expect(&["east"], &[]).call(call("east").get("/v2/GetClusterLayout"));
        let findings = ControlWrote.judge(&example.history());
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Unknown);
        assert!(findings[0].message.starts_with("east was to write"));
    }

    #[test]
    fn a_follower_that_was_never_there_leaves_the_verdict_open() {
        let example =
            Example::new().expect(&["east"], &["west"]).call(call("east").write("/v2/ApplyClusterLayout"));
        let findings = ControlWrote.judge(&example.history());
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.starts_with("west never read"));
    }

    #[test]
    fn a_run_in_which_both_did_their_part_is_proof() {
        let example = Example::new()
            .expect(&["east"], &["west"])
            .call(call("east").write("/v2/ApplyClusterLayout"))
            .call(call("west").get("/v2/GetClusterLayout"));
        assert_eq!(ControlWrote.judge(&example.history()), []);
    }

    #[test]
    fn a_history_without_any_expectation_proves_nothing() {
        let findings = ControlWrote.judge(&Example::new().history());
        assert_eq!(findings[0].severity, Severity::Unknown);
    }
}
