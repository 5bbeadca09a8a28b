//! Rules as they come and go, which the history tells.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::fault::Why;
use super::journal::fault_event;
use super::rule::RuleRequest;
use super::shared::Shared;

impl Shared {
    /// Adds a rule, records it, and gives its number. One that has a time ends when that is over.
    pub(super) fn add_rule(self: &Arc<Self>, request: &RuleRequest) -> u64 {
        let expires = request.expires_ms.map(Duration::from_millis);
        let mut detail = serde_json::to_value(request).unwrap_or_default();
        let id = self.rules.add(request.clone());
        detail["rule"] = id.into();
        self.record_rule(request, "rule", detail);
        if let Some(after) = expires {
            let shared = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                if let Some(shared) = shared.upgrade() {
                    shared.remove_rule(id, Why::Expired);
                }
            });
        }
        id
    }

    /// Removes a rule and records that. Returns whether there was one.
    pub(super) fn remove_rule(&self, id: u64, why: Why) -> bool {
        let Some(request) = self.rules.remove(id) else { return false };
        self.record_rule(&request, "rule-removed", json!({"rule": id, "why": why.name()}));
        true
    }

    /// Lets the calls go on that a rule holds, and records that. Returns whether there was such a rule.
    pub(super) fn release_rule(&self, id: u64) -> bool {
        let Some(request) = self.rules.get(id) else { return false };
        self.record_rule(&request, "rule-released", json!({ "rule": id }));
        self.rules.release(id)
    }

    fn record_rule(&self, request: &RuleRequest, action: &str, detail: Value) {
        let (mesh, node) = (request.pattern.mesh.as_deref(), request.pattern.node.as_deref());
        let event = fault_event(mesh.unwrap_or("*"), action, node.unwrap_or("*"), Some(detail));
        self.recorder.record(event);
    }
}

/// A rule that is removed when this is dropped.
#[derive(Debug)]
#[must_use = "the rule ends when this is dropped"]
pub struct RuleGuard {
    shared: Arc<Shared>,
    id: u64,
}

impl RuleGuard {
    /// Adds a rule for as long as the guard lives.
    pub fn new(shared: &Arc<Shared>, request: &RuleRequest) -> Self {
        Self { shared: Arc::clone(shared), id: shared.add_rule(request) }
    }

    /// Lets the calls go on that the rule holds.
    pub fn release(&self) {
        self.shared.release_rule(self.id);
    }
}

impl Drop for RuleGuard {
    fn drop(&mut self) {
        // One that has expired is gone.
        self.shared.remove_rule(self.id, Why::Dropped);
    }
}
