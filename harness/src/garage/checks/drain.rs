//! A node's data leaves it before its pod does.

use super::leaving::{Last, Leavers, Leaving};
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};

/// At its final retirement a storage node that lost its role stays until every layout version with that role is retired:
/// until then others may still fetch its data (operator contract §5.4, step 4; Garage admin reference §9). A pod or
/// finalizer that goes earlier cuts the drain short. What is final, [`Leavers`] tells; whose role is not even gone,
/// [`super::retirement`].
///
/// Gateways hold no data and need no drain. The proof by block repairs (step 6) is the operator's own; no node of the hub
/// has blocks.
#[derive(Debug, Clone, Copy)]
pub struct DrainedBeforeRemoval;

impl Check for DrainedBeforeRemoval {
    fn name(&self) -> &'static str {
        "drained-before-removal"
    }

    fn claim(&self) -> &'static str {
        "at final retirement a storage node goes only after every layout version with its role is retired"
    }

    fn needs(&self) -> &'static str {
        "layout events with retirements, bodies of stagings, ends of nodes, deletions of GarageClusters and GarageNodes"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Drains::default())
    }
}

#[derive(Default)]
struct Drains {
    leavers: Leavers,
}

impl Judge for Drains {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let Some(leaving) = self.leavers.take(seen) else { return };
        if let Some(version) = self.undrained(&leaving) {
            let Leaving { mesh, node, site, name, last } = &leaving;
            let what = match last {
                Last::Pod => "pod",
                Last::Finalizer => "the finalizer of GarageNode",
            };
            let message = format!(
                "{what} {name} at {site} went for good before the data of node {node} had left it: its role ended with \
                 layout version {version}, and an older version is not retired yet"
            );
            found.add(Finding::violation(self.leavers.cell(mesh), message, seen.witness()));
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.leavers.forget(mesh);
    }
}

impl Drains {
    /// The first version without the role of a node that leaves too early.
    fn undrained(&self, leaving: &Leaving) -> Option<u64> {
        let layout = self.leavers.layout(&leaving.mesh)?;
        let departed = layout.departed(&leaving.node).filter(|departed| departed.role.capacity.is_some())?;
        (!layout.is_settled_before(departed.version)).then_some(departed.version)
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Example, call, judged, layout, removal, role};
    use super::*;
    use crate::garage::facts;
    use serde_json::{Value, json};

    fn applied(example: Example, change: Value, version: u64) -> Example {
        let apply = call("east").node("a").write("/v2/ApplyClusterLayout");
        let event = layout("a", "applied", version - 1, version);
        example.call(call("east").node("a").update(&[change])).call_with(apply, &event)
    }

    /// The role of node n at east is removed with version 2, and its GarageNode is being deleted.
    fn removed(role: Value) -> Example {
        let example = Example::new().records().node("east", "n", "started");
        garage_node(applied(applied(example, role, 1), removal("n"), 2), false)
    }

    fn garage_node(example: Example, gone: bool) -> Example {
        let fact = json!({"site": "east", "name": "garage-0", "nodeId": "n", "deleting": true, "gone": gone});
        example.fact(facts::NODE, &fact)
    }

    fn retired(example: Example, version: u64) -> Example {
        example.layout(&layout("a", "retired", version, version))
    }

    fn findings(example: &Example) -> Vec<Finding> {
        judged(&DrainedBeforeRemoval, example)
    }

    #[test]
    fn a_pod_that_goes_before_the_old_version_is_retired_is_a_violation() {
        let findings = findings(&removed(role("n", "east", 10)).node("east", "n", "stopped"));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("version 2"), "{}", findings[0].message);
    }

    #[test]
    fn a_finalizer_that_goes_before_it_is_one_as_well() {
        assert_eq!(findings(&garage_node(removed(role("n", "east", 10)), true)).len(), 1);
    }

    #[test]
    fn both_may_go_once_it_is_retired() {
        let drained = retired(removed(role("n", "east", 10)), 1).node("east", "n", "stopped");
        assert_eq!(findings(&garage_node(drained, true)), []);
    }

    #[test]
    fn a_gateway_has_nothing_to_drain() {
        let gateway = json!({"id": "n", "zone": "east", "capacity": null, "tags": []});
        assert_eq!(findings(&removed(gateway).node("east", "n", "stopped")), []);
    }

    #[test]
    fn a_retirement_of_another_version_is_not_the_one() {
        let example = retired(Example::new().records().node("east", "n", "started"), 1);
        let example = applied(applied(example, role("n", "east", 10), 2), removal("n"), 3);
        assert_eq!(findings(&garage_node(example, true)).len(), 1);
    }
}
