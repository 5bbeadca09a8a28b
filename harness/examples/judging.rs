//! How fast histories are read and judged, and in how much memory.
//!
//! `cargo run --release -p onewriter-harness --example judging -- BASE [EVENTS]` repeats the recorded history BASE, each
//! time with meshes, nodes and calls of its own, until it has EVENTS events (a million if nothing is said), and prints
//! events per second of processor time on one core: read from disk, read and judged, and judged alone.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::checks::{Judging, Severity};
use harness::garage::checks::all;
use onewriter_history::{Event, History, Reader, Record};
use rustix::time::{ClockId, clock_gettime};

/// How many events are held in memory to be judged without being read.
const HELD: usize = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let base = PathBuf::from(args.next().ok_or("usage: judging BASE [EVENTS]")?);
    let events: u64 = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.jsonl");
    repeat(&base, events, &path)?;
    println!("{events} events, {} MiB", fs::metadata(&path)?.len() >> 20);

    let started = spent();
    let read = Reader::open(&path)?.try_fold(0_u64, |count, record| record.map(|_| count + 1))?;
    tell("read from disk", read, started);

    let started = spent();
    let mut judging = Judging::new(&all());
    for record in Reader::open(&path)? {
        judging.take(record?);
    }
    report(judging);
    tell("read and judged", read, started);
    println!("most memory so far: {}", peak()?);

    let held = Reader::open(&path)?.take(HELD).map(|record| record.map(Arc::new));
    let held: Vec<Arc<Record>> = held.collect::<Result<_, _>>()?;
    let count = held.len() as u64;
    let started = spent();
    let mut judging = Judging::new(&all());
    for record in &held {
        judging.take(record.clone());
    }
    report(judging);
    tell("judged alone", count, started);
    Ok(())
}

/// Time that this process spent on its one thread, so that others on the machine do not count.
fn spent() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanos) = (u64::try_from(spent.tv_sec), u32::try_from(spent.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

fn tell(what: &str, events: u64, started: Duration) {
    let micros = u64::try_from(spent().saturating_sub(started).as_micros()).unwrap_or(u64::MAX).max(1);
    println!("{what}: {} events/s", events.saturating_mul(1_000_000) / micros);
}

/// A figure of a history that is not judged as its base was would be worth nothing.
fn report(judging: Judging) {
    for judgement in judging.end() {
        let violations = judgement.findings.iter().filter(|f| f.severity == Severity::Violation).count();
        if let Some(first) = judgement.findings.first() {
            println!(
                "{}: {violations} violations of {}; {}",
                judgement.check,
                judgement.findings.len(),
                first.message
            );
        }
    }
}

/// The most memory that this process has had.
fn peak() -> Result<String, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.ok_or("the kernel does not tell")?.trim().to_owned())
}

fn repeat(base: &Path, events: u64, path: &Path) -> Result<(), Box<dyn Error>> {
    let base = History::read(base)?;
    let names = names(&base);
    let calls = base.records.iter().filter_map(|record| call(&record.event)).max().unwrap_or(0) + 1;
    let span = base.records.last().map_or(0, |record| record.mono_ns);
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{}", serde_json::to_string(&base.header)?)?;
    let mut sources = std::collections::BTreeMap::<_, u64>::new();
    for seq in 1..=events {
        let round = (seq - 1) / base.records.len() as u64;
        let mut record = base.records[usize::try_from(seq - 1)? % base.records.len()].clone();
        let source_seq = sources.entry(record.source.clone()).or_default();
        *source_seq += 1;
        (record.seq, record.source_seq) = (seq, *source_seq);
        record.mono_ns += round * span;
        renumber(&mut record.event, round * calls);
        let mut line = serde_json::to_string(&record)?;
        for name in &names {
            line = line.replace(name, &renamed(name, round));
        }
        writeln!(file, "{line}")?;
    }
    Ok(file.flush()?)
}

/// Names of meshes and nodes.
fn names(base: &History) -> std::collections::BTreeSet<String> {
    let of = |record: &Record| match &record.event {
        Event::CallBegin(call) => vec![call.mesh.clone(), call.node_id.clone()],
        Event::State(state) => {
            let node = state.value.get("nodeId").and_then(|node| node.as_str()).map(str::to_owned);
            state.mesh.clone().into_iter().chain(node).collect()
        }
        _ => Vec::new(),
    };
    base.records.iter().flat_map(of).collect()
}

/// Names keep their length and what they look like.
fn renamed(name: &str, round: u64) -> String {
    let number = format!("{round:08x}");
    format!("{}{number}", &name[..name.len() - number.len()])
}

fn call(event: &Event) -> Option<u64> {
    match event {
        Event::CallBegin(begin) => Some(begin.call),
        Event::CallEnd(end) => Some(end.call),
        _ => None,
    }
}

fn renumber(event: &mut Event, by: u64) {
    match event {
        Event::CallBegin(begin) => begin.call += by,
        Event::CallEnd(end) => end.call += by,
        _ => {}
    }
}
