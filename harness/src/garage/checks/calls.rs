//! What a call is, and who makes it.

use std::sync::Arc;

use onewriter_history::{CallBegin, Event, Record};

/// The request that `record` is, if it is one.
#[must_use]
pub fn request(record: &Record) -> Option<&CallBegin> {
    match &record.event {
        Event::CallBegin(begin) => Some(begin),
        _ => None,
    }
}

/// The layout write that `record` is, if it is one, whatever its answer will be.
#[must_use]
pub fn layout_write(record: &Record) -> Option<&CallBegin> {
    request(record).filter(|call| call.layout_write)
}

/// The request that `record` is if a site made it, with the site.
#[must_use]
pub fn of_site(call: &CallBegin) -> Option<&str> {
    call.caller.as_deref().filter(|caller| !matches!(*caller, "harness" | "human"))
}

/// Whether Garage answers this request without asking for a token (Garage admin reference §1, special endpoints).
#[must_use]
pub fn needs_no_token(call: &CallBegin) -> bool {
    call.method == "OPTIONS" || matches!(call.path.as_str(), "/health" | "/metrics" | "/check")
}

/// The four layout writes (Garage admin reference §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// Stages changes.
    Update,
    /// Makes the staged changes the next version.
    Apply,
    /// Drops the staged changes.
    Revert,
    /// Counts nodes as caught up that are not.
    Skip,
}

impl Write {
    /// Which of them `call` is, also by its older paths.
    #[must_use]
    pub fn of(call: &CallBegin) -> Option<Self> {
        match call.path.as_str() {
            "/v2/UpdateClusterLayout" | "/v1/layout" | "/v0/layout" => Some(Self::Update),
            "/v2/ApplyClusterLayout" | "/v1/layout/apply" | "/v0/layout/apply" => Some(Self::Apply),
            "/v2/RevertClusterLayout" | "/v1/layout/revert" | "/v0/layout/revert" => Some(Self::Revert),
            "/v2/ClusterLayoutSkipDeadNodes" => Some(Self::Skip),
            _ => None,
        }
    }
}

/// A request that is still open, as checks remember it.
pub type Open = Arc<Record>;
