//! The smallest part of a history that shows a finding.

use std::fmt;

use onewriter_history::{Event, Record};
use serde::{Deserialize, Serialize};

/// The offending event with what surrounds it: the step it fell into and the calls just before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Witness {
    /// The offending event.
    pub event: Line,
    /// How it ended, for a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Line>,
    /// The step of the same cell that was under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Line>,
    /// The calls to the same mesh just before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Line>,
    /// The offending call, while its answer has not come.
    #[serde(skip)]
    pub(super) open_call: Option<u64>,
}

/// One event of a witness, with its place in the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Sequence number in the history.
    pub seq: u64,
    /// Wall time, as in the history.
    pub at: String,
    /// The event in words.
    pub text: String,
}

impl Line {
    /// The line of `record`.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        Self { seq: record.seq, at: record.at.to_string(), text: in_words(&record.event) }
    }
}

impl Witness {
    /// The witness whose offending event is `record`, during `step` and after the calls `before`.
    pub(super) fn new<'a>(
        record: &Record,
        step: Option<&Record>,
        before: impl Iterator<Item = &'a Record>,
    ) -> Self {
        let open_call = match &record.event {
            Event::CallBegin(begin) => Some(begin.call),
            _ => None,
        };
        Self {
            event: Line::of(record),
            answer: None,
            step: step.map(Line::of),
            before: before.map(Line::of).collect(),
            open_call,
        }
    }

    /// The same with its answer, if `record` is that.
    pub(super) fn answered_by(mut self, record: &Record) -> Self {
        if let Event::CallEnd(end) = &record.event
            && self.open_call == Some(end.call)
        {
            self.answer = Some(Line::of(record));
            self.open_call = None;
        }
        self
    }
}

/// An event as a line for people.
#[must_use]
pub fn in_words(event: &Event) -> String {
    match event {
        Event::CallBegin(call) => {
            let caller = call.caller.as_deref().unwrap_or("nobody known");
            let token = call.token.as_deref().unwrap_or("no known token");
            let query = call.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
            let body = call.body.as_ref().map(|body| format!(" {body}")).unwrap_or_default();
            format!(
                "{caller} ({token}) → node {} at {}: {} {}{query}{body} [layout v{}]",
                call.node, call.target, call.method, call.path, call.layout_version
            )
        }
        Event::CallEnd(end) => {
            let status = end.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
            let error = end.error.as_ref().map(|error| format!(" {error}")).unwrap_or_default();
            format!("answered {status}{error} [layout v{}]", end.layout_version)
        }
        Event::Step(step) => step.title.clone(),
        Event::Fault(fault) => format!("{} {}", fault.action, fault.target),
        Event::Audit(audit) => format!("{} at {}: {} {}", audit.user, audit.site, audit.verb, audit.uri),
        Event::State(state) => format!("{}: {}", state.subject, state.value),
        Event::Log(log) => format!("{}: {}", log.program, log.line),
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} {}", self.seq, self.at, self.text)
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = &self.step {
            writeln!(f, "  during  {step}")?;
        }
        for line in &self.before {
            writeln!(f, "  before  {line}")?;
        }
        write!(f, "  here →  {}", self.event)?;
        if let Some(answer) = &self.answer {
            write!(f, "\n  answer  {answer}")?;
        }
        Ok(())
    }
}
