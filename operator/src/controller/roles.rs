//! The role decision of a reconcile, from the clusters as they are watched.

use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};

use crate::api::layout::LayoutSiteRole;
use crate::api::v1beta2::GarageCluster;
use crate::decision::ownership::{next_owner, owners};
use crate::guard::{ClusterKey, RoleDecision, RoleSource};
use crate::mutant::{self, Mutant};

/// Roles out of a watch cache.
#[derive(Clone)]
pub struct WatchedRoles(pub Store<GarageCluster>);

impl RoleSource for WatchedRoles {
    fn declared(&self, cluster: &ClusterKey) -> Option<Option<LayoutSiteRole>> {
        let reference = ObjectRef::new(&cluster.name).within(&cluster.namespace);
        self.0.get(&reference).map(|found| mutant::remembered(&cluster.to_string(), found.spec.site_role()))
    }
}

/// The key of a cluster.
pub fn key(cluster: &GarageCluster) -> ClusterKey {
    ClusterKey::new(cluster.namespace().unwrap_or_default(), cluster.name_any())
}

/// Decides the role of `cluster` from its own spec and from the clusters on the way to its layout owner.
pub fn decide(cluster: &GarageCluster, neighbours: &[GarageCluster]) -> RoleDecision {
    let own = key(cluster);
    let role = mutant::remembered(&own.to_string(), cluster.spec.site_role());
    let find = |name: &str| neighbours.iter().find(|neighbour| neighbour.name_any() == name);
    match owners(&own.name, &cluster.spec, |name| find(name).map(|found| &found.spec)) {
        Ok(way) => {
            let chain = way.into_iter().map(|name| {
                let declared = find(&name).and_then(|found| found.spec.site_role());
                let declared = declared.filter(|_| !mutant::is(Mutant::OwnerChainIgnored));
                (ClusterKey::new(own.namespace.clone(), name), declared)
            });
            RoleDecision::new(own.clone(), role, chain)
        }
        Err(error) => RoleDecision::unresolved(own, role, error.to_string()),
    }
}

/// The clusters among which the layout owner of `cluster` is found, as they are watched: none for one that owns its layout.
///
/// While the cache is still filling, an owner may be missing from it: its clusters are then refused every write, and
/// look again soon. Reconciles must not wait for the cache, which wakes only one of those who wait.
pub fn neighbours(clusters: &Store<GarageCluster>, cluster: &GarageCluster) -> Vec<GarageCluster> {
    if next_owner(&cluster.spec).is_none() {
        return Vec::new();
    }
    let namespace = cluster.namespace();
    let found = clusters.state_filter(|neighbour| neighbour.namespace() == namespace);
    found.iter().map(|neighbour| neighbour.as_ref().clone()).collect()
}
