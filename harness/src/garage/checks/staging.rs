//! Staged changes do not vanish.

use std::collections::BTreeMap;

use onewriter_history::{CallBegin, Event, Record};

use super::calls::{layout_write, request};
use super::layouts::{Happened, Layouts, Pending};
use super::roles::Roles;
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};

/// A change that was staged and answered 200 vanishes only by an apply or revert of a writer that had seen it.
///
/// A writer has seen what it staged itself, and what it read afterwards from the node that has it. Where it read another
/// node only, nobody can tell. A change that is lost to its own writer's apply at another node is noted: it was answered
/// 200 all the same.
#[derive(Debug, Clone, Copy)]
pub struct StagedChangesKept;

impl Check for StagedChangesKept {
    fn name(&self) -> &'static str {
        "staged-changes-kept"
    }

    fn claim(&self) -> &'static str {
        "a staged change vanishes only by an apply or revert of a writer that had seen it"
    }

    fn needs(&self) -> &'static str {
        "bodies of stagings, reads of the layout, layout events"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Staging::default())
    }
}

#[derive(Default)]
struct Staging {
    roles: Roles,
    layouts: Layouts,
    /// When each caller last began a read that was answered, by mesh, caller and node.
    reads: BTreeMap<String, BTreeMap<String, BTreeMap<String, u64>>>,
}

impl Judge for Staging {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        self.read(seen);
        let Some((mesh, happened)) = self.layouts.take(seen.record) else { return };
        match happened {
            Happened::Taken { call: Some(call), applied, pending } => {
                let lost = pending.values().find_map(|pending| self.unseen(&call, pending));
                if let (Some(finding), Some(call)) = (lost, layout_write(&call)) {
                    found.add(self.taken(call, applied, finding, seen));
                }
            }
            Happened::Received { lost, by, .. } => {
                for pending in &lost {
                    self.lost(&mesh, pending, by.as_deref(), seen, found);
                }
            }
            Happened::Clashed { version, dropped: true } => {
                let message = format!(
                    "an apply of layout version {version} was answered 200 and then dropped: another version of \
                     that number was there first"
                );
                found.add(Finding::violation(self.roles.cell(&mesh), message, seen.witness()));
            }
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.roles.forget(mesh);
        self.layouts.forget(mesh);
        self.reads.remove(mesh);
    }
}

/// A staging that another writer took without having seen it.
struct Unseen {
    by: String,
    seq: u64,
    certain: bool,
}

impl Staging {
    /// A read of the layout counts from its beginning on, once it is answered.
    fn read(&mut self, seen: &Seen<'_>) {
        let Event::CallEnd(end) = &seen.record.event else { return };
        let Some(begun) = seen.begun.filter(|_| end.status == Some(200)) else { return };
        let reads = |call: &&CallBegin| {
            call.method == "GET" && matches!(call.path.as_str(), "/v2/GetClusterLayout" | "/v1/layout")
        };
        if let Some(call) = request(begun).filter(reads) {
            self.remember(call, begun.seq);
        }
    }

    fn remember(&mut self, call: &CallBegin, seq: u64) {
        let Some(caller) = &call.caller else { return };
        let known = self.reads.get_mut(&call.mesh).and_then(|callers| callers.get_mut(caller));
        if let Some(last) = known.and_then(|nodes| nodes.get_mut(&call.node_id)) {
            *last = seq;
            return;
        }
        let callers = self.reads.entry(call.mesh.clone()).or_default();
        callers.entry(caller.clone()).or_default().insert(call.node_id.clone(), seq);
    }

    fn unseen(&self, taker: &Record, pending: &Pending) -> Option<Unseen> {
        let (taker, stager) = (layout_write(taker)?, layout_write(&pending.call)?);
        let (by, who) = (stager.caller.clone()?, taker.caller.as_ref()?);
        if by == *who {
            return None;
        }
        let reads = self.reads.get(&taker.mesh).and_then(|callers| callers.get(who));
        let since = |seq: &u64| *seq > pending.answered;
        if reads.and_then(|reads| reads.get(&stager.node_id)).is_some_and(since) {
            return None;
        }
        let certain = !reads.is_some_and(|reads| reads.values().any(since));
        Some(Unseen { by, seq: pending.call.seq, certain })
    }

