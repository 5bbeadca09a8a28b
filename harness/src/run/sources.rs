//! The run's history out of its sources.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use onewriter_history::{Event, Header, Moment, ReadError, Reader, Record, Source};
use serde::Serialize;
use serde_json::Value;

use super::directory::ArtifactError;
use crate::history::{LogLines, Merged, Stream};
use crate::local::LocalError;
use crate::local::audit::{Entries, Facts};
use crate::pair::PairDescription;
use crate::site::Site;

/// A source of the history could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A journal is damaged or cannot be read.
    #[error("cannot take in the journal {}", .path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ReadError,
    },
    /// An audit log is damaged or cannot be read.
    #[error(transparent)]
    Audit(#[from] LocalError),
    /// A program's log cannot be read.
    #[error("cannot take in the log {}", .path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What of a pair's sources belongs to a run.
#[derive(Debug, Clone)]
pub struct Share {
    /// When the run began.
    pub since: Moment,
    /// Meshes and namespaces of the run's cells. None: the pair is the run's own, everything belongs to it.
    pub cells: Option<BTreeSet<String>>,
    /// Whether every line that the operators log from then on is the run's: nobody else uses the pair meanwhile.
    pub has_lines: bool,
}

impl Share {
    fn has_record(&self, record: &Record) -> bool {
        let Some(cells) = &self.cells else { return true };
        let mesh = match &record.event {
            Event::CallBegin(call) => Some(&call.mesh),
            Event::State(state) => state.mesh.as_ref(),
            _ => None,
        };
        mesh.is_some_and(|mesh| cells.contains(mesh))
    }

    fn has_audit(&self, moment: Moment, event: &Event) -> bool {
        let Some(cells) = &self.cells else { return true };
        let namespace = match event {
            Event::Audit(audit) => audit.namespace.as_ref(),
            Event::State(state) => state.mesh.as_ref(),
            _ => return true,
        };
        moment.mono_ns >= self.since.mono_ns && namespace.is_some_and(|namespace| cells.contains(namespace))
    }

    /// A structured line says which object it is about, as `namespace` or in front of a slash.
    fn has_line(&self, moment: Moment, event: &Event) -> bool {
        let (Some(cells), Event::Log(log)) = (&self.cells, event) else { return true };
        if moment.mono_ns < self.since.mono_ns {
            return false;
        }
        if self.has_lines {
            return true;
        }
        let Ok(Value::Object(line)) = serde_json::from_str(&log.line) else { return false };
        let namespace = |value: &Value| value.as_str()?.split('/').next().map(str::to_owned);
        line.values().filter_map(namespace).any(|namespace| cells.contains(&namespace))
    }
}

/// Reads the hub's journal, the harness's own, both audit logs with what `facts` tells of them, and the operators' logs,
/// and puts them into one order, one event at a time.
pub fn events<'a>(
    pair: &'a PairDescription,
    steps: &Path,
    share: &'a Share,
    facts: Facts<'a>,
) -> Result<Merged<'a, SourceError>, SourceError> {
    let now = Moment::now();
    let mut streams = vec![hub(&pair.hub.journal, share)?, harness(steps)?];
    for site in Site::ALL {
        streams.push(audit(site, &pair.sites.at(site).audit_log, share, now, facts)?);
    }
    for site in Site::ALL {
        streams.push(log(site, &pair.sites.at(site).operator.log, share, now)?);
    }
    Ok(Merged::new(streams))
}

type Read<'a> = Stream<'a, SourceError>;

fn hub<'a>(path: &Path, share: &'a Share) -> Result<Read<'a>, SourceError> {
    let records = records(path)?;
    if share.cells.is_none() {
        return Ok(Stream::of_records(Source::hub(), records));
    }
    // The answers have no mesh of their own: they belong to whom their requests belong to.
    let mut calls = BTreeSet::new();
    let mut mine = move |record: &Record| match &record.event {
        Event::CallEnd(end) => calls.remove(&end.call),
        Event::CallBegin(begin) if share.has_record(record) => calls.insert(begin.call),
        _ => share.has_record(record),
    };
    let events = records.filter_map(move |read| match read {
        Ok(record) => mine(&record).then(|| Ok((record.moment(), record.event))),
        Err(error) => Some(Err(error)),
    });
    Ok(Stream::numbering(Source::hub(), events))
}

fn harness<'a>(path: &Path) -> Result<Read<'a>, SourceError> {
    Ok(Stream::of_records(Source::harness(), records(path)?))
}

/// The records of a journal that may still be written: an unfinished last line is left out.
fn records(path: &Path) -> Result<impl Iterator<Item = Result<Record, SourceError>> + use<>, SourceError> {
    let reader = Reader::open(path);
    let path = path.to_owned();
    let failed = move |source| SourceError::Journal { path: path.clone(), source };
    let reader = reader.map_err(&failed)?;
    let whole = reader.take_while(|read| !matches!(read, Err(ReadError::Torn { .. })));
    Ok(whole.map(move |read| read.map_err(&failed)))
}

fn audit<'a>(
    site: Site,
    path: &Path,
    share: &'a Share,
    now: Moment,
    facts: Facts<'a>,
) -> Result<Read<'a>, SourceError> {
    let entries = Entries::open(path, site, now, facts)?;
    let mine = |read: &Result<(Moment, Event), LocalError>| {
        read.as_ref().map_or(true, |(moment, event)| share.has_audit(*moment, event))
    };
    let mine = entries.filter(mine).map(|read| read.map_err(SourceError::from));
    Ok(Stream::numbering(Source::audit(site.name()), mine))
}

