//! One writer at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use onewriter_history::Record;

use super::calls::{layout_write, of_site};
use super::slot::ByMesh;
use super::standing::{Standing, Standings};
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};

/// Between two changes of roles at most one site writes the layout of a mesh, whatever the roles are: two sites declared
/// Writer are two writers (design record, "Problem"). Writes in the race window of a demotion do not count.
#[derive(Debug, Clone, Copy)]
pub struct OneWriterPerTerm;

impl Check for OneWriterPerTerm {
    fn name(&self) -> &'static str {
        "one-writer-per-term"
    }

    fn claim(&self) -> &'static str {
        "between two role changes at most one site writes the layout"
    }

    fn needs(&self) -> &'static str {
        "layout writes with their callers, and role changes"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Terms::default())
    }
}

#[derive(Default)]
struct Terms {
    standings: Standings,
    meshes: ByMesh<Term>,
}

struct Term {
    number: u64,
    first: Arc<Record>,
    writers: BTreeSet<String>,
}

impl Judge for Terms {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.standings.follow(seen);
        let Some((call, site)) = layout_write(seen.record).and_then(|call| Some((call, of_site(call)?)))
        else {
            return;
        };
        if matches!(self.standings.of(&call.mesh, site), Standing::Demoting { .. }) {
            return;
        }
        let number = self.standings.term(&call.mesh);
        let begin = || Term { number, first: seen.record.clone(), writers: BTreeSet::new() };
        let term = self.meshes.slot_or(&call.mesh, begin);
        if term.number != number {
            *term = begin();
        }
        let is_new = term.writers.insert(site.to_owned());
        if is_new && term.writers.len() > 1 {
            let other = layout_write(&term.first).and_then(of_site).unwrap_or("nobody known");
            let message = format!(
                "{site} wrote the layout in a term in which {other} wrote it at #{}: two writers at once",
                term.first.seq
            );
            found.add(Finding::violation(self.standings.cell(&call.mesh), message, seen.witness()));
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.standings.forget(mesh);
        self.meshes.remove(mesh);
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged};
    use super::*;
    use crate::garage::role::Role::{Absent, Follower, Writer};

    fn write(site: &str) -> super::super::example::ExampleCall {
        call(site).write("/v2/ApplyClusterLayout")
    }

    #[test]
    fn two_sites_that_write_under_the_same_roles_are_two_writers_even_if_both_may() {
        let example =
            Example::new().roles(Writer, Absent).call(write("east")).call(write("west")).call(write("west"));
        let findings = judged(&OneWriterPerTerm, &example);
        assert_eq!(findings.len(), 1, "one term, one finding: {findings:?}");
        assert!(findings[0].message.contains("west wrote the layout in a term in which east"));
    }

    #[test]
    fn a_role_change_begins_a_new_term() {
        let example = Example::new()
            .roles(Writer, Follower)
            .call(write("east"))
            .roles(Follower, Writer)
            .call(write("west"));
        assert_eq!(judged(&OneWriterPerTerm, &example), []);
    }

    #[test]
    fn saying_the_same_roles_again_begins_no_term() {
        let example = Example::new()
            .roles(Writer, Writer)
            .call(write("east"))
            .roles(Writer, Writer)
            .call(write("west"));
        assert_eq!(judged(&OneWriterPerTerm, &example).len(), 1);
    }

    #[test]
    fn the_harness_and_people_are_no_sites() {
        let example = Example::new().roles(Writer, Follower).call(write("east")).call(write("human"));
        assert_eq!(judged(&OneWriterPerTerm, &example), []);
    }
}
