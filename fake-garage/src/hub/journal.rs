//! What the hub records, in one total order.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use onewriter_history::{
    Beginning, Ending, Entry, Event, Fault, Journal, LayoutEventName, LayoutState, Log, SharedJournal, State,
    WriteError,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::rule::Intervention;
use crate::admin::route::{is_layout_write, may_hold_secret};
use crate::admin::{LayoutMark, Request, Response};
use crate::layout::LayoutEvent;
use crate::mesh::{HeldContent, Node, Process};

/// Bodies beyond this many bytes are not recorded.
const LARGEST_BODY: usize = 1 << 20;

/// How often others have their turn before a thread waits for one that writes.
const TURNS: u8 = 16;

/// The history that a hub writes. Once it cannot be written, the hub ends: nothing may happen unrecorded.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    path: PathBuf,
    /// None where nothing is recorded.
    journal: Option<SharedJournal>,
    failure: Mutex<Option<WriteError>>,
    failed: CancellationToken,
}

impl Recorder {
    /// Records into `journal`, by `clock`.
    #[must_use]
    pub fn new(journal: Journal, clock: Clock) -> Self {
        let path = journal.path().to_owned();
        Self { journal: Some(journal.into()), ..Self::silent(path, clock) }
    }

    /// Records nothing; the history would be at `path`.
    #[must_use]
    pub fn silent(path: PathBuf, clock: Clock) -> Self {
        Self { clock, path, journal: None, failure: Mutex::new(None), failed: CancellationToken::new() }
    }

    /// What time the history goes by.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Cancelled once the history cannot be written any more.
    #[must_use]
    pub const fn failed(&self) -> &CancellationToken {
        &self.failed
    }

    /// Why the history cannot be written any more.
    pub fn take_failure(&self) -> Option<WriteError> {
        self.failure().take()
    }

    fn failure(&self) -> MutexGuard<'_, Option<WriteError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The history's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives an event its place in the order. [`Recorder::flush`] comes before anybody is told of it.
    pub fn enqueue(&self, event: impl FnOnce() -> Event) {
        if self.goes_on() {
            self.add(Entry::Event(event()));
        }
    }

    fn goes_on(&self) -> bool {
        self.journal.is_some() && !self.failed.is_cancelled()
    }

    /// The place that the entry got; 0 where nothing is recorded.
    fn add(&self, entry: Entry<'_>) -> u64 {
        let Some(journal) = &self.journal else { return 0 };
        journal.enqueue(|| self.clock.moment(), entry).map_err(|error| self.fail(error)).unwrap_or(0)
    }

    /// As [`Recorder::enqueue`], for the beginning of a call.
    pub fn call_begins(&self, call: u64, mesh: &str, node: &Node, request: &Request, host: Option<&str>) {
        if !self.goes_on() {
            return;
        }
        let body = recordable_body(request);
        self.add(Entry::Begin(Beginning {
            call,
            mesh,
            caller: request.origin.caller.as_deref(),
            target: &node.config().site,
            node: &node.config().name,
            node_id: node.id().spell(&mut [0; 64]),
            incarnation: node.incarnation(),
            token: request.origin.token.as_deref(),
            method: &request.method,
            path: &request.path,
            query: request.query.as_deref(),
            host,
            body: body.as_ref(),
            layout_write: is_layout_write(&request.method, &request.path),
            layout_version: node.layout().current().number,
            layout_digest: node.layout_digest(),
        }));
    }

    /// As [`Recorder::enqueue`], for the end of a call; without a response nothing was sent. Gives its place.
    pub fn call_ends(&self, call: u64, response: Option<&Response>, after: &LayoutMark) -> u64 {
        if !self.goes_on() {
            return 0;
        }
        self.add(Entry::End(Ending {
            call,
            status: response.map(|response| response.status),
            answer_digest: response.map(|response| response.body.digest()),
            error: response.and_then(|response| response.error.as_deref()),
            incarnation: after.incarnation,
            layout_version: after.version,
            layout_digest: &after.digest,
        }))
    }

    /// Hands everything that has a place in the order to the kernel. Returns whether the history goes on.
    pub fn flush(&self) -> bool {
        let Some(journal) = &self.journal else { return true };
        if self.failed.is_cancelled() {
            return false;
        }
        journal.flush().map_err(|error| self.fail(error)).is_ok()
    }

