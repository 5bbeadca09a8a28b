//! Where the findings of one check go.

use std::collections::{BTreeMap, BTreeSet};

use onewriter_history::Record;

use super::witness::Line;
use super::{Finding, Judgement};

/// How many findings of a check are kept. Beyond it only the first of each cell is, and the rest is counted.
const KEPT: usize = 1000;

/// The findings of one check so far.
#[derive(Debug, Default)]
pub struct Found {
    findings: Vec<Finding>,
    notes: Vec<Finding>,
    further: u64,
    cells: BTreeSet<Option<String>>,
    /// Findings whose witness waits for the end of a call.
    waiting: BTreeMap<u64, Vec<usize>>,
}

impl Found {
    /// Adds a finding. Its witness gets the answer of its call once that comes.
    pub fn add(&mut self, finding: Finding) {
        let first_of_cell = self.cells.insert(finding.cell.clone());
        if self.findings.len() >= KEPT && !first_of_cell {
            self.further += 1;
            return;
        }
        if let Some(call) = finding.witness.as_ref().and_then(|witness| witness.open_call) {
            self.waiting.entry(call).or_default().push(self.findings.len());
        }
        self.findings.push(finding);
    }

    /// Adds what is worth telling and contradicts nothing.
    pub fn note(&mut self, note: Finding) {
        if self.notes.len() < KEPT {
            self.notes.push(note);
        }
    }

    /// The call that witnesses may wait for has ended.
    pub(super) fn answered(&mut self, call: u64, end: &Record) {
        if self.waiting.is_empty() {
            return;
        }
        for index in self.waiting.remove(&call).unwrap_or_default() {
            if let Some(witness) = &mut self.findings[index].witness {
                witness.answer = Some(Line::of(end));
                witness.open_call = None;
            }
        }
    }

    pub(super) fn into_judgement(self, check: &str, claim: &str) -> Judgement {
        Judgement {
            check: check.to_owned(),
            claim: claim.to_owned(),
            findings: self.findings,
            further: self.further,
            notes: self.notes,
            ..Judgement::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_findings_is_counted_and_every_cell_keeps_its_first() {
        let mut found = Found::default();
        for _ in 0..KEPT + 7 {
            found.add(Finding::violation(Some("a"), "again", None));
        }
        found.add(Finding::violation(Some("b"), "once", None));
        let judgement = found.into_judgement("c", "");
        assert_eq!((judgement.findings.len(), judgement.further), (KEPT + 1, 7));
        assert_eq!(judgement.findings.last().unwrap().cell.as_deref(), Some("b"));
    }
}
