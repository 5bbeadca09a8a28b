//! Events as whoever writes them has them: owned, or as borrowed parts.

use serde_json::Value;

use crate::{CallBegin, CallEnd, Event};

/// Something to append to a history.
///
/// Calls are what a busy history is made of, so they can be told in parts that stand elsewhere: nothing is copied but
/// into the line.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A request reached a node's admin API.
    Begin(Beginning<'a>),
    /// A node answered, or the caller went away before it could.
    End(Ending<'a>),
    /// Anything.
    Event(Event),
}

impl From<Event> for Entry<'_> {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

/// A [`CallBegin`] in borrowed parts; its fields say what they are.
#[expect(missing_docs, reason = "each field is the field of that name there")]
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    pub call: u64,
    pub mesh: &'a str,
    pub caller: Option<&'a str>,
    pub target: &'a str,
    pub node: &'a str,
    pub node_id: &'a str,
    pub incarnation: u64,
    pub token: Option<&'a str>,
    pub method: &'a str,
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub host: Option<&'a str>,
    pub body: Option<&'a Value>,
    pub layout_write: bool,
    pub layout_version: u64,
    pub layout_digest: &'a str,
}

impl<'a> From<&'a CallBegin> for Beginning<'a> {
    fn from(begin: &'a CallBegin) -> Self {
        Self {
            call: begin.call,
            mesh: &begin.mesh,
            caller: begin.caller.as_deref(),
            target: &begin.target,
            node: &begin.node,
            node_id: &begin.node_id,
            incarnation: begin.incarnation,
            token: begin.token.as_deref(),
            method: &begin.method,
            path: &begin.path,
            query: begin.query.as_deref(),
            host: begin.host.as_deref(),
            body: begin.body.as_ref(),
            layout_write: begin.layout_write,
            layout_version: begin.layout_version,
            layout_digest: &begin.layout_digest,
        }
    }
}

/// A [`CallEnd`] in borrowed parts; its fields say what they are.
#[expect(missing_docs, reason = "each field is the field of that name there")]
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    pub call: u64,
    pub status: Option<u16>,
    pub answer_digest: Option<&'a str>,
    pub error: Option<&'a str>,
    pub incarnation: u64,
    pub layout_version: u64,
    pub layout_digest: &'a str,
}

impl<'a> From<&'a CallEnd> for Ending<'a> {
    fn from(end: &'a CallEnd) -> Self {
        Self {
            call: end.call,
            status: end.status,
            answer_digest: end.answer_digest.as_deref(),
            error: end.error.as_deref(),
            incarnation: end.incarnation,
            layout_version: end.layout_version,
            layout_digest: &end.layout_digest,
        }
    }
}
