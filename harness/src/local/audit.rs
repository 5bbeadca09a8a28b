//! Reading an API server's audit log.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use onewriter_history::{Audit, Event, Moment, State};
use serde::Deserialize;
use serde_json::Value;

use super::error::LocalError;
use crate::site::Site;

/// What an audit log holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditLog {
    /// Its entries, in the file's order.
    pub events: Vec<(Moment, Event)>,
    /// Whether the last line has no end yet: the server is writing it, or was killed while it did.
    pub torn: bool,
}

/// An entry as the server writes it (`audit.k8s.io/v1`, Event), as far as a history wants it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: User,
    user_agent: Option<String>,
    object_ref: Option<ObjectRef>,
    response_status: Option<Status>,
    response_object: Option<Value>,
    stage_timestamp: Timestamp,
}

#[derive(Debug, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    api_group: Option<String>,
    subresource: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Status {
    code: Option<u16>,
}

/// Reads the audit log of `site` at `path`. A log that is not there yet has no entries.
///
/// Entries know wall time only; `now`, one moment on both clocks, places them on the other.
pub fn read(path: &Path, site: Site, now: &Moment) -> Result<AuditLog, LocalError> {
    let text = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(LocalError::File { action: "read", path: path.to_owned(), source }),
    };
    parse(&text, site, now).map_err(|(line, source)| LocalError::Audit {
        path: path.to_owned(),
        line,
        source,
    })
}

/// What a system under test wants to know of an entry and of the object that the server answered with.
pub type Facts<'a> = &'a dyn Fn(&Audit, &Value) -> Vec<State>;

/// The entries of an audit log, one at a time, each with `facts` about it after it, as state events of the same moment.
pub struct Entries<'a> {
    input: Option<BufReader<File>>,
    path: PathBuf,
    site: Site,
    now: Moment,
    facts: Facts<'a>,
    line: usize,
    ready: VecDeque<(Moment, Event)>,
}

