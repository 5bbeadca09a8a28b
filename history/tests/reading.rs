//! What a reader says of whole and of damaged histories.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::path::Path;

use onewriter_history::{Event, Header, History, Journal, ReadError, Reader, Record, Source, Step};
use proptest::prelude::*;
use rstest::rstest;

fn step(title: &str) -> Event {
    Event::Step(Step { cell: None, mesh: None, title: title.to_owned(), detail: None })
}

/// The text of a history with `n` steps.
fn recorded(n: usize) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.jsonl");
    let mut journal = Journal::create(&path, &Header::new("r1"), Source::harness()).unwrap();
    for i in 1..=n {
        journal.append(step(&format!("step {i}"))).unwrap();
    }
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn what_was_appended_is_read_back_in_order() {
    let history = History::parse(&recorded(3)).unwrap();
    assert_eq!(history.header.run, "r1");
    let seqs: Vec<u64> = history.records.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!(history.records[1].event, step("step 2"));
}

#[test]
fn a_removed_line_is_a_gap_and_not_a_shorter_history() {
    let text = recorded(4);
    let victim = text.lines().nth(2).unwrap();
    let without = text.replace(&format!("{victim}\n"), "");
    let error = History::parse(&without).unwrap_err();
    assert!(matches!(error, ReadError::Gap { line: 3, expected: 2, found: 3 }), "{error}");
    assert!(error.is_broken());
}

#[test]
fn a_renumbered_history_still_shows_the_gap_of_its_source() {
    let text = recorded(3).replace("\"sourceSeq\":2", "\"sourceSeq\":7");
    let error = History::parse(&text).unwrap_err();
    assert!(matches!(error, ReadError::SourceGap { line: 3, expected: 2, found: 7, .. }), "{error}");
}

#[rstest]
#[case::cut_in_the_last_line(5)]
#[case::cut_before_the_line_end(1)]
fn a_cut_end_is_torn(#[case] missing: usize) {
    let text = recorded(2);
    let error = History::parse(&text[..text.len() - missing]).unwrap_err();
    assert!(matches!(error, ReadError::Torn { line: 3 }), "{error}");
    assert!(error.is_broken());
}

#[rstest]
#[case::nothing("", "empty")]
#[case::no_json("hello\nworld\n", "not a history header")]
#[case::another_object("{\"a\":1}\n", "not a history header")]
#[case::another_schema("{\"schema\":\"onewriter.history/9\"}\n", "onewriter.history/9")]
fn what_is_no_history_of_this_schema_is_unreadable(#[case] text: &str, #[case] says: &str) {
    let error = History::parse(text).unwrap_err();
    assert!(error.to_string().contains(says), "{error}");
    assert!(!error.is_broken());
}

#[test]
fn a_garbled_line_in_the_middle_is_named() {
    let text = recorded(3).replace("step 2", "step \" 2");
    let error = History::parse(&text).unwrap_err();
    assert!(matches!(error, ReadError::Malformed { line: 3, .. }), "{error}");
}

#[test]
fn an_existing_history_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.jsonl");
    std::fs::write(&path, "precious").unwrap();
    Journal::create(&path, &Header::new("r1"), Source::harness()).unwrap_err();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_live_history_is_read_up_to_its_last_whole_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let text = recorded(3);
    std::fs::write(&path, &text[..text.len() - 4]).unwrap();
    assert_eq!(History::read_live(&path).unwrap().records.len(), 2);
}

#[test]
fn a_stream_gives_what_is_whole_and_ends_with_what_is_wrong() {
    let text = recorded(3).replace("\"seq\":3", "\"seq\":4");
    let mut reader = Reader::new(text.as_bytes(), Path::new("h")).unwrap();
    assert_eq!(reader.header().run, "r1");
    assert_eq!(reader.next().unwrap().unwrap().event, step("step 1"));
    assert_eq!(reader.next().unwrap().unwrap().event, step("step 2"));
    assert!(matches!(reader.next(), Some(Err(ReadError::Gap { line: 4, expected: 3, found: 4 }))));
    assert!(reader.next().is_none());
}

proptest! {
    #[test]
    fn a_line_means_the_same_read_either_way(title in ".*", seq in 1_u64.., cell in proptest::option::of(".*")) {
        let record = Record {
            seq,
            at: "2026-03-01T12:00:00.123456789Z".parse().unwrap(),
            mono_ns: seq,
            source: Source::log("east", "operator"),
            source_seq: 1,
            event: Event::Step(Step { cell, mesh: None, title, detail: Some(serde_json::json!({"kind": "log"})) }),
        };
        let line = serde_json::to_vec(&record).unwrap();
        prop_assert_eq!(&Record::from_line(&line).unwrap(), &record);
        prop_assert_eq!(serde_json::from_slice::<Record>(&line).unwrap(), record);
    }
}