    fn taken(&self, taker: &CallBegin, applied: bool, lost: Unseen, seen: &Seen<'_>) -> Finding {
        let who = taker.caller.as_deref().unwrap_or("nobody known");
        let what = if applied { "applied" } else { "reverted" };
        let Unseen { by, seq, certain } = lost;
        let cell = self.roles.cell(&taker.mesh);
        let mut message = format!("{who} {what} the layout, and never saw what {by} had staged at #{seq}");
        if certain {
            return Finding::violation(cell, message, seen.witness());
        }
        message += " at the node that has it: whether it saw it at another one cannot be told";
        Finding::unknown(cell, message, seen.witness())
    }

    fn lost(&self, mesh: &str, lost: &Pending, by: Option<&str>, seen: &Seen<'_>, found: &mut Found) {
        let Some(stager) = layout_write(&lost.call) else { return };
        let who = stager.caller.as_deref();
        let message = format!(
            "what {} staged at #{} at node {} was answered 200 and vanished with a version that {} made elsewhere",
            who.unwrap_or("nobody known"),
            lost.call.seq,
            stager.node,
            by.unwrap_or("nobody known"),
        );
        let cell = self.roles.cell(mesh);
        if who == by {
            found.note(Finding::unknown(cell, message, seen.witness_of(&lost.call)));
        } else {
            found.add(Finding::violation(cell, message, seen.witness_of(&lost.call)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, ExampleCall, call, judged, layout, role};
    use super::*;
    use crate::checks::Severity;

    fn stage(site: &str, node: &str) -> ExampleCall {
        call(site).node(node).update(&[role("n1", "east", 10)])
    }

    fn applied(example: Example, site: &str, node: &str) -> Example {
        example
            .call_with(call(site).node(node).write("/v2/ApplyClusterLayout"), &layout(node, "applied", 0, 1))
    }

    #[test]
    fn a_writer_may_apply_what_it_staged_itself_wherever_it_is() {
        let example = applied(Example::new().call(stage("east", "a")), "east", "b");
        assert_eq!(judged(&StagedChangesKept, &example), []);
    }

    #[test]
    fn who_applies_what_another_staged_without_looking_loses_it() {
        let example = applied(Example::new().call(stage("east", "a")), "west", "b");
        let findings = judged(&StagedChangesKept, &example);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Violation);
    }

    #[test]
    fn a_read_of_the_node_that_has_it_is_seeing_it_and_of_another_may_be() {
        let read = |node| {
            let read = call("west").node(node).get("/v2/GetClusterLayout");
            judged(
                &StagedChangesKept,
                &applied(Example::new().call(stage("east", "a")).call(read), "west", "b"),
            )
        };
        assert_eq!(read("a"), []);
        assert_eq!(read("b")[0].severity, Severity::Unknown);
    }

    #[test]
    fn a_revert_by_who_had_not_seen_it_counts_as_well() {
        let revert = call("west").node("b").write("/v2/RevertClusterLayout");
        let example = Example::new().call(stage("east", "a")).call(revert);
        assert_eq!(judged(&StagedChangesKept, &example).len(), 1);
    }

    #[test]
    fn a_staging_that_a_foreign_version_swallows_is_lost() {
        let example = applied(Example::new(), "west", "b")
            .call(stage("east", "a"))
            .layout(&layout("a", "replaced", 0, 1));
        let findings = judged(&StagedChangesKept, &example);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("vanished"), "{}", findings[0].message);
    }

    #[test]
    fn an_apply_that_was_answered_and_dropped_is_a_lost_update() {
        let example = Example::new().layout(&layout("a", "dropped", 1, 1));
        assert_eq!(judged(&StagedChangesKept, &example).len(), 1);
    }
}
