//! The run's history out of its sources.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use onewriter_history::{Event, Header, History, Moment, ReadError, Record, Source};

use super::directory::ArtifactError;
use crate::checks::whole::seal;
use crate::history::{Stream, merge};
use crate::local::LocalError;
use crate::local::audit::Facts;
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
}

/// What of a pair's sources belongs to a run.
#[derive(Debug, Clone)]
pub struct Share {
    /// When the run began.
    pub since: Moment,
    /// Meshes and namespaces of the run's cells. None: the pair is the run's own, everything belongs to it.
    pub cells: Option<BTreeSet<String>>,
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
}

/// Reads the hub's journal, the harness's own, and both audit logs with what `facts` tells of them, and puts them into
/// one order.
pub fn assemble(
    header: Header,
    pair: &PairDescription,
    steps: &Path,
    share: &Share,
    facts: Facts<'_>,
) -> Result<History, SourceError> {
    let mut streams = vec![hub(&pair.hub.journal, share)?, harness(steps)?];
    for site in Site::ALL {
        streams.push(audit(site, &pair.sites.at(site).audit_log, share, facts)?);
    }
    Ok(sealed(merge(header, streams)))
}

/// Ends a history that has everything in it.
fn sealed(mut history: History) -> History {
    let events = history.records.len() as u64;
    let now = Moment::now();
    history.records.push(Record {
        seq: events + 1,
        at: now.at,
        mono_ns: now.mono_ns,
        source: Source::merge(),
        source_seq: 1,
        event: seal(events),
    });
    history
}

fn hub(path: &Path, share: &Share) -> Result<Stream, SourceError> {
    let journal = read(path)?;
    if share.cells.is_none() {
        return Ok(Stream::of_history(Source::hub(), journal));
    }
    // The answers have no mesh of their own: they belong to whom their requests belong to.
    let mut calls = BTreeSet::new();
    let mine = journal.records.into_iter().filter(|record| match &record.event {
        Event::CallEnd(end) => calls.contains(&end.call),
        Event::CallBegin(begin) if share.has_record(record) => calls.insert(begin.call),
        _ => share.has_record(record),
    });
    Ok(Stream::of_events(
        Source::hub(),
        mine.map(|record| (record.moment(), record.event)).collect::<Vec<_>>(),
    ))
}

fn harness(path: &Path) -> Result<Stream, SourceError> {
    Ok(Stream::of_history(Source::harness(), read(path)?))
}

fn read(path: &Path) -> Result<History, SourceError> {
    History::read_live(path).map_err(|source| SourceError::Journal { path: path.to_owned(), source })
}

fn audit(site: Site, path: &Path, share: &Share, facts: Facts<'_>) -> Result<Stream, SourceError> {
    let log = crate::local::audit::read_with(path, site, &Moment::now(), facts)?;
    let mine = log.events.into_iter().filter(|(moment, event)| share.has_audit(*moment, event));
    Ok(Stream::of_events(Source::audit(site.name()), mine.collect::<Vec<_>>()))
}

/// Writes a merged history to `path`.
pub fn write(path: &Path, history: &History) -> Result<(), ArtifactError> {
    let failed = |source: io::Error| ArtifactError { path: path.to_owned(), source };
    let mut file = io::BufWriter::new(fs::File::create(path).map_err(failed)?);
    let mut line = |value: serde_json::Result<String>| -> io::Result<()> { writeln!(file, "{}", value?) };
    line(serde_json::to_string(&history.header)).map_err(failed)?;
    for record in &history.records {
        line(serde_json::to_string(record)).map_err(failed)?;
    }
    file.flush().map_err(failed)
}
