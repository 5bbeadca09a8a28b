//! One pass of all checks over a history.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;

use onewriter_history::{Event, History, Record};
use serde::{Deserialize, Serialize};

use super::expected::Expected;
use super::{Check, Finding, Found, Judge, OpenCalls, Recent, Seen, Severity};
use crate::scenario::runner::{CELL_CLOSED, WENT_THROUGH};

/// What one check said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// Name of the check.
    pub check: String,
    /// The property it stands for.
    pub claim: String,
    /// What the check must have seen to tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub needs: String,
    /// What contradicts the property, or keeps it from being judged; empty when it holds.
    pub findings: Vec<Finding>,
    /// How many further findings there were than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub further: u64,
    /// Findings that their cell declared it would produce. They do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Finding>,
    /// What is worth telling and contradicts nothing: a race window with its length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Finding>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Judgement {
    /// Whether the property holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }

    /// What it looks like in a list: `✓` holds, `✗` does not, `?` cannot be told.
    #[must_use]
    pub fn mark(&self) -> char {
        let is = |severity| self.findings.iter().any(|finding| finding.severity == severity);
        if is(Severity::Violation) {
            '✗'
        } else if self.holds() {
            '✓'
        } else {
            '?'
        }
    }
}

/// How many events after the end of a cell its mesh is forgotten: audit entries of its teardown may come late.
const LINGERING: u64 = 20_000;

/// All checks at work on one history.
pub struct Judging {
    bench: Vec<Seat>,
    recent: Recent,
    open: OpenCalls<Arc<Record>>,
    expected: Expected,
    /// Meshes whose cells are over, each with the event after which it is forgotten.
    ended: VecDeque<(u64, String)>,
}

struct Seat {
    check: &'static str,
    claim: &'static str,
    needs: &'static str,
    reads_audit: bool,
    judge: Box<dyn Judge>,
    found: Found,
}

impl std::fmt::Debug for Judging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judging").field("checks", &self.bench.len()).finish_non_exhaustive()
    }
}

impl Judging {
    /// Begins to judge a history with `checks`.
    #[must_use]
    pub fn new(checks: &[Box<dyn Check>]) -> Self {
        let seat = |check: &dyn Check| Seat {
            check: check.name(),
            claim: check.claim(),
            needs: check.needs(),
            reads_audit: check.reads_audit(),
            judge: check.begin(),
            found: Found::default(),
        };
        Self {
            bench: checks.iter().map(|check| seat(check.as_ref())).collect(),
            recent: Recent::default(),
            open: OpenCalls::default(),
            expected: Expected::default(),
            ended: VecDeque::new(),
        }
    }

    /// Shows the next event to every check.
    pub fn take(&mut self, record: impl Into<Arc<Record>>) {
        let record = record.into();
        let read = OnceCell::new();
        let begun = match &record.event {
            Event::CallBegin(begin) => self.open.get(begin.call),
            Event::CallEnd(end) => self.open.get(end.call),
            _ => None,
        };
        let seen = Seen::new(&record, &self.recent, begun, &read);
        let is_audit = matches!(record.event, Event::Audit(_));
        for seat in self.bench.iter_mut().filter(|seat| seat.reads_audit || !is_audit) {
            seat.judge.take(&seen, &mut seat.found);
        }
        match &record.event {
            Event::CallBegin(begin) => drop(self.open.begin(begin.call, record.clone())),
            Event::CallEnd(end) => {
                self.open.end(end.call);
                for seat in &mut self.bench {
                    seat.found.answered(end.call, &record);
                }
            }
            Event::State(state) => self.expected.take(state, record.seq),
            Event::Step(step) if step.title == WENT_THROUGH => self.expected.went_through(step),
            Event::Step(step) if step.title == CELL_CLOSED => {
                self.ended.extend(step.mesh.iter().map(|mesh| (record.seq + LINGERING, mesh.clone())));
            }
            _ => {}
        }
        while let Some((_, mesh)) = self.ended.pop_front_if(|(last, _)| *last < record.seq) {
            self.forget(&mesh);
        }
        self.recent.take(record);
    }

    fn forget(&mut self, mesh: &str) {
        for seat in &mut self.bench {
            seat.judge.mesh_ends(mesh, &self.recent, &mut seat.found);
        }
        self.recent.forget(mesh);
    }

    /// What every check said, in the order in which they were given, and at last whether every cell produced the
    /// findings that it declared.
    #[must_use]
    pub fn end(self) -> Vec<Judgement> {
        let Self { bench, recent, expected, .. } = self;
        let end = |mut seat: Seat| {
            seat.judge.end(&recent, &mut seat.found);
            Judgement { needs: seat.needs.to_owned(), ..seat.found.into_judgement(seat.check, seat.claim) }
        };
        let judgements = bench.into_iter().map(end).collect();
        expected.weigh(judgements)
    }
}

/// Lets every check judge `history`.
#[must_use]
pub fn judge(checks: &[Box<dyn Check>], history: &History) -> Vec<Judgement> {
    let mut judging = Judging::new(checks);
    for record in &history.records {
        judging.take(record.clone());
    }
    judging.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn violation() -> Finding {
        Finding::violation(None, "it was written", None)
    }

    fn open() -> Finding {
        Finding::unknown(None, "it cannot be told", None)
    }

    #[rstest]
    #[case::nothing(vec![], '✓')]
    #[case::only_open(vec![open()], '?')]
    #[case::only_broken(vec![violation()], '✗')]
    #[case::both(vec![open(), violation()], '✗')]
    fn a_violation_is_marked_before_what_is_open(#[case] findings: Vec<Finding>, #[case] mark: char) {
        assert_eq!(Judgement { findings, ..Judgement::default() }.mark(), mark);
    }
}
