//! The API servers' audit logs as a source of the history.

use std::io;

use jiff::Timestamp;
use onewriter_history::Audit;
use serde::Deserialize;

/// Reads an audit log of `site`: JSON lines of `audit.k8s.io/v1`. A last line without its end is still being written,
/// and is left out.
///
/// # Errors
/// When a whole line is no audit event.
pub fn parse(site: &str, text: &str) -> io::Result<Vec<(Timestamp, Audit)>> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().enumerate().filter(|(_, line)| !line.is_empty());
    lines.map(|(index, line)| entry(site, line).map_err(|error| at_line(index + 1, &error))).collect()
}

fn entry(site: &str, line: &str) -> serde_json::Result<(Timestamp, Audit)> {
    let entry: Entry = serde_json::from_str(line)?;
    let object = entry.object_ref.unwrap_or_default();
    let audit = Audit {
        site: site.to_owned(),
        audit_id: entry.audit_id,
        stage: entry.stage,
        user: entry.user.username,
        user_agent: entry.user_agent,
        verb: entry.verb,
        uri: entry.request_uri,
        resource: object.resource(),
        namespace: object.namespace,
        name: object.name,
        status: entry.response_status.and_then(|status| status.code),
    };
    Ok((entry.stage_timestamp, audit))
}

fn at_line(line: usize, error: &serde_json::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is no audit event: {error}"))
}

/// The parts of an `audit.k8s.io/v1` Event that a history keeps.
#[derive(Deserialize)]
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
    response_status: Option<ResponseStatus>,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    api_group: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

impl ObjectRef {
    /// `group/resource/subresource`, as far as they are there.
    fn resource(&self) -> Option<String> {
        let parts = [&self.api_group, &self.resource, &self.subresource];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        self.resource.as_ref().map(|_| parts.join("/"))
    }
}

#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"a-1","stage":"ResponseComplete","requestURI":"/apis/garage.rajsingh.info/v1beta2/namespaces/ns/garageclusters/garage/status","verb":"patch","user":{"username":"system:serviceaccount:s:o"},"objectRef":{"resource":"garageclusters","namespace":"ns","name":"garage","apiGroup":"garage.rajsingh.info","subresource":"status"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-29T10:00:00.000001Z","stageTimestamp":"2026-11-29T10:00:00.000002Z"}"#;

    #[test]
    fn an_entry_keeps_who_did_what_to_which_object() {
        let parsed = parse("east", &format!("{LINE}\n")).unwrap();
        let (at, audit) = &parsed[0];
        assert_eq!(at.to_string(), "2026-11-29T10:00:00.000002Z");
        assert_eq!(audit.resource.as_deref(), Some("garage.rajsingh.info/garageclusters/status"));
        assert_eq!((audit.verb.as_str(), audit.status), ("patch", Some(200)));
    }

    #[test]
    fn a_line_that_is_still_being_written_is_left_out() {
        let text = format!("{LINE}\n{}", &LINE[..40]);
        assert_eq!(parse("east", &text).unwrap().len(), 1);
    }

    #[test]
    fn a_garbled_line_is_named() {
        let error = parse("east", &format!("{LINE}\nnonsense\n")).unwrap_err();
        assert!(error.to_string().starts_with("line 2 is no audit event"), "{error}");
    }
}
