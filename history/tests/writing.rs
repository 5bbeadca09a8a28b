//! What is written is, to the byte, what the derived writer of records gives.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use jiff::Timestamp;
use onewriter_history::{
    Beginning, CallBegin, CallEnd, Ending, Entry, Event, Header, Journal, Log, Moment, Record, SharedJournal,
    Source, State,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any text, and often text that JSON escapes.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![".*", "[a-z\"\\\\\u{0}-\u{1f}\u{7f}\u{80}\u{2028}é\u{10ffff}]*"]
}

fn body() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), text().prop_map(Value::from)];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn begin()(
        (call, incarnation, layout_version, layout_write) in any::<(u64, u64, u64, bool)>(),
        (mesh, target, node, node_id, method, path, layout_digest) in
            (text(), text(), text(), text(), text(), text(), text()),
        (caller, token, query, host) in
            (option::of(text()), option::of(text()), option::of(text()), option::of(text())),
        body in option::of(body()),
    ) -> CallBegin {
        CallBegin {
            call, mesh, caller, target, node, node_id, incarnation, token, method, path, query, host, body,
            layout_write, layout_version, layout_digest,
        }
    }
}

prop_compose! {
    fn end()(
        (call, incarnation, layout_version, status) in any::<(u64, u64, u64, Option<u16>)>(),
        (answer_digest, error, layout_digest) in (option::of(text()), option::of(text()), text()),
    ) -> CallEnd {
        CallEnd { call, status, answer_digest, error, incarnation, layout_version, layout_digest }
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        begin().prop_map(Event::CallBegin),
        end().prop_map(Event::CallEnd),
        (option::of(text()), text(), text()).prop_map(|(site, program, line)| Event::Log(Log {
            site,
            program,
            line
        })),
        (option::of(text()), text(), body()).prop_map(|(mesh, subject, value)| Event::State(State {
            cell: None,
            mesh,
            subject,
            value
        })),
    ]
}

/// Moments near each other, so that most share their second, with fractions of every length.
fn moment() -> impl Strategy<Value = Moment> {
    let fraction = prop_oneof![Just(0), Just(120_000_000), Just(1), 0..1_000_000_000_i32];
    let second = prop_oneof![Just(0_i64), Just(1_790_000_000), Just(1_790_000_001), -3_i64..3];
    (second, fraction, any::<u64>()).prop_map(|(second, fraction, mono_ns)| Moment {
        at: Timestamp::new(second.max(i64::from(fraction == 0) * second), fraction).unwrap(),
        mono_ns,
    })
}

/// What the derived writer makes of these.
fn derived(source: &Source, events: &[(Moment, Event)]) -> Vec<String> {
    let record = |(seq, (moment, event)): (u64, &(Moment, Event))| Record {
        seq,
        at: moment.at,
        mono_ns: moment.mono_ns,
        source: source.clone(),
        source_seq: seq,
        event: event.clone(),
    };
    (1..).zip(events).map(|numbered| serde_json::to_string(&record(numbered)).unwrap()).collect()
}

fn lines(journal: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(journal).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().skip(1).map(str::to_owned).collect()
}

proptest! {
    #[test]
    fn a_journal_writes_what_the_derived_writer_would(
        site in text(),
        events in vec((moment(), event()), 1..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::audit(&site);
        let mut journal =
            Journal::create(folder.path().join("journal"), &Header::new("run"), source.clone()).unwrap();
        for (moment, event) in &events {
            journal.append_at(*moment, event.clone()).unwrap();
        }
        prop_assert_eq!(lines(journal.path()), derived(&source, &events));
    }

    #[test]
    fn borrowed_calls_are_written_as_owned_ones(calls in vec((moment(), begin(), moment(), end()), 1..4)) {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::create(folder.path().join("journal"), &Header::new("run"), Source::hub()).unwrap();
        let journal = SharedJournal::from(journal);
        let mut events = Vec::new();
        for (began, begin, ended, end) in &calls {
            journal.enqueue(|| *began, Entry::Begin(Beginning::from(begin))).unwrap();
            journal.enqueue(|| *ended, Entry::End(Ending::from(end))).unwrap();
            events.push((*began, Event::CallBegin(begin.clone())));
            events.push((*ended, Event::CallEnd(end.clone())));
        }
        journal.flush().unwrap();
        prop_assert_eq!(lines(journal.path()), derived(&Source::hub(), &events));
    }
}

#[test]
fn a_large_event_leaves_no_trace_in_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path().join("journal"), &Header::new("run"), Source::hub()).unwrap();
    let journal = SharedJournal::from(journal);
    let log = |length| Event::Log(Log { site: None, program: "hub".to_owned(), line: "x".repeat(length) });
    let events = [3 << 20, 3].map(|length| (Moment::now(), log(length)));
    for (moment, event) in events.clone() {
        journal.enqueue(|| moment, event).unwrap();
    }
    journal.flush().unwrap();
    assert_eq!(lines(journal.path()), derived(&Source::hub(), &events));
    assert_eq!(serde_json::from_str::<Value>(&lines(journal.path())[1]).unwrap()["line"], json!("xxx"));
}