impl std::fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<'a> Entries<'a> {
    /// Opens the audit log of `site` at `path`, as [`read`] would read it.
    pub fn open(path: &Path, site: Site, now: Moment, facts: Facts<'a>) -> Result<Self, LocalError> {
        let input = match File::open(path) {
            Ok(file) => Some(BufReader::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(LocalError::File { action: "read", path: path.to_owned(), source }),
        };
        Ok(Self { input, path: path.to_owned(), site, now, facts, line: 0, ready: VecDeque::new() })
    }

    /// Reads the next line that ends. The last one without an end is still being written, or torn.
    fn read_line(&mut self) -> Result<bool, LocalError> {
        let Some(input) = &mut self.input else { return Ok(false) };
        let mut line = Vec::new();
        let read = input.read_until(b'\n', &mut line);
        read.map_err(|source| LocalError::File { action: "read", path: self.path.clone(), source })?;
        if line.pop() != Some(b'\n') {
            self.input = None;
            return Ok(false);
        }
        self.line += 1;
        if !line.is_empty() {
            let events = events_of(&line, self.site, &self.now, self.facts);
            let (path, line) = (&self.path, self.line);
            self.ready.extend(events.map_err(|source| LocalError::Audit {
                path: path.clone(),
                line,
                source,
            })?);
        }
        Ok(true)
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<(Moment, Event), LocalError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            match self.read_line() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.input = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Reads the text of an audit log. What follows the last line end is a torn line, and no entry.
///
/// # Errors
/// The number of the first broken line, from 1, and what is wrong with it.
pub fn parse(text: &[u8], site: Site, now: &Moment) -> Result<AuditLog, (usize, serde_json::Error)> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut events = Vec::new();
    for (index, line) in text[..whole].split(|byte| *byte == b'\n').enumerate() {
        if !line.is_empty() {
            let read = events_of(line, site, now, &|_, _| Vec::new());
            events.extend(read.map_err(|error| (index + 1, error))?);
        }
    }
    Ok(AuditLog { events, torn: whole < text.len() })
}

/// The entry on a line, and what `facts` tells of it.
fn events_of(
    line: &[u8],
    site: Site,
    now: &Moment,
    facts: Facts<'_>,
) -> Result<Vec<(Moment, Event)>, serde_json::Error> {
    let mut entry: Entry = serde_json::from_slice(line)?;
    let moment = now.of_wall(entry.stage_timestamp);
    let object = entry.response_object.take();
    let audit = entry.into_audit(site);
    let known = object.map(|object| facts(&audit, &object)).unwrap_or_default();
    let mut events = vec![(moment, Event::Audit(audit))];
    events.extend(known.into_iter().map(|state| (moment, Event::State(state))));
    Ok(events)
}

impl Entry {
    fn into_audit(self, site: Site) -> Audit {
        let (resource, namespace, name) = self
            .object_ref
            .map_or((None, None, None), |object| (object.path(), object.namespace, object.name));
        Audit {
            site: site.name().to_owned(),
            audit_id: self.audit_id,
            stage: self.stage,
            user: self.user.username,
            user_agent: self.user_agent,
            verb: self.verb,
            uri: self.request_uri,
            resource,
            namespace,
            name,
            status: self.response_status.and_then(|status| status.code),
        }
    }
}

impl ObjectRef {
    /// `group/resource[/subresource]`; core resources have no group.
    fn path(&self) -> Option<String> {
        let parts = [self.api_group.as_deref(), self.resource.as_deref(), self.subresource.as_deref()];
        self.resource.as_ref()?;
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"a1","stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/ns/statefulsets/garage/status","verb":"patch","user":{"username":"system:serviceaccount:kube-system:statefulset-controller","groups":["system:authenticated"]},"sourceIPs":["127.0.0.1"],"userAgent":"kube-controller-manager/v1.36.3","objectRef":{"resource":"statefulsets","namespace":"ns","name":"garage","apiGroup":"apps","apiVersion":"v1","subresource":"status"},"responseStatus":{"metadata":{},"code":200},"requestObject":{"kind":"StatefulSet"},"requestReceivedTimestamp":"2026-03-01T12:00:00.000000Z","stageTimestamp":"2026-03-01T12:00:00.250000Z"}"#;

    fn now() -> Moment {
        Moment { at: "2026-03-01T12:00:01Z".parse().unwrap(), mono_ns: 5_000_000_000 }
    }

    #[test]
    fn an_entry_tells_who_did_what_to_which_object() {
        let log = parse(format!("{LINE}\n").as_bytes(), Site::West, &now()).unwrap();
        let (moment, Event::Audit(audit)) = &log.events[0] else { panic!("{log:?}") };
        assert_eq!(moment.mono_ns, 4_250_000_000);
        assert_eq!(audit.site, "west");
        assert_eq!(audit.user, "system:serviceaccount:kube-system:statefulset-controller");
        assert_eq!(audit.resource.as_deref(), Some("apps/statefulsets/status"));
        assert_eq!((audit.verb.as_str(), audit.status), ("patch", Some(200)));
        assert!(!log.torn);
    }

    #[test]
    fn a_core_resource_has_no_group() {
        let line = LINE.replace(r#""apiGroup":"apps","#, "").replace(r#","subresource":"status""#, "");
        let log = parse(format!("{line}\n").as_bytes(), Site::East, &now()).unwrap();
        let Event::Audit(audit) = &log.events[0].1 else { panic!("{log:?}") };
        assert_eq!(audit.resource.as_deref(), Some("statefulsets"));
    }

    #[test]
    fn a_last_line_without_an_end_is_torn_and_no_entry() {
        let text = format!("{LINE}\n{}", &LINE[..40]);
        let log = parse(text.as_bytes(), Site::East, &now()).unwrap();
        assert_eq!((log.events.len(), log.torn), (1, true));
    }

    #[test]
    fn a_broken_line_in_the_middle_is_an_error_that_names_it() {
        let text = format!("{LINE}\n{}\n{LINE}\n", &LINE[..40]);
        assert_eq!(parse(text.as_bytes(), Site::East, &now()).unwrap_err().0, 2);
    }

    #[test]
    fn facts_about_an_entry_follow_it_at_its_moment() {
        let line = LINE
            .replace(r#""responseStatus""#, r#""responseObject":{"kind":"StatefulSet"},"responseStatus""#);
        let kind = |audit: &Audit, object: &Value| {
            let mesh = audit.namespace.clone();
            vec![State { cell: None, mesh, subject: "kind".to_owned(), value: object["kind"].clone() }]
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        fs::write(&path, format!("{line}\n{{\"half")).unwrap();
        let entries = Entries::open(&path, Site::East, now(), &kind).unwrap();
        let events: Vec<_> = entries.collect::<Result<_, _>>().unwrap();
        let [(first, Event::Audit(_)), (second, Event::State(state))] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((first, state.value.as_str()), (second, Some("StatefulSet")));
    }

    #[test]
    fn a_log_that_is_not_there_yet_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            read(&folder.path().join("audit.jsonl"), Site::East, &now()).unwrap(),
            AuditLog::default()
        );
    }
}
