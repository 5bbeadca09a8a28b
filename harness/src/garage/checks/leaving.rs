//! Nodes that leave for good.

use std::collections::BTreeMap;

use super::homes::{Home, Homes, Process};
use super::layouts::{Layouts, OfMesh};
use super::roles::Roles;
use super::slot::{ByMesh, slot};
use crate::checks::Seen;
use crate::garage::facts::{ClusterFact, Fact, NodeFact};

/// What is left of a node that goes for good: its pod, or the finalizer of its GarageNode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// Its pod.
    Pod,
    /// The finalizer of its GarageNode.
    Finalizer,
}

/// A node that has just lost its last pod or finalizer, at its final retirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// The mesh.
    pub mesh: String,
    /// Garage's identity of the node.
    pub node: String,
    /// The site at which that happened.
    pub site: String,
    /// Name of the pod or GarageNode.
    pub name: String,
    /// What went.
    pub last: Last,
}

/// Follows meshes until their nodes leave.
///
/// Final is a scale-down, the deletion of a GarageNode, and that of a cluster with policy Drain; a restart, a rollout, a
/// suspension and the policy Destroy are not. In a mesh whose nodes hold different layouts nobody is told to leave.
#[derive(Debug, Default)]
pub struct Leavers {
    roles: Roles,
    layouts: Layouts,
    homes: Homes,
    /// GarageClusters with a layout by mesh, site and name.
    clusters: ByMesh<BTreeMap<String, BTreeMap<String, Owner>>>,
    /// GarageNodes by mesh, site and name.
    nodes: ByMesh<BTreeMap<String, BTreeMap<String, Known>>>,
}

/// What is known of a GarageCluster.
#[derive(Debug, Default)]
struct Owner {
    deleting: bool,
    drains: bool,
    replicas: Option<u64>,
    connected: bool,
}

/// What is known of a GarageNode.
#[derive(Debug, Default)]
struct Known {
    node_id: Option<String>,
    external: bool,
    deleting: bool,
    gone: bool,
}

impl Leavers {
    /// Takes the next event; tells who leaves with it.
    pub fn take(&mut self, seen: &Seen<'_>) -> Option<Leaving> {
        self.roles.follow(seen.record);
        self.layouts.take(seen.record);
        if let Some(Process { mesh, node, event: "stopped" }) = self.homes.take(seen.record) {
            return self.pod_goes(mesh, node);
        }
        match Fact::seen(seen) {
            Some((mesh, Fact::Cluster(fact))) => {
                self.learn_cluster(mesh, fact);
                None
            }
            Some((mesh, Fact::Node(fact))) => self.learn_node(mesh, fact),
            _ => None,
        }
    }

    /// The layout of `mesh`, if its nodes hold one and the same.
    #[must_use]
    pub fn layout(&self, mesh: &str) -> Option<&OfMesh> {
        self.layouts.of(mesh).filter(|layout| !layout.is_clouded())
    }

    /// The cell that declared the roles of `mesh`.
    #[must_use]
    pub fn cell(&self, mesh: &str) -> Option<&str> {
        self.roles.cell(mesh)
    }

    /// Forgets `mesh`.
    pub fn forget(&mut self, mesh: &str) {
        self.roles.forget(mesh);
        self.layouts.forget(mesh);
        self.homes.forget(mesh);
        self.clusters.remove(mesh);
        self.nodes.remove(mesh);
    }

    fn learn_cluster(&mut self, mesh: &str, fact: &ClusterFact) {
        let written = &fact.written;
        let of_site = slot(self.clusters.slot(mesh), &written.site);
        let Some(known) = of_site.and_then(|names| slot(names, &written.name)) else { return };
        // The answer to the last write of a deleted object may be without its spec.
        if !written.gone || fact.deletion_policy.is_some() {
            known.drains = fact.deletion_policy.as_deref() == Some("Drain");
        }
        (known.deleting, known.replicas, known.connected) = (written.deleting, fact.replicas, fact.connected);
    }

    fn learn_node(&mut self, mesh: &str, fact: &NodeFact) -> Option<Leaving> {
        let written = &fact.written;
        let of_site = slot(self.nodes.slot(mesh), &written.site)?;
        let known = slot(of_site, &written.name)?;
        if fact.node_id.is_some() {
            known.node_id.clone_from(&fact.node_id);
        }
        (known.external, known.deleting) = (fact.external, written.deleting);
        let before = std::mem::replace(&mut known.gone, written.gone);
        if before || !written.gone {
            return None;
        }
        let node = known.node_id.clone()?;
        if self.is_destroyed(mesh, &written.site) {
            return None;
        }
        let (mesh, site, name) = (mesh.to_owned(), written.site.clone(), written.name.clone());
        Some(Leaving { mesh, node, site, name, last: Last::Finalizer })
    }

    fn pod_goes(&self, mesh: &str, node: &str) -> Option<Leaving> {
        let home = self.homes.of(mesh, node)?;
        if self.is_destroyed(mesh, &home.site) || !self.is_final(mesh, node, home) {
            return None;
        }
        let (mesh, node) = (mesh.to_owned(), node.to_owned());
        Some(Leaving { mesh, node, site: home.site.clone(), name: home.pod.clone(), last: Last::Pod })
    }

    fn clusters_at(&self, mesh: &str, site: &str) -> impl Iterator<Item = (&String, &Owner)> {
        let clusters = self.clusters.get(mesh).and_then(|sites| sites.get(site));
        clusters.into_iter().flatten().filter(|(_, owner)| !owner.connected)
    }

    fn is_destroyed(&self, mesh: &str, site: &str) -> bool {
        self.clusters_at(mesh, site).any(|(_, owner)| owner.deleting && !owner.drains)
    }

    fn is_final(&self, mesh: &str, node: &str, home: &Home) -> bool {
        let draining = self.clusters_at(mesh, &home.site).any(|(_, owner)| owner.deleting);
        let nodes = self.nodes.get(mesh).and_then(|sites| sites.get(&home.site));
        let deleted = nodes
            .into_iter()
            .flat_map(BTreeMap::values)
            .any(|known| known.deleting && !known.external && known.node_id.as_deref() == Some(node));
        draining || deleted || self.is_scaled_away(mesh, home)
    }

    /// Whether the pod is one of a StatefulSet of the cluster's own, beyond its replicas.
    fn is_scaled_away(&self, mesh: &str, home: &Home) -> bool {
        let beyond = |name: &str, owner: &Owner| {
            let ordinal = home.pod.strip_prefix(name)?.strip_prefix('-')?;
            Some(ordinal.parse::<u64>().ok()? >= owner.replicas.filter(|replicas| *replicas > 0)?)
        };
        self.clusters_at(mesh, &home.site).any(|(name, owner)| beyond(name, owner).unwrap_or_default())
    }
}
