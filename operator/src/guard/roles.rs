//! Roles of clusters and what follows from them.

use std::fmt;

use crate::api::layout::LayoutSiteRole;

/// Namespace and name of a `GarageCluster`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ClusterKey {
    /// A key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The roles as they are now; the permit is checked against it at the call.
pub trait RoleSource: Send + Sync {
    /// The declared role of this cluster: `None` when the cluster is not there, `Some(None)` when it declares none.
    fn declared(&self, cluster: &ClusterKey) -> Option<Option<LayoutSiteRole>>;
}

/// The role decision of one reconcile: the cluster itself and every cluster on the way to its layout owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleDecision {
    cluster: ClusterKey,
    chain: Vec<(ClusterKey, Option<LayoutSiteRole>)>,
    unresolved: Option<String>,
}

impl RoleDecision {
    /// Decides from the cluster's own declared role and the clusters that follow it on the way to the owner.
    pub fn new(
        cluster: ClusterKey,
        own: Option<LayoutSiteRole>,
        owners: impl IntoIterator<Item = (ClusterKey, Option<LayoutSiteRole>)>,
    ) -> Self {
        let mut chain = vec![(cluster.clone(), own)];
        chain.extend(owners);
        Self { cluster, chain, unresolved: None }
    }

    /// The owner cannot be resolved (a cycle, a missing cluster): nobody may write.
    pub fn unresolved(cluster: ClusterKey, own: Option<LayoutSiteRole>, why: impl Into<String>) -> Self {
        Self { cluster: cluster.clone(), chain: vec![(cluster, own)], unresolved: Some(why.into()) }
    }

    /// The cluster being reconciled.
    pub fn cluster(&self) -> &ClusterKey {
        &self.cluster
    }

    /// The cluster itself and those on the way to its owner, the owner last.
    pub fn chain(&self) -> impl Iterator<Item = &ClusterKey> {
        self.chain.iter().map(|(key, _)| key)
    }

    /// The owner of the layout.
    pub fn owner(&self) -> &ClusterKey {
        self.chain.last().map_or(&self.cluster, |(key, _)| key)
    }

    /// The role declared by the cluster itself; `None` when the feature is not in use.
    pub fn declared(&self) -> Option<LayoutSiteRole> {
        self.chain.first().and_then(|(_, role)| *role)
    }

    /// The role in force: Follower if the cluster or any cluster on the way to its owner is one.
    pub fn effective(&self) -> LayoutSiteRole {
        if self.forbidden().is_some() { LayoutSiteRole::Follower } else { LayoutSiteRole::Writer }
    }

    /// Why nothing may be written; `None` for a Writer.
    pub fn forbidden(&self) -> Option<String> {
        if let Some(why) = &self.unresolved {
            return Some(format!("its layout owner is unknown: {why}"));
        }
        let follower = self.chain.iter().find(|(_, role)| *role == Some(LayoutSiteRole::Follower));
        follower.map(|(key, _)| follower_reason(&self.cluster, key))
    }
}

/// Why a Follower may not write.
pub(super) fn follower_reason(cluster: &ClusterKey, follower: &ClusterKey) -> String {
    if cluster == follower {
        "layoutManagement.siteRole is Follower; the writer site changes the layout".to_owned()
    } else {
        format!("its layout owner {follower} has layoutManagement.siteRole Follower")
    }
}
