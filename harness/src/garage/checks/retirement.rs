//! A node leaves the layout before its pod does.

use std::collections::BTreeMap;

use super::homes::{Home, Homes, Process};
use super::layouts::{Layouts, OfMesh};
use super::roles::Roles;
use super::slot::slot;
use crate::checks::{Check, Finding, Found, Judge, Recent, Seen};
use crate::garage::facts::{ClusterFact, Fact, NodeFact};

/// At its final retirement a node's pod goes only after its role is gone, and so does the finalizer of its GarageNode
/// (design record, "Behavior matrix": scale-down, drain, delete; D3).
///
/// Final is a scale-down, the deletion of a GarageNode, and that of a cluster with policy Drain; a restart, a rollout, a
/// suspension and the policy Destroy are not. Does not apply in a mesh whose nodes hold different layouts.
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
    roles: Roles,
    layouts: Layouts,
    homes: Homes,
    /// GarageClusters by mesh, then by site and name.
    clusters: BTreeMap<String, BTreeMap<(String, String), ClusterFact>>,
    /// GarageNodes by mesh, site and name.
    nodes: BTreeMap<String, BTreeMap<String, BTreeMap<String, Known>>>,
}

/// What is known of a GarageNode.
#[derive(Default)]
struct Known {
    node_id: Option<String>,
    external: bool,
    deleting: bool,
    gone: bool,
}

impl Judge for Retirement {
    fn take(&mut self, seen: &Seen<'_>, found: &mut Found) {
        self.roles.follow(seen.record);
        self.layouts.take(seen.record);
        if let Some(Process { mesh, node, event: "stopped" }) = self.homes.take(seen.record) {
            self.pod_goes(mesh, node, seen, found);
        }
        match Fact::seen(seen) {
            Some((mesh, Fact::Cluster(fact))) => self.learn_cluster(mesh, fact),
            Some((mesh, Fact::Node(fact))) => self.learn_node(mesh, fact, seen, found),
            _ => {}
        }
    }

    fn mesh_ends(&mut self, mesh: &str, _recent: &Recent, _found: &mut Found) {
        self.roles.forget(mesh);
        self.layouts.forget(mesh);
        self.homes.forget(mesh);
        self.clusters.remove(mesh);
        self.nodes.remove(mesh);
    }
}

impl Retirement {
    fn learn_cluster(&mut self, mesh: &str, fact: &ClusterFact) {
        let mut fact = fact.clone();
        let clusters = self.clusters.entry(mesh.to_owned()).or_default();
        let key = (fact.written.site.clone(), fact.written.name.clone());
        // The answer to the last write of a deleted object may be without its spec.
        if fact.written.gone && fact.deletion_policy.is_none() {
            fact.deletion_policy = clusters.get(&key).and_then(|known| known.deletion_policy.clone());
        }
        clusters.insert(key, fact);
    }

    fn learn_node(&mut self, mesh: &str, fact: &NodeFact, seen: &Seen<'_>, found: &mut Found) {
        let written = &fact.written;
        let of_site = slot(&mut self.nodes, mesh).and_then(|sites| slot(sites, &written.site));
        let Some(known) = of_site.and_then(|names| slot(names, &written.name)) else { return };
        if fact.node_id.is_some() {
            known.node_id.clone_from(&fact.node_id);
        }
        (known.external, known.deleting) = (fact.external, written.deleting);
        let before = std::mem::replace(&mut known.gone, written.gone);
        if written.gone
            && !before
            && let Some(node) = known.node_id.clone()
        {
            self.finalizer_goes(mesh, &node, fact, seen, found);
        }
    }

    fn finalizer_goes(&self, mesh: &str, node: &str, fact: &NodeFact, seen: &Seen<'_>, found: &mut Found) {
        let site = &fact.written.site;
        if self.is_destroyed(mesh, site) || !self.has_role(mesh, node) {
            return;
        }
        let message = format!(
            "the finalizer of GarageNode {} at {site} went while node {node} has a role",
            fact.written.name
        );
        found.add(Finding::violation(self.roles.cell(mesh), message, seen.witness()));
    }

    fn pod_goes(&self, mesh: &str, node: &str, seen: &Seen<'_>, found: &mut Found) {
        let Some(home) = self.homes.of(mesh, node) else { return };
        if self.is_destroyed(mesh, &home.site)
            || !self.is_final(mesh, node, home)
            || !self.has_role(mesh, node)
        {
            return;
        }
        let message =
            format!("pod {} at {} went for good while its node {node} has a role", home.pod, home.site);
        found.add(Finding::violation(self.roles.cell(mesh), message, seen.witness()));
    }

    fn has_role(&self, mesh: &str, node: &str) -> bool {
        let layout = self.layouts.of(mesh).filter(|layout| !layout.is_clouded());
        layout.and_then(|layout: &OfMesh| layout.role(node)).is_some()
    }

    fn clusters_at<'a>(&'a self, mesh: &str, site: &'a str) -> impl Iterator<Item = &'a ClusterFact> {
        let clusters = self.clusters.get(mesh).into_iter().flat_map(BTreeMap::values);
        clusters.filter(move |fact| fact.written.site == site && !fact.connected)
    }

    fn is_destroyed(&self, mesh: &str, site: &str) -> bool {
        self.clusters_at(mesh, site).any(ClusterFact::is_destroyed)
    }

    fn is_final(&self, mesh: &str, node: &str, home: &Home) -> bool {
        let draining = self.clusters_at(mesh, &home.site).any(|cluster| cluster.written.deleting);
        let nodes = self.nodes.get(mesh).and_then(|sites| sites.get(&home.site));
        let deleted = nodes
            .into_iter()
            .flat_map(BTreeMap::values)
            .any(|known| known.deleting && !known.external && known.node_id.as_deref() == Some(node));
        draining || deleted || self.is_scaled_away(mesh, home)
    }

    /// Whether the pod is one of a StatefulSet of the cluster's own, beyond its replicas.
    fn is_scaled_away(&self, mesh: &str, home: &Home) -> bool {
        let beyond = |cluster: &ClusterFact| {
            let ordinal = home.pod.strip_prefix(&cluster.written.name)?.strip_prefix('-')?;
            Some(ordinal.parse::<u64>().ok()? >= cluster.replicas.filter(|replicas| *replicas > 0)?)
        };
        self.clusters_at(mesh, &home.site).any(|cluster| beyond(cluster).unwrap_or_default())
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
