//! A consumed annotation has no later effect.

use std::collections::BTreeMap;

use onewriter_history::{Event, State};

use super::calls::{Write, layout_write, of_site};
use super::standing::{Standing, Standings};
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};
use crate::garage::facts::{ClusterFact, Fact};

/// What an annotation asked for does not happen once the annotation is consumed: neither a second time at a Writer, nor
/// at a Follower that is promoted later (design record, deviations: blocked annotations are consumed).
///
/// Judged for `revert-layout`, `skip-dead-nodes` and `purge-cluster-layout`. A Writer that takes the annotation away first
/// may carry it out once afterwards; a purge takes each node in turn. What the harness wipes or purges itself is no
/// operator's doing.
#[derive(Debug, Clone, Copy)]
pub struct AnnotationsFireOnce;

impl Check for AnnotationsFireOnce {
    fn name(&self) -> &'static str {
        "consumed-annotations-stay-silent"
    }

    fn claim(&self) -> &'static str {
        "a consumed annotation has no later effect"
    }

    fn needs(&self) -> &'static str {
        "the annotations of GarageClusters over time, and layout writes"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Annotations::default())
    }
}

#[derive(Default)]
struct Annotations {
    standings: Standings,
    /// By mesh, site and operation.
    asked: BTreeMap<String, BTreeMap<String, BTreeMap<&'static str, Asked>>>,
    /// When the harness last wiped or purged a node of a mesh.
    wiped: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Asked {
    present: bool,
    consumed: Option<u64>,
    /// Whether what was asked for has not happened yet and still may.
    due: bool,
}

const OPERATIONS: [(&str, Option<Write>); 3] =
    [("revert-layout", Some(Write::Revert)), ("skip-dead-nodes", Some(Write::Skip)), (PURGE, None)];

/// The annotation whose effect is no layout write, but the loss of every node's layout.
const PURGE: &str = "purge-cluster-layout";

impl Judge for Annotations {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.standings.follow(seen);
        match Fact::seen(seen) {
            Some((mesh, Fact::Cluster(fact))) => self.learn(mesh, fact, seen.record.seq),
            _ => self.judge_write(seen, found),
        }
        match &seen.record.event {
            Event::Fault(fault) if matches!(fault.action.as_str(), "wipe" | "purge") => {
                self.wiped.extend(fault.mesh.iter().map(|mesh| (mesh.clone(), seen.record.seq)));
            }
            Event::State(state) if state.subject == "layout" => self.judge_reset(state, seen, found),
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.standings.forget(mesh);
        self.asked.remove(mesh);
        self.wiped.remove(mesh);
    }
}

impl Annotations {
    fn learn(&mut self, mesh: &str, fact: &ClusterFact, seq: u64) {
        if fact.written.gone || fact.connected {
            return;
        }
        let site = &fact.written.site;
        let may_write = self.standings.of(mesh, site) == Standing::Writes;
        let asked = self.asked.entry(mesh.to_owned()).or_default().entry(site.clone()).or_default();
        for (operation, _) in OPERATIONS {
            let present = fact.operations.iter().any(|name| name == operation);
            let asked = asked.entry(operation).or_default();
            match (asked.present, present) {
                (false, true) => *asked = Asked { present, consumed: None, due: true },
                (true, false) => {
                    *asked = Asked { present, consumed: Some(seq), due: asked.due && may_write };
                }
                _ => {}
            }
        }
    }

    fn judge_write(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let Some((call, site)) = layout_write(seen.record).and_then(|call| Some((call, of_site(call)?)))
        else {
            return;
        };
        let write = Write::of(call);
        let Some((operation, _)) = OPERATIONS.into_iter().find(|(_, of)| write.is_some() && *of == write)
        else {
            return;
        };
        let asked = self.asked.get_mut(&call.mesh).and_then(|sites| sites.get_mut(site));
        let Some(asked) = asked.and_then(|operations| operations.get_mut(operation)) else { return };
        let due = std::mem::take(&mut asked.due);
        let Some(consumed) = asked.consumed.filter(|_| !due && !asked.present) else { return };
        let message = format!(
            "{operation} was consumed at {site} (#{consumed}), and yet it was carried out: {}",
            call.path
        );
        found.add(Finding::violation(self.standings.cell(&call.mesh), message, seen.witness()));
    }