    /// As [`Recorder::flush`] for what has the place `seq`. Others have their turn first, and while another thread
    /// writes: what they have to say goes into the same write.
    pub async fn flushed(&self, seq: u64) -> bool {
        let Some(journal) = &self.journal else { return true };
        for _ in 0..TURNS {
            // Whoever is ready to be answered now, too, goes into the same write.
            tokio::task::yield_now().await;
            if self.failed.is_cancelled() {
                return false;
            }
            match journal.try_flush(seq) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => {
                    self.fail(error);
                    return false;
                }
            }
        }
        // A write that takes so long is a slow disk; there is no point in being busy meanwhile.
        self.flush()
    }

    /// Appends an event that is in the file afterwards.
    pub fn record(&self, event: Event) {
        self.enqueue(|| event);
        self.flush();
    }

    /// Ends the history: nothing is recorded any more, and so nobody is answered any more.
    pub fn end(&self) {
        let Some(journal) = self.journal.as_ref().filter(|_| self.goes_on()) else { return };
        if let Err(error) = journal.end(|| self.clock.moment()) {
            self.fail(error);
        }
    }

    fn fail(&self, error: WriteError) {
        self.failure().get_or_insert(error);
        self.failed.cancel();
    }
}

/// The body of a request, unless it may hold a secret or is no JSON.
fn recordable_body(request: &Request) -> Option<serde_json::Value> {
    let recordable =
        !request.body.is_empty() && request.body.len() <= LARGEST_BODY && !may_hold_secret(&request.path);
    recordable.then(|| serde_json::from_slice(&request.body).ok()).flatten()
}

/// Something that happened to a node's layout.
#[must_use]
pub fn layout_event(mesh: &str, node: &Node, event: LayoutEvent, held: &HeldContent) -> Event {
    let current = node.layout().current().number;
    let (event, from, to, other) = match event {
        LayoutEvent::Applied { from, to } => (LayoutEventName::Applied, from, to, None),
        LayoutEvent::Merged { from, to } => (LayoutEventName::Merged, from, to, None),
        LayoutEvent::Replaced { from, to } => (LayoutEventName::Replaced, from, to, None),
        LayoutEvent::Conflict { version, other } => {
            (LayoutEventName::Conflict, version, version, Some(other))
        }
        LayoutEvent::Dropped { version, other } => (LayoutEventName::Dropped, version, version, Some(other)),
        LayoutEvent::Retired { version } => (LayoutEventName::Retired, version, version, None),
        LayoutEvent::Reverted => (LayoutEventName::Reverted, current, current, None),
        LayoutEvent::Reset { from } => (LayoutEventName::Reset, from, 0, None),
    };
    let value = LayoutState {
        node: node.config().name.clone(),
        node_id: node.id().to_string(),
        incarnation: node.incarnation(),
        event,
        from,
        to,
        content: held.content.to_string(),
        other_content: other.map(|other| other.to_string()),
        layout_digest: held.layout.clone(),
    };
    let value = serde_json::to_value(value).unwrap_or_default();
    Event::State(State { cell: None, mesh: Some(mesh.to_owned()), subject: "layout".to_owned(), value })
}

/// A process that started or ended.
#[must_use]
pub fn process_event(mesh: &str, node: &Node, process: Process, resumed: bool) -> Event {
    let name = match process {
        Process::Running if resumed => "resumed",
        Process::Running => "started",
        Process::Frozen => "frozen",
        Process::Ended { code: None } => "killed",
        Process::Ended { code: Some(0) } => "stopped",
        Process::Ended { code: Some(_) } => "exited",
    };
    let value = json!({
        "node": node.config().name,
        "nodeId": node.id(),
        "event": name,
        "address": node.config().address,
    });
    Event::State(State { cell: None, mesh: Some(mesh.to_owned()), subject: "node".to_owned(), value })
}

/// A line of a node's log.
#[must_use]
pub fn log_event(node: &Node, line: String) -> Event {
    let config = node.config();
    Event::Log(Log { site: Some(config.site.clone()), program: format!("garage {}", config.name), line })
}

/// A line of the hub's own log that whoever reads the history should see.
#[must_use]
pub fn hub_log(line: String) -> Event {
    Event::Log(Log { site: None, program: "hub".to_owned(), line })
}

/// A rule acts on a call.
#[must_use]
pub fn intervention_event(mesh: &str, node: &str, call: u64, intervention: &Intervention) -> Event {
    let detail = serde_json::json!({"rule": intervention.rule, "call": call, "effect": intervention.effect});
    fault_event(mesh, "call", node, Some(detail))
}

/// A fault that was asked for through the control API.
#[must_use]
pub fn fault_event(mesh: &str, action: &str, target: &str, detail: Option<serde_json::Value>) -> Event {
    Event::Fault(Fault {
        cell: None,
        mesh: Some(mesh.to_owned()),
        action: action.to_owned(),
        target: target.to_owned(),
        detail,
    })
}
