//! The timeline's rows in columns, and the events in packed blocks.
//!
//! A mark needs a few numbers; the event behind it is needed only when somebody looks at it. So the page carries one
//! small index, which is unpacked at once, and the events in blocks that are unpacked one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderStringWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use onewriter_history::{CallEnd, Event, History};
use serde::Serialize;
use serde_json::json;

use super::lanes::{self, Kind, RUN};
use crate::checks::Finding;
use crate::report::Verdict;
use crate::scenario::runner::CLOSE;
use crate::scenario::{CellReport, Outcome};

/// How many events a block holds.
pub const BLOCK: usize = 500;

/// The call was answered with an error.
const REFUSED: u8 = 1;
/// The call was never answered.
const UNANSWERED: u8 = 2;

/// The rows, column by column; `seq` and `time` hold differences, which pack better.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Columns {
    seq: Vec<u64>,
    /// Microseconds.
    time: Vec<i64>,
    /// Microseconds from the beginning of a call to its end.
    span: Vec<u64>,
    lane: Vec<usize>,
    /// Place in the list of cells, from 1; 0 for none.
    cell: Vec<usize>,
    text: Vec<usize>,
    status: Vec<u16>,
    flags: Vec<u8>,
    /// How many events after the call its end stands.
    answer: Vec<u64>,
}

/// The index and the blocks as elements of the page. What the verdict found is marked where it happened.
pub fn elements(history: &History, verdict: &Verdict) -> io::Result<String> {
    let mut html = String::new();
    html += "<script id=\"index\" type=\"application/octet-stream\">";
    html += &pack(|sink| Ok(serde_json::to_writer(sink, &index(history, verdict))?))?;
    html += "</script>\n";
    for block in history.records.chunks(BLOCK) {
        let packed = pack(|sink| {
            block.iter().enumerate().try_for_each(|(number, record)| {
                sink.write_all(if number == 0 { b"" } else { b"\n" })?;
                Ok(serde_json::to_writer(&mut *sink, record)?)
            })
        })?;
        // Writing to a String cannot fail.
        let _infallible =
            writeln!(html, "<script class=\"block\" type=\"application/octet-stream\">{packed}</script>");
    }
    Ok(html)
}

/// What `write` writes, as base64 of gzip.
fn pack(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<String> {
    let text = EncoderStringWriter::new(&STANDARD);
    let mut gzip = GzEncoder::new(text, Compression::new(3));
    write(&mut gzip)?;
    Ok(gzip.finish()?.into_inner())
}

fn index(history: &History, verdict: &Verdict) -> serde_json::Value {
    let lanes = used_lanes(history);
    let by_mesh = lanes::cells_by_mesh(history);
    let cells: Vec<&str> = cells(history, &by_mesh);
    let (columns, texts) = columns(history, &lanes, &cells, &by_mesh);
    let lane = |(group, kind): &(&str, Kind)| json!({"group": group, "kind": kind, "title": kind.title()});
    let kinds: BTreeSet<Kind> = lanes.iter().map(|(_, kind)| *kind).collect();
    let epoch_ms = history.records.first().map_or(0, |record| record.at.as_millisecond());
    let mut value = json!(columns);
    value["lanes"] = lanes.iter().map(lane).collect();
    value["kinds"] = kinds.iter().map(|kind| json!({"id": kind, "title": kind.title()})).collect();
    value["cells"] = json!(cells);
    value["texts"] = json!(texts);
    value["blockSize"] = json!(BLOCK);
    value["epochMs"] = json!(epoch_ms);
    let findings = verdict.findings().filter_map(|(check, finding)| found(check, finding));
    let failures = verdict.cells.iter().filter_map(|cell| failed(history, cell));
    value["findings"] = findings.chain(failures).collect();
    value
}

/// A finding, where its witness is.
fn found(check: &str, finding: &Finding) -> Option<serde_json::Value> {
    let seq = finding.witness.as_ref()?.event.seq;
    Some(json!({"seq": seq, "check": check, "severity": finding.severity, "message": finding.message}))
}

/// A cell that did not come out well, at the last step that it got to before it was closed.
fn failed(history: &History, cell: &CellReport) -> Option<serde_json::Value> {
    let severity = match &cell.outcome {
        Outcome::Failed(_) => "fail",
        Outcome::Unknown(_) => "unknown",
        Outcome::Passed | Outcome::Skipped(_) => return None,
    };
    let steps = history.records.iter().filter_map(|record| match &record.event {
        Event::Step(step) if step.cell.as_deref() == Some(&cell.cell) => Some((record.seq, step)),
        _ => None,
    });
    let (seq, _) = steps.take_while(|(_, step)| step.title != CLOSE).last()?;
    let message = cell.outcome.message().unwrap_or_default();
    Some(json!({"seq": seq, "check": cell.cell, "severity": severity, "message": message}))
}

/// The ends of calls, and which calls have begun.
struct Calls<'a> {
    ends: BTreeMap<u64, (u64, u64, &'a CallEnd)>,
    begun: BTreeSet<u64>,
}

impl<'a> Calls<'a> {
    fn of(history: &'a History) -> Self {
        let mut calls = Self { ends: BTreeMap::new(), begun: BTreeSet::new() };
        for record in &history.records {
            match &record.event {
                Event::CallBegin(begin) => {
                    calls.begun.insert(begin.call);
                }
                Event::CallEnd(end) => {
                    calls.ends.insert(end.call, (record.seq, record.mono_ns, end));
                }
                _ => {}
            }
        }
        calls
    }

    /// An end whose beginning has a mark needs none of its own.
    fn has_row(&self, event: &Event) -> bool {
        !matches!(event, Event::CallEnd(end) if self.begun.contains(&end.call))
    }
}

/// The lanes with anything in them: those of the run, then those of the sites in their order, then all others.
fn used_lanes(history: &History) -> Vec<(&str, Kind)> {
    let sites = &history.header.sites;
    let calls = Calls::of(history);
    let rows = history.records.iter().filter(|record| calls.has_row(&record.event));
    let used: BTreeSet<(&str, Kind)> = rows.map(|record| lanes::of(&record.event, sites)).collect();
    let place = |group: &str| match sites.iter().position(|site| site == group) {
        _ if group == RUN => 0,
        Some(site) => site + 1,
        None => sites.len() + 1,
    };
    let mut lanes: Vec<_> = used.into_iter().collect();
    lanes.sort_by_key(|(group, kind)| (place(group), *group, *kind));
    lanes
}

/// The cells that own any event, in the order in which they first do.
fn cells<'a>(history: &'a History, by_mesh: &BTreeMap<&'a str, &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let owners = history.records.iter().filter_map(|record| lanes::cell_of(&record.event, by_mesh));
    owners.filter(|cell| seen.insert(*cell)).collect()
}

