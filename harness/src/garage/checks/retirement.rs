//! A node leaves the layout before its pod does.

use super::leaving::{Last, Leavers, Leaving};
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};

/// At its final retirement a node's pod goes only after its role is gone, and so does the finalizer of its GarageNode
/// (design record, "Behavior matrix": scale-down, drain, delete; D3). What is final, [`Leavers`] tells.
#[derive(Debug, Clone, Copy)]
pub struct RoleGoesFirst;

impl Check for RoleGoesFirst {
    fn name(&self) -> &'static str {
        "role-goes-first"
    }

    fn claim(&self) -> &'static str {
        "at final retirement a pod or finalizer goes only after the node's role is gone"
    }

    fn needs(&self) -> &'static str {
        "layout events and bodies of stagings, ends of nodes, deletions of GarageClusters and GarageNodes"
    }

    fn begin(&self) -> Box<dyn Judge> {
        Box::new(Retirement::default())
    }
}

#[derive(Default)]
struct Retirement {
    leavers: Leavers,
}

impl Judge for Retirement {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let Some(Leaving { mesh, node, site, name, last }) = self.leavers.take(seen) else { return };
        if self.leavers.layout(&mesh).and_then(|layout| layout.role(&node)).is_none() {
            return;
        }
        let message = match last {
            Last::Pod => format!("pod {name} at {site} went for good while its node {node} has a role"),
            Last::Finalizer => {
                format!("the finalizer of GarageNode {name} at {site} went while node {node} has a role")
            }
        };
        found.add(Finding::violation(self.leavers.cell(&mesh), message, seen.witness()));
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.leavers.forget(mesh);
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

    fn with_role() -> Example {
        let example = cluster(Example::new().records(), &json!({"replicas": 3}));
        applied(example.node("east", "n", "started"), role("n", "east", 10), 1)
    }

    fn cluster(example: Example, more: &Value) -> Example {
        let mut fact = json!({"site": "east", "name": "garage", "generation": 1});
        fact.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        example.fact(facts::CLUSTER, &fact)
    }

    fn node(example: Example, gone: bool) -> Example {
        let fact = json!({"site": "east", "name": "garage-0", "nodeId": "n", "deleting": true, "gone": gone});
        example.fact(facts::NODE, &fact)
    }

    fn findings(example: &Example) -> Vec<Finding> {
        judged(&RoleGoesFirst, example)
    }

    #[test]
    fn a_pod_that_goes_for_good_before_its_role_is_a_violation() {
        assert_eq!(findings(&node(with_role(), false).node("east", "n", "stopped")).len(), 1);
    }

    #[test]
    fn a_finalizer_that_goes_before_the_role_is_a_violation() {
        assert_eq!(findings(&node(with_role(), true)).len(), 1);
    }

    #[test]
    fn both_may_go_after_the_role() {
        let removed = applied(node(with_role(), false), removal("n"), 2);
        assert_eq!(findings(&node(removed.node("east", "n", "stopped"), true)), []);
    }

    #[test]
    fn a_staged_removal_alone_takes_no_role_away() {
        let staged = node(with_role(), false).call(call("east").node("a").update(&[removal("n")]));
        assert_eq!(findings(&staged.node("east", "n", "stopped")).len(), 1);
    }

    #[test]
    fn a_restart_and_a_destroyed_cluster_are_no_retirement() {
        let restart = with_role().node("east", "n", "stopped").node("east", "n", "started");
        assert_eq!(findings(&restart), []);
        let destroyed = cluster(with_role(), &json!({"deleting": true, "deletionPolicy": "Destroy"}));
        assert_eq!(findings(&node(destroyed.node("east", "n", "stopped"), true)), []);
    }

    #[test]
    fn a_cluster_that_drains_keeps_its_pods_until_the_roles_are_gone() {
        let drains = cluster(with_role(), &json!({"deleting": true, "deletionPolicy": "Drain"}));
        assert_eq!(findings(&drains.node("east", "n", "stopped")).len(), 1);
    }

    #[test]
    fn a_pod_beyond_the_replicas_of_its_cluster_is_scaled_away() {
        // The pod of every example node is garage-0-0; a shared StatefulSet would call it garage-2.
        let pod = |example: Example| example.pod("east", "n", "garage-2", "stopped");
        assert_eq!(findings(&pod(cluster(with_role(), &json!({"replicas": 2})))).len(), 1);
        assert_eq!(findings(&pod(cluster(with_role(), &json!({"replicas": 3})))), []);
        assert_eq!(findings(&pod(cluster(with_role(), &json!({"replicas": 0})))), [], "a suspension");
    }
}
