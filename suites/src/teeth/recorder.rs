//! Defects of the record itself.
//!
//! Some checks guard the record rather than the operator: no operator can make a call without an owner, or cut a history
//! short. They are shown the history of the control run with such a defect in it, and must notice.

use harness::checks::expected::EXPECTED;
use harness::checks::{Judgement, judge};
use harness::garage::checks::of_run;
use onewriter_history::{CallBegin, Event, History, Record, State};
use serde::Serialize;
use serde_json::json;

/// A defect of a record.
struct Defect {
    name: &'static str,
    /// The check that must notice it.
    check: &'static str,
    /// Puts it into a history; none if nothing in it fits.
    put: fn(&mut Vec<Record>) -> Option<()>,
}

const DEFECTS: [Defect; 10] = [
    Defect { name: "a call has no owner", check: "every-call-attributed", put: |records| disown(records) },
    Defect { name: "the end of a call is lost", check: "every-call-ended", put: lose_end },
    Defect { name: "the start of a node is lost", check: "every-event-accounted", put: lose_start },
    Defect { name: "the history is cut short", check: "history-is-whole", put: cut },
    Defect { name: "no cell says what it expects", check: "control-wrote", put: expect_nothing },
    Defect { name: "a version goes back", check: "versions-move-forward", put: |records| go_back(records) },
    Defect { name: "two contents of a version meet", check: "one-content-per-version", put: meet },
    Defect { name: "an answered apply is dropped", check: "staged-changes-kept", put: drop_apply },
    Defect {
        name: "a call goes to a route of tomorrow",
        check: "follower-routes-known",
        put: |records| new_route(records),
    },
    Defect { name: "a declared finding does not come", check: EXPECTED, put: declare },
];

/// Whether a check noticed a defect of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Noticed {
    /// The defect.
    pub defect: &'static str,
    /// The check that must notice it.
    pub check: &'static str,
    /// Whether it did; none if nothing in the history fits the defect.
    pub caught: Option<bool>,
}

/// Judges `history` with each defect in turn.
#[must_use]
pub fn judge_defects(history: &History) -> Vec<Noticed> {
    let noticed = |defect: &Defect| {
        let mut history = history.clone();
        let caught = (defect.put)(&mut history.records).map(|()| {
            judge(&of_run(), &history)
                .iter()
                .any(|judged: &Judgement| judged.check == defect.check && !judged.holds())
        });
        Noticed { defect: defect.name, check: defect.check, caught }
    };
    DEFECTS.iter().map(noticed).collect()
}

fn begin(record: &mut Record) -> Option<&mut CallBegin> {
    match &mut record.event {
        Event::CallBegin(begin) => Some(begin),
        _ => None,
    }
}

fn state<'a>(record: &'a Record, subject: &str) -> Option<&'a State> {
    match &record.event {
        Event::State(state) if state.subject == subject => Some(state),
        _ => None,
    }
}

fn disown(records: &mut [Record]) -> Option<()> {
    let owned = |call: &&mut CallBegin| call.caller.is_some() && call.path.starts_with("/v2/");
    records.iter_mut().filter_map(begin).find(owned)?.caller = None;
    Some(())
}

fn lose_end(records: &mut Vec<Record>) -> Option<()> {
    let end = records.iter().position(|record| matches!(record.event, Event::CallEnd(_)))?;
    records.remove(end);
    Some(())
}

fn lose_start(records: &mut Vec<Record>) -> Option<()> {
    let started =
        |record: &Record| state(record, "node").is_some_and(|state| state.value["event"] == "started");
    let index = records.iter().position(started)?;
    records.remove(index);
    Some(())
}

fn cut(records: &mut Vec<Record>) -> Option<()> {
    let kept = records.len().checked_sub(3)?;
    records.truncate(kept);
    Some(())
}

fn expect_nothing(records: &mut Vec<Record>) -> Option<()> {
    let before = records.len();
    records.retain(|record| state(record, "expectation").is_none());
    (records.len() < before).then_some(())
}

fn go_back(records: &mut [Record]) -> Option<()> {
    records.iter_mut().rev().filter_map(begin).find(|call| call.layout_version > 0)?.layout_version -= 1;
    Some(())
}

/// After the first apply the node tells `event` of the same version.
fn after_apply(records: &mut Vec<Record>, event: &str) -> Option<()> {
    let applied =
        |record: &Record| state(record, "layout").is_some_and(|state| state.value["event"] == "applied");
    let index = records.iter().position(applied)?;
    let mut record = records[index].clone();
    if let Event::State(state) = &mut record.event {
        state.value["event"] = event.into();
        state.value["from"] = state.value["to"].clone();
    }
    records.insert(index + 1, record);
    Some(())
}

fn meet(records: &mut Vec<Record>) -> Option<()> {
    after_apply(records, "conflict")
}

fn drop_apply(records: &mut Vec<Record>) -> Option<()> {
    after_apply(records, "dropped")
}

/// The last connecting of each site goes elsewhere; one of the sites is a Follower's.
fn new_route(records: &mut [Record]) -> Option<()> {
    let mut changed = None;
    for call in
        records.iter_mut().filter_map(begin).filter(|call| call.method == "POST" && !call.layout_write)
    {
        "/v2/WriteTheRing".clone_into(&mut call.path);
        changed = Some(());
    }
    changed
}

fn declare(records: &mut Vec<Record>) -> Option<()> {
    let index = records.iter().position(|record| state(record, "expectation").is_some())?;
    let mut record = records[index].clone();
    if let Event::State(state) = &mut record.event {
        EXPECTED.clone_into(&mut state.subject);
        state.value = json!([{"check": "one-writer-per-term"}]);
    }
    records.insert(index, record);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_defect_of_the_record_is_noticed_in_a_recorded_federation() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness/tests/data/federation.jsonl");
        for noticed in judge_defects(&History::read(&path).unwrap()) {
            assert_eq!(noticed.caught, Some(true), "{noticed:?}");
        }
    }
}
