//! Proof that a silent run was not an idle one.

use std::collections::BTreeMap;

use onewriter_history::{CallBegin, Event, State};
use serde::Deserialize as _;

use super::calls::of_site;
use super::roles::{EXPECTATION, Expectation};
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};

/// Who was to write the layout wrote it, and who was to stay silent did read it.
#[derive(Debug, Clone, Copy)]
pub struct ControlWrote;

impl Check for ControlWrote {
    fn name(&self) -> &'static str {
        "control-wrote"
    }

    fn claim(&self) -> &'static str {
        "every site that was to write wrote, and every site that was to stay silent was there"
    }

    fn needs(&self) -> &'static str {
        "what each cell expects of its sites"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Control::default())
    }
}

#[derive(Default)]
struct Control {
    expectations: u64,
    /// What each mesh's cells expect, each once, in the order of the history.
    expected: BTreeMap<String, Vec<(Option<String>, Expectation)>>,
    /// What each site did, by mesh and site.
    done: BTreeMap<String, BTreeMap<String, Done>>,
}

#[derive(Default)]
struct Done {
    writes: u64,
    reads: u64,
}

impl Judge for Control {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        match &seen.record.event {
            Event::CallBegin(call) => self.count(call),
            Event::State(state) if state.subject == EXPECTATION => self.expect(state, seen.record.seq, found),
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, found: &mut Found) {
        self.tell_unmet(mesh, found);
        self.expected.remove(mesh);
        self.done.remove(mesh);
    }

    fn end(&mut self, _recent: &Recent, found: &mut Found) {
        if self.expectations == 0 {
            let message = "no cell said what it expects: nothing was proved";
            found.add(Finding::unknown(None, message, None));
        }
        for mesh in self.expected.keys() {
            self.tell_unmet(mesh, found);
        }
    }
}

impl Control {
    fn tell_unmet(&self, mesh: &str, found: &mut Found) {
        for (cell, expectation) in self.expected.get(mesh).into_iter().flatten() {
            self.unmet(mesh, cell.as_deref(), expectation, found);
        }
    }

    fn count(&mut self, call: &CallBegin) {
        let reads = call.method == "GET" && call.path.contains("Layout");
        let Some(site) = of_site(call).filter(|_| reads || call.layout_write) else { return };
        if !self.done.get(&call.mesh).is_some_and(|sites| sites.contains_key(site)) {
            self.done.entry(call.mesh.clone()).or_default().insert(site.to_owned(), Done::default());
        }
        let done = self.done.get_mut(&call.mesh).and_then(|sites| sites.get_mut(site));
        let Some(done) = done else { return };
        done.writes += u64::from(call.layout_write);
        done.reads += u64::from(reads);
    }

    fn expect(&mut self, state: &State, seq: u64, found: &mut Found) {
        self.expectations += 1;
        let (Some(mesh), Ok(expectation)) = (&state.mesh, Expectation::deserialize(&state.value)) else {
            let message = format!("the expectation at #{seq} cannot be read");
            found.add(Finding::unknown(state.cell.as_deref(), message, None));
            return;
        };
        let of_mesh = self.expected.entry(mesh.clone()).or_default();
        let expectation = (state.cell.clone(), expectation);
        if !of_mesh.contains(&expectation) {
            of_mesh.push(expectation);
        }
    }

    fn unmet(&self, mesh: &str, cell: Option<&str>, expectation: &Expectation, found: &mut Found) {
        let done = |site: &String| self.done.get(mesh).and_then(|sites| sites.get(site));
        for site in expectation.writes.iter().filter(|site| done(site).is_none_or(|done| done.writes == 0)) {
            let message = format!(
                "{site} was to write the layout and did not: the silence of the others proves nothing"
            );
            found.add(Finding::unknown(cell, message, None));
        }
        for site in expectation.reads.iter().filter(|site| done(site).is_none_or(|done| done.reads == 0)) {
            let message = format!("{site} never read the layout: its silence proves nothing");
            found.add(Finding::unknown(cell, message, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged};
    use super::*;
    use crate::checks::Severity;

    #[test]
    fn an_idle_writer_leaves_the_verdict_open() {
        let example = Example::new().expect(&["east"], &[]).call(call("east").get("/v2/GetClusterLayout"));
        let findings = judged(&ControlWrote, &example);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Unknown);
        assert!(findings[0].message.starts_with("east was to write"));
    }

    #[test]
    fn a_follower_that_was_never_there_leaves_the_verdict_open() {
        let example =
            Example::new().expect(&["east"], &["west"]).call(call("east").write("/v2/ApplyClusterLayout"));
        let findings = judged(&ControlWrote, &example);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.starts_with("west never read"));
    }

    #[test]
    fn a_run_in_which_both_did_their_part_is_proof() {
        let example = Example::new()
            .expect(&["east"], &["west"])
            .call(call("east").write("/v2/ApplyClusterLayout"))
            .call(call("west").get("/v2/GetClusterLayout"));
        assert_eq!(judged(&ControlWrote, &example), []);
    }

    #[test]
    fn a_history_without_any_expectation_proves_nothing() {
        let findings = judged(&ControlWrote, &Example::new());
        assert_eq!(findings[0].severity, Severity::Unknown);
    }
}