fn log<'a>(site: Site, path: &Path, share: &'a Share, now: Moment) -> Result<Read<'a>, SourceError> {
    let lines = LogLines::open(path, Some(site.name()), OPERATOR, now, share.since);
    let path = path.to_owned();
    let failed = move |source| SourceError::Log { path: path.clone(), source };
    let lines = lines.map_err(&failed)?;
    let mine = |read: &io::Result<(Moment, Event)>| {
        read.as_ref().map_or(true, |(moment, event)| share.has_line(*moment, event))
    };
    let mine = lines.filter(mine).map(move |read| read.map_err(&failed));
    Ok(Stream::numbering(Source::log(site.name(), OPERATOR), mine))
}

/// Name of the operator under test in histories.
const OPERATOR: &str = "operator";

/// A history that is written as its events come.
#[derive(Debug)]
pub struct HistoryFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl HistoryFile {
    /// Begins the history at `path` with `header`.
    pub fn create(path: &Path, header: &Header) -> Result<Self, ArtifactError> {
        let failed = |source| ArtifactError { path: path.to_owned(), source };
        let file = BufWriter::new(File::create(path).map_err(failed)?);
        let mut history = Self { path: path.to_owned(), file };
        history.line(header)?;
        Ok(history)
    }

    /// Writes the next event.
    pub fn append(&mut self, record: &Record) -> Result<(), ArtifactError> {
        self.line(record)
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), ArtifactError> {
        self.file.flush().map_err(|source| ArtifactError { path: self.path, source })
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), ArtifactError> {
        let written = serde_json::to_writer(&mut self.file, value).map_err(io::Error::from);
        let written = written.and_then(|()| self.file.write_all(b"\n"));
        written.map_err(|source| ArtifactError { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onewriter_history::{Journal, State, Step};
    use serde_json::json;
    use tempfile::TempDir;

    const LINE: &str =
        r#"{"timestamp":"2026-03-01T12:00:00Z","message":"layout write blocked","cluster":"MESH/garage"}"#;

    /// The sources of a pair in which two meshes were alive, each torn at its end.
    fn sources() -> (TempDir, PairDescription) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let torn = |name: &str| {
            let mut file = File::options().append(true).create(true).open(path(name)).unwrap();
            file.write_all(b"{\"seq\":9,\"at").unwrap();
        };
        let mut hub = Journal::create(path("hub.jsonl"), &Header::new("r"), Source::hub()).unwrap();
        let mut steps = Journal::create(path("steps.jsonl"), &Header::new("r"), Source::harness()).unwrap();
        for mesh in ["mine", "theirs"] {
            let (mesh, subject) = (Some(mesh.to_owned()), "node".to_owned());
            hub.append(Event::State(State { cell: None, mesh, subject, value: json!({}) })).unwrap();
        }
        let step = Step { cell: None, mesh: None, title: "s".to_owned(), detail: None };
        steps.append(Event::Step(step)).unwrap();
        std::fs::write(
            path("operator.log"),
            ["mine", "theirs"].map(|mesh| LINE.replace("MESH", mesh) + "\n").concat(),
        )
        .unwrap();
        for name in ["hub.jsonl", "steps.jsonl", "operator.log"] {
            torn(name);
        }
        let site = json!({"apiServer": "", "kubeconfig": "", "auditLog": path("no-audit.log"), "logs": {},
            "operator": {"program": "", "metrics": "", "log": path("operator.log")}});
        let pair = json!({"name": "p", "provider": "local", "dir": folder.path(), "versions": {},
            "durationsMs": {}, "sites": {"east": site, "west": site},
            "hub": {"control": "", "tokenFile": "", "journal": path("hub.jsonl"), "log": ""}});
        (folder, serde_json::from_value(pair).unwrap())
    }

    fn merged(cells: Option<BTreeSet<String>>) -> Vec<Record> {
        let (folder, pair) = sources();
        let long_ago = Moment { at: "2026-01-01T00:00:00Z".parse().unwrap(), mono_ns: 0 };
        let share = Share { since: long_ago, cells, has_lines: false };
        let merged = events(&pair, &folder.path().join("steps.jsonl"), &share, &|_, _| Vec::new()).unwrap();
        merged.collect::<Result<_, _>>().unwrap()
    }

    fn count(records: &[Record], source: &str) -> usize {
        records.iter().filter(|record| record.source.as_str() == source).count()
    }

    #[test]
    fn every_source_is_read_up_to_its_last_whole_line() {
        let records = merged(None);
        for (source, events) in
            [("hub", 2), ("harness", 1), ("log/east/operator", 2), ("log/west/operator", 2)]
        {
            assert_eq!(count(&records, source), events, "{source}");
        }
        assert!(records.iter().map(|record| record.seq).eq(1..=7));
    }

    #[test]
    fn of_a_pair_that_serves_others_only_the_runs_own_part_is_taken() {
        let records = merged(Some(["mine".to_owned()].into()));
        for (source, events) in [("hub", 1), ("harness", 1), ("log/east/operator", 1)] {
            assert_eq!(count(&records, source), events, "{source}");
        }
    }
}