    /// A node lost its layout: nobody may have asked for that by an annotation that was refused.
    fn judge_reset(&self, state: &State, seen: &Seen<'_>, found: &mut Found) {
        let text = |key: &str| state.value.get(key)?.as_str();
        let (Some("reset"), Some(node), Some(mesh)) = (text("event"), text("node"), &state.mesh) else {
            return;
        };
        let site = node.split('/').next().unwrap_or_default();
        let asked = self.asked.get(mesh).and_then(|sites| sites.get(site)?.get(PURGE));
        let Some(consumed) = asked.filter(|asked| !asked.due).and_then(|asked| asked.consumed) else {
            return;
        };
        if self.wiped.get(mesh).is_some_and(|wiped| *wiped > consumed) {
            return;
        }
        let message =
            format!("{PURGE} was consumed at {site} (#{consumed}), and yet node {node} lost its layout");
        found.add(Finding::violation(self.standings.cell(mesh), message, seen.witness()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged};
    use super::*;
    use crate::garage::facts;
    use crate::garage::role::Role::{Follower, Writer};
    use serde_json::json;

    fn annotated(example: Example, operations: &[&str]) -> Example {
        let fact = json!({"site": "west", "name": "garage", "generation": 1, "operations": operations});
        example.fact(facts::CLUSTER, &fact)
    }

    fn reverts(example: Example) -> Example {
        example.call(call("west").write("/v2/RevertClusterLayout"))
    }

    fn findings(example: &Example) -> Vec<Finding> {
        judged(&AnnotationsFireOnce, example)
    }

    #[test]
    fn an_annotation_that_a_follower_consumed_must_not_fire_after_its_promotion() {
        let asked = annotated(Example::new().records().roles(Writer, Follower), &["revert-layout"]);
        let promoted = annotated(asked, &[]).roles(Follower, Writer);
        assert_eq!(findings(&reverts(promoted)).len(), 1);
    }

    #[test]
    fn a_writer_carries_it_out_once_before_or_after_taking_it_away() {
        let asked = || annotated(Example::new().records().roles(Follower, Writer), &["revert-layout"]);
        assert_eq!(findings(&annotated(reverts(asked()), &[])), []);
        assert_eq!(findings(&reverts(annotated(asked(), &[]))), []);
        assert_eq!(findings(&reverts(annotated(reverts(asked()), &[]))).len(), 1);
    }

    #[test]
    fn asking_again_is_not_the_consumed_one() {
        let asked = annotated(Example::new().records().roles(Follower, Writer), &["revert-layout"]);
        let again = annotated(annotated(reverts(asked), &[]), &["revert-layout"]);
        assert_eq!(findings(&reverts(again)), []);
    }

    #[test]
    fn a_purge_that_a_follower_refused_must_not_come_later() {
        let asked = || annotated(Example::new().records().roles(Writer, Follower), &["purge-cluster-layout"]);
        let reset = json!({"node": "west/ns/garage-0", "nodeId": "n", "incarnation": 1, "event": "reset",
            "from": 3, "to": 0});
        assert_eq!(findings(&annotated(asked(), &[]).layout(&reset)).len(), 1);
        assert_eq!(findings(&annotated(asked(), &[]).fault("wipe").layout(&reset)), []);
        let writer = annotated(Example::new().records().roles(Follower, Writer), &["purge-cluster-layout"]);
        assert_eq!(findings(&annotated(writer, &[]).layout(&reset).layout(&reset)), []);
    }

    #[test]
    fn another_operation_is_another_matter() {
        let asked = annotated(Example::new().records().roles(Writer, Follower), &["skip-dead-nodes"]);
        assert_eq!(findings(&reverts(annotated(asked, &[]).roles(Follower, Writer))), []);
    }
}
