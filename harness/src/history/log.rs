//! A program's log as a source of a history.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use jiff::Timestamp;
use onewriter_history::{Event, Log, Moment};
use serde::Deserialize;

/// Longer lines are cut: a log line is for people.
const LONGEST: usize = 16 << 10;

/// The lines of a program's log, one at a time, each at the moment that it names.
///
/// A line names its moment as `timestamp` (or `ts`, or `time`) in a JSON object, or as its first word. One that names none
/// has that of the line before it; lines before the first that does are taken to be of the moment at which reading began.
#[derive(Debug)]
pub struct LogLines {
    input: Option<BufReader<File>>,
    site: Option<String>,
    program: String,
    now: Moment,
    last: Moment,
}

/// Where a structured line may say when it was written.
#[derive(Deserialize)]
struct Stamp {
    #[serde(alias = "ts", alias = "time")]
    timestamp: Timestamp,
}

impl LogLines {
    /// Opens the log of `program` at `path`. One that is not there yet has no lines. Lines know wall time only; `now`, one
    /// moment on both clocks, places them on the other. `since` is when those were written that name no moment.
    pub fn open(
        path: &Path,
        site: Option<&str>,
        program: &str,
        now: Moment,
        since: Moment,
    ) -> io::Result<Self> {
        let input = match File::open(path) {
            Ok(file) => Some(BufReader::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { input, site: site.map(str::to_owned), program: program.to_owned(), now, last: since })
    }

    fn read(&mut self) -> io::Result<Option<(Moment, Event)>> {
        let Some(input) = &mut self.input else { return Ok(None) };
        let mut bytes = Vec::new();
        // What has no end yet is still being written.
        if input.read_until(b'\n', &mut bytes)? == 0 || bytes.pop() != Some(b'\n') {
            self.input = None;
            return Ok(None);
        }
        bytes.truncate(LONGEST);
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if let Some(at) = moment_of(&line) {
            self.last = self.now.of_wall(at);
        }
        let (site, program) = (self.site.clone(), self.program.clone());
        Ok(Some((self.last, Event::Log(Log { site, program, line }))))
    }
}

fn moment_of(line: &str) -> Option<Timestamp> {
    if line.starts_with('{') {
        return serde_json::from_str::<Stamp>(line).ok().map(|stamp| stamp.timestamp);
    }
    line.split_whitespace().next()?.parse().ok()
}

impl Iterator for LogLines {
    type Item = io::Result<(Moment, Event)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(u64, String)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("operator.log");
        std::fs::write(&path, text).unwrap();
        let now = Moment { at: "2026-03-01T12:00:10Z".parse().unwrap(), mono_ns: 10_000_000_000 };
        let since = Moment { at: "2026-03-01T12:00:00Z".parse().unwrap(), mono_ns: 0 };
        let read = LogLines::open(&path, Some("east"), "operator", now, since).unwrap();
        let line = |read: io::Result<(Moment, Event)>| match read.unwrap() {
            (moment, Event::Log(log)) => (moment.mono_ns, log.line),
            other => panic!("{other:?}"),
        };
        read.map(line).collect()
    }

    #[test]
    fn every_line_is_of_the_moment_that_it_names_or_of_the_one_before() {
        let text = "panic before anything\n{\"timestamp\":\"2026-03-01T12:00:01.5Z\",\"message\":\"m\"}\n  at x\n\
                    2026-03-01T12:00:02Z INFO text\n{\"message\":\"no moment\"}\nhalf a li";
        let moments: Vec<u64> = lines(text).into_iter().map(|(moment, _)| moment).collect();
        assert_eq!(moments, [0, 1_500_000_000, 1_500_000_000, 2_000_000_000, 2_000_000_000]);
    }

    #[test]
    fn a_log_that_is_not_there_yet_has_no_lines() {
        let now = Moment::now();
        let mut read = LogLines::open(Path::new("/no/such.log"), None, "operator", now, now).unwrap();
        assert!(read.next().is_none());
    }
}