fn columns<'a>(
    history: &'a History,
    lanes: &[(&'a str, Kind)],
    cells: &[&'a str],
    by_mesh: &BTreeMap<&'a str, &'a str>,
) -> (Columns, Vec<String>) {
    let numbers: BTreeMap<_, _> = lanes.iter().enumerate().map(|(number, lane)| (*lane, number)).collect();
    let cells: BTreeMap<_, _> = cells.iter().zip(1..).collect();
    let calls = Calls::of(history);
    let epoch = history.records.first().map_or(0, |record| record.mono_ns);
    let (mut columns, mut texts) = (Columns::default(), Texts::default());
    let (mut last_seq, mut last_time) = (0, 0);
    for record in history.records.iter().filter(|record| calls.has_row(&record.event)) {
        let time = micros_between(epoch, record.mono_ns);
        columns.seq.push(record.seq - last_seq);
        columns.time.push(time - last_time);
        (last_seq, last_time) = (record.seq, time);
        columns
            .lane
            .push(numbers.get(&lanes::of(&record.event, &history.header.sites)).copied().unwrap_or(0));
        let cell = lanes::cell_of(&record.event, by_mesh).and_then(|cell| cells.get(&cell).copied());
        columns.cell.push(cell.unwrap_or(0));
        columns.text.push(texts.number(lanes::label(&record.event)));
        columns.push_answer(&record.event, record.seq, record.mono_ns, &calls);
    }
    (columns, texts.list)
}

impl Columns {
    /// How the event ended: for a call by its answer, for an audit entry by its own status.
    fn push_answer(&mut self, event: &Event, seq: u64, mono_ns: u64, calls: &Calls) {
        let (mut span, mut answer, mut status, mut flags) = (0, 0, 0, 0);
        match event {
            Event::CallBegin(begin) => match calls.ends.get(&begin.call) {
                Some((end_seq, end_ns, end)) => {
                    span = end_ns.saturating_sub(mono_ns) / 1000;
                    answer = end_seq.saturating_sub(seq);
                    status = end.status.unwrap_or(0);
                    flags = if end.status.is_none() { UNANSWERED } else { 0 };
                }
                None => flags = UNANSWERED,
            },
            Event::CallEnd(end) => status = end.status.unwrap_or(0),
            Event::Audit(audit) => status = audit.status.unwrap_or(0),
            _ => {}
        }
        self.span.push(span);
        self.answer.push(answer);
        self.status.push(status);
        self.flags.push(flags | if status >= 400 { REFUSED } else { 0 });
    }
}

/// Labels, each kept once.
#[derive(Default)]
struct Texts {
    list: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: String) -> usize {
        *self.numbers.entry(text).or_insert_with_key(|text| {
            self.list.push(text.clone());
            self.list.len() - 1
        })
    }
}

/// Microseconds from one reading of the monotonic clock to another; negative where a source's clock ran behind.
fn micros_between(from_ns: u64, to_ns: u64) -> i64 {
    let distance = (i128::from(to_ns) - i128::from(from_ns)) / 1000;
    i64::try_from(distance).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use base64::Engine as _;
    use onewriter_history::{Header, Moment, Source, Step};
    use serde_json::Value;

    use super::*;
    use crate::history::{Stream, merge};

    const HISTORY: &str = r#"{"schema":"onewriter.history/1","run":"r","startedAt":"2026-01-01T00:00:00Z","sites":["east","west"],"versions":{}}
{"seq":1,"at":"2026-01-01T00:00:01Z","monoNs":1000000000,"source":"harness","sourceSeq":1,"kind":"step","cell":"a/b","mesh":"m1","title":"open"}
{"seq":2,"at":"2026-01-01T00:00:02Z","monoNs":2000000000,"source":"hub","sourceSeq":1,"kind":"call.begin","call":1,"mesh":"m1","caller":"west","target":"west","node":"west/m1/p","nodeId":"","incarnation":0,"token":null,"method":"POST","path":"/x","layoutWrite":true,"layoutVersion":0,"layoutDigest":""}
{"seq":3,"at":"2026-01-01T00:00:02.5Z","monoNs":2500000000,"source":"hub","sourceSeq":2,"kind":"call.end","call":1,"status":500,"incarnation":0,"layoutVersion":0,"layoutDigest":""}
{"seq":4,"at":"2026-01-01T00:00:03Z","monoNs":3000000000,"source":"hub","sourceSeq":3,"kind":"call.begin","call":2,"mesh":"m1","caller":null,"target":"west","node":"west/m1/p","nodeId":"","incarnation":0,"token":null,"method":"GET","path":"/y","layoutWrite":false,"layoutVersion":0,"layoutDigest":""}
"#;

    #[test]
    fn a_call_and_its_answer_are_one_mark() {
        let index = index(&History::parse(HISTORY).unwrap(), &Verdict::new("r", vec![], vec![], vec![]));
        insta::assert_json_snapshot!(index);
    }

    #[test]
    fn a_failed_cell_is_marked_at_the_step_that_it_got_to() {
        let step = |cell: &str, title: &str| {
            let (cell, title) = (Some(cell.to_owned()), title.to_owned());
            Event::Step(Step { cell, mesh: None, title, detail: None })
        };
        let steps = [("a/b", "open"), ("a/b", "await"), ("c/d", "await"), ("a/b", CLOSE), ("a/b", "delete")];
        let steps = steps.map(|(cell, title)| (Moment::now(), step(cell, title)));
        let history = merge(Header::new("r"), vec![Stream::of_events(Source::harness(), steps)]);
        let cell = CellReport {
            cell: "a/b".into(),
            kind: crate::scenario::Kind::Control,
            roles: crate::site::PerSite::default(),
            claim: String::new(),
            outcome: Outcome::Failed("too late".into()),
            account: None,
            failures: Vec::new(),
            duration_ms: 0,
            teardown_ms: 0,
        };
        let index = index(&history, &Verdict::new("r", vec![cell], vec![], vec![]));
        assert_eq!(
            index["findings"],
            json!([{"seq": 2, "check": "a/b", "severity": "fail", "message": "too late"}])
        );
    }

    #[test]
    fn a_block_holds_its_events_as_they_were_recorded() {
        let history = History::parse(HISTORY).unwrap();
        let html = elements(&history, &Verdict::new("r", vec![], vec![], vec![])).unwrap();
        let packed = html.split("class=\"block\" type=\"application/octet-stream\">").nth(1).unwrap();
        let bytes = STANDARD.decode(packed.split('<').next().unwrap()).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        let parse = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (events, recorded): (Vec<Value>, Vec<Value>) = (parse(&text), parse(HISTORY));
        assert_eq!(events, recorded[1..]);
    }
}
