//! Whether a change of a `GarageCluster` is admitted (design record "Immutability and transitions", operator contract
//! §4.2 "Freezes"). The same rules hold for every served version.

use kube::ResourceExt;

use super::factor_migration::{Wish, factor, in_flight, is_in_flight};
use super::spec_rules::{objections, self_connections};
use crate::api::layout::{LayoutPolicy, LayoutSiteRole};
use crate::api::naming::PURGE_CLUSTER_LAYOUT;
use crate::api::v1beta2::{GarageCluster, GarageClusterStatus};
use crate::mutant::{self, Mutant};
use crate::resources::auto_nodes::zone;

/// What is done to the object.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// It is made.
    Create(&'a GarageCluster),
    /// It is edited.
    Update {
        /// As it was, with its status.
        old: &'a GarageCluster,
        /// As it shall be.
        new: &'a GarageCluster,
    },
    /// It is deleted.
    Delete(&'a GarageCluster),
}

/// The answer to a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Why it is refused; `None` admits it.
    pub refusal: Option<String>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Judges a change.
pub fn admit(change: Change<'_>) -> Admission {
    match change {
        Change::Create(new) => Admission { refusal: spec_refusal(new), warnings: Vec::new() },
        Change::Update { new, .. } if new.metadata.deletion_timestamp.is_some() => Admission::default(),
        Change::Update { old, new } if old.spec == new.spec => Admission::default(),
        Change::Update { old, new } => {
            let refusal = transition_refusal(old, new).or_else(|| spec_refusal(new));
            Admission { refusal, warnings: warnings(old, new) }
        }
        Change::Delete(old) => Admission { refusal: deletion_refusal(old), warnings: Vec::new() },
    }
}

fn spec_refusal(cluster: &GarageCluster) -> Option<String> {
    let mut found = objections(&cluster.spec);
    found.extend(self_connections(&cluster.spec, &zone(cluster)));
    (!found.is_empty()).then(|| found.join("; "))
}

/// Absent means Writer: absent to Follower is a demotion, Follower to absent a promotion.
fn role(cluster: &GarageCluster) -> LayoutSiteRole {
    cluster.spec.site_role().unwrap_or(LayoutSiteRole::Writer)
}

fn transition_refusal(old: &GarageCluster, new: &GarageCluster) -> Option<String> {
    let status = old.status.clone().unwrap_or_default();
    let (before, after) = (role(old), role(new));
    let demotion = (before, after) == (LayoutSiteRole::Writer, LayoutSiteRole::Follower);
    let promotion = (before, after) == (LayoutSiteRole::Follower, LayoutSiteRole::Writer);
    if demotion && mutant::is(Mutant::DemotionAllowed) {
        return None;
    }
    if promotion && mutant::is(Mutant::PromotionRefused) {
        return Some("a promotion is refused".to_owned());
    }
    if demotion && let Some(transaction) = transaction(&status) {
        return Some(format!(
            "layoutManagement.siteRole: Writer to Follower is refused while {transaction} is recorded; a Follower \
             could not finish it"
        ));
    }
    if let Some(drain) = &status.storage_drain {
        let what = if promotion { "the promotion" } else { "any change of the spec" };
        return Some(format!(
            "{what} is refused while status.storageDrain of node {:?} is recorded",
            drain.node
        ));
    }
    if status.storage_rollout.is_some() && old.spec.storage != new.spec.storage {
        return Some("spec.storage is frozen while status.storageRollout is recorded".to_owned());
    }
    immutable_refusal(old, new).or_else(|| migration_refusal(old, new, after))
}

/// The replication factor of a layout changes by a migration only; while one is in flight, what it depends on is frozen. A
/// Follower is only warned.
fn migration_refusal(old: &GarageCluster, new: &GarageCluster, role: LayoutSiteRole) -> Option<String> {
    let (before, after) = (&old.spec, &new.spec);
    if let Some(migration) = in_flight(old) {
        let same = before.storage == after.storage
            && before.gateway == after.gateway
            && before.replication == after.replication
            && before.remote_clusters == after.remote_clusters;
        return (!same).then(|| {
            let phase = &migration.phase;
            format!("storage, gateway, replication and remoteClusters are frozen while status.factorMigration is in phase {phase}")
        });
    }
    let wanted = after.replication.factor;
    let laid_out =
        old.status.as_ref().and_then(|status| status.layout_version).is_some_and(|version| version > 0);
    let free = !laid_out || before.replication.factor == wanted || factor(old) == wanted;
    if free || role == LayoutSiteRole::Follower {
        return None;
    }
    let asked = new.annotations().get(PURGE_CLUSTER_LAYOUT).and_then(|value| Wish::parse(value).ok());
    (asked.map(|wish| wish.factor) != Some(wanted)).then(|| {
        format!(
            "replication.factor: a layout keeps its factor {}; to migrate, set the annotation {PURGE_CLUSTER_LAYOUT}: \
             factor={wanted} in the same update",
            factor(old)
        )
    })
}

fn immutable_refusal(old: &GarageCluster, new: &GarageCluster) -> Option<String> {
    if (old.spec.storage_policy(), new.spec.storage_policy()) == (LayoutPolicy::Manual, LayoutPolicy::Auto) {
        return Some("layoutPolicy: Manual to Auto is not supported".to_owned());
    }
    if old.spec.network.rpc_secret_ref != new.spec.network.rpc_secret_ref {
        return Some(
            "network.rpcSecretRef is immutable: the nodes of a federation share their RPC secret".to_owned(),
        );
    }
    None
}

/// The multi-step layout transaction that is recorded, by its name in the status.
fn transaction(status: &GarageClusterStatus) -> Option<String> {
    if let Some(drain) = &status.storage_drain {
        return Some(format!("status.storageDrain of node {:?}", drain.node));
    }
    if let Some(rollout) = &status.storage_rollout {
        return Some(format!("status.storageRollout of node {:?}", rollout.node));
    }
    let migration = status.factor_migration.as_ref().filter(|migration| is_in_flight(migration))?;
    Some(format!("status.factorMigration in phase {}", migration.phase))
}

fn warnings(old: &GarageCluster, new: &GarageCluster) -> Vec<String> {
    let mut found = Vec::new();
    let promotion = (role(old), role(new)) == (LayoutSiteRole::Follower, LayoutSiteRole::Writer);
    if promotion && !mutant::is(Mutant::PromotionSilent) {
        found.push(
            "this site becomes a layout writer: demote the previous writer first, two writers break the layout"
                .to_owned(),
        );
    }
    if role(new) == LayoutSiteRole::Follower && old.spec.replication != new.spec.replication {
        found.push("spec.replication changes on a Follower: change it on the writer site, too".to_owned());
    }
    found
}

fn deletion_refusal(cluster: &GarageCluster) -> Option<String> {
    let undecided = cluster.spec.deletion_policy.is_none() && !cluster.spec.remote_clusters.is_empty();
    undecided.then(|| {
        "a federated cluster is deleted only with deletionPolicy Destroy or Drain; set one".to_owned()
    })
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
