//! Tables of the admission rules.

use rstest::rstest;

use super::{Change, admit};
use crate::api::federation::{DeletionPolicy, RemoteCluster, RemoteConnection};
use crate::api::layout::LayoutSiteRole::{self, Follower, Writer};
use crate::api::layout::{LayoutManagement, LayoutPolicy};
use crate::api::observed::{FactorMigrationStatus, StorageDrainStatus, StorageRolloutStatus};
use crate::api::secret::SecretKeyRef;
use crate::api::storage::StorageTier;
use crate::api::v1beta2::{GarageCluster, GarageClusterSpec, GarageClusterStatus};

fn cluster(role: Option<LayoutSiteRole>) -> GarageCluster {
    let remote = RemoteCluster {
        name: "west".into(),
        zone: "west".into(),
        connection: RemoteConnection {
            admin_api_endpoint: "http://x:3903".into(),
            admin_token_secret_ref: None,
        },
    };
    let management =
        role.map(|role| LayoutManagement { site_role: Some(role), ..LayoutManagement::default() });
    let spec = GarageClusterSpec {
        zone: Some("east".into()),
        layout_management: management,
        remote_clusters: vec![remote],
        ..GarageClusterSpec::default()
    };
    GarageCluster::new("garage", spec)
}

fn recorded(role: Option<LayoutSiteRole>, status: GarageClusterStatus) -> GarageCluster {
    GarageCluster { status: Some(status), ..cluster(role) }
}

fn drain() -> GarageClusterStatus {
    let drain = StorageDrainStatus { node: "garage-storage-2".into(), ..StorageDrainStatus::default() };
    GarageClusterStatus { storage_drain: Some(drain), ..GarageClusterStatus::default() }
}

fn rollout() -> GarageClusterStatus {
    let rollout = StorageRolloutStatus { node: "garage-storage-1".into(), ..StorageRolloutStatus::default() };
    GarageClusterStatus { storage_rollout: Some(rollout), ..GarageClusterStatus::default() }
}

fn migration(phase: &str) -> GarageClusterStatus {
    let migration = FactorMigrationStatus { phase: phase.into(), ..FactorMigrationStatus::default() };
    GarageClusterStatus { factor_migration: Some(migration), ..GarageClusterStatus::default() }
}

#[rstest]
#[case(drain(), Some("storageDrain"))]
#[case(rollout(), Some("storageRollout"))]
#[case(migration("Purging"), Some("factorMigration"))]
#[case(migration("Validating"), Some("factorMigration"))]
#[case(migration("Completed"), None)]
#[case(migration("Failed"), None)]
#[case(migration(""), None)]
#[case(GarageClusterStatus::default(), None)]
fn a_demotion_is_refused_while_a_transaction_is_recorded(
    #[case] status: GarageClusterStatus,
    #[case] names: Option<&str>,
    #[values(Some(Writer), None)] before: Option<LayoutSiteRole>,
) {
    let old = recorded(before, status);
    let refusal = admit(Change::Update { old: &old, new: &cluster(Some(Follower)) }).refusal;
    match names {
        Some(name) => assert!(refusal.unwrap().contains(name)),
        None => assert_eq!(refusal, None),
    }
}

#[rstest]
#[case(Some(Writer))]
#[case(None)]
fn a_promotion_is_admitted_with_a_warning(#[case] after: Option<LayoutSiteRole>) {
    let admission = admit(Change::Update { old: &cluster(Some(Follower)), new: &cluster(after) });
    assert_eq!(admission.refusal, None);
    assert!(admission.warnings[0].contains("demote the previous writer first"));
}

#[rstest]
#[case(rollout())]
#[case(migration("Purging"))]
fn a_promotion_is_admitted_whatever_else_is_recorded(#[case] status: GarageClusterStatus) {
    let old = recorded(Some(Follower), status);
    assert_eq!(admit(Change::Update { old: &old, new: &cluster(Some(Writer)) }).refusal, None);
}

#[test]
fn a_recorded_drain_freezes_the_spec_and_refuses_a_promotion_by_name() {
    let old = recorded(Some(Follower), drain());
    let refusal = admit(Change::Update { old: &old, new: &cluster(Some(Writer)) }).refusal.unwrap();
    assert!(refusal.contains("promotion") && refusal.contains("storageDrain"), "{refusal}");
    let mut new = recorded(Some(Follower), drain());
    new.spec.image = Some("other".into());
    assert!(admit(Change::Update { old: &old, new: &new }).refusal.is_some());
}

#[test]
fn an_edit_that_leaves_the_spec_alone_is_always_admitted() {
    let old = recorded(Some(Writer), drain());
    let mut new = old.clone();
    new.metadata.annotations = Some([("poke".to_owned(), "1".to_owned())].into());
    assert_eq!(admit(Change::Update { old: &old, new: &new }), super::Admission::default());
}

#[rstest]
#[case(Some(Follower), 1)]
#[case(Some(Writer), 0)]
#[case(None, 0)]
fn a_replication_change_is_warned_about_on_a_follower(
    #[case] role: Option<LayoutSiteRole>,
    #[case] warnings: usize,
) {
    let old = cluster(role);
    let mut new = cluster(role);
    new.spec.replication.factor = 2;
    let admission = admit(Change::Update { old: &old, new: &new });
    assert_eq!((admission.refusal, admission.warnings.len()), (None, warnings));
}

#[test]
fn the_rules_of_the_schema_are_checked_again() {
    let mut new = cluster(Some(Follower));
    new.spec.remote_clusters.clear();
    let refusal = admit(Change::Create(&new)).refusal.unwrap();
    assert_eq!(refusal, crate::decision::spec_rules::FOLLOWER_NEEDS_REMOTES);
}

#[test]
fn manual_nodes_are_not_taken_over() {
    let mut old = cluster(None);
    old.spec.layout_policy = LayoutPolicy::Manual;
    assert!(
        admit(Change::Update { old: &old, new: &cluster(None) }).refusal.unwrap().contains("Manual to Auto")
    );
}

#[test]
fn the_source_of_the_rpc_secret_is_immutable() {
    let mut new = cluster(None);
    new.spec.network.rpc_secret_ref = Some(SecretKeyRef { name: "other".into(), key: None });
    let refusal = admit(Change::Update { old: &cluster(None), new: &new }).refusal.unwrap();
    assert!(refusal.contains("rpcSecretRef"));
}

#[test]
fn storage_is_frozen_during_a_rollout_and_nothing_else_is() {
    let old = recorded(None, rollout());
    let mut new = old.clone();
    new.spec.image = Some("other".into());
    assert_eq!(admit(Change::Update { old: &old, new: &new }).refusal, None);
    new.spec.storage = Some(StorageTier { replicas: 5, ..StorageTier::default() });
    assert!(admit(Change::Update { old: &old, new: &new }).refusal.unwrap().contains("storageRollout"));
}

#[rstest]
#[case(None, false)]
#[case(Some(DeletionPolicy::Destroy), true)]
#[case(Some(DeletionPolicy::Drain), true)]
fn a_federated_cluster_is_deleted_only_with_a_declared_policy(
    #[case] policy: Option<DeletionPolicy>,
    #[case] admitted: bool,
) {
    let mut old = cluster(None);
    old.spec.deletion_policy = policy;
    assert_eq!(admit(Change::Delete(&old)).refusal.is_none(), admitted);
}

/// A standalone cluster with a layout of factor 3.
fn laid_out(factor: u32, annotation: Option<&str>, role: Option<LayoutSiteRole>) -> GarageCluster {
    let mut cluster = recorded(
        role,
        GarageClusterStatus {
            layout_version: Some(4),
            replication_factor: Some(3),
            ..GarageClusterStatus::default()
        },
    );
    cluster.spec.replication.factor = factor;
    let value =
        annotation.map(|value| ("garage.rajsingh.info/purge-cluster-layout".to_owned(), value.to_owned()));
    cluster.metadata.annotations = Some(value.into_iter().collect());
    cluster
}

#[rstest]
#[case(2, None, None, Some("factor=2 in the same update"))]
#[case(2, Some("factor=1"), None, Some("factor=2 in the same update"))]
#[case(2, Some("factor=2"), None, None)]
#[case(2, Some("factor=2,force"), None, None)]
#[case(2, None, Some(Follower), None)]
#[case(3, None, None, None)]
fn the_factor_of_a_layout_changes_with_the_annotation_only(
    #[case] factor: u32,
    #[case] annotation: Option<&str>,
    #[case] role: Option<LayoutSiteRole>,
    #[case] says: Option<&str>,
) {
    let (old, new) = (laid_out(3, None, role), laid_out(factor, annotation, role));
    let refusal = admit(Change::Update { old: &old, new: &new }).refusal;
    match says {
        Some(part) => assert!(refusal.as_ref().unwrap().contains(part), "{refusal:?}"),
        None => assert_eq!(refusal, None),
    }
}

#[rstest]
#[case("Purging", true)]
#[case("Completed", false)]
fn what_a_migration_depends_on_is_frozen_while_it_is_in_flight(#[case] phase: &str, #[case] frozen: bool) {
    let mut old = laid_out(3, None, None);
    let migration =
        FactorMigrationStatus { phase: phase.into(), to_factor: Some(3), ..FactorMigrationStatus::default() };
    old.status.as_mut().unwrap().factor_migration = Some(migration);
    let mut new = old.clone();
    new.spec.storage = Some(StorageTier { replicas: 9, ..StorageTier::default() });
    let refusal = admit(Change::Update { old: &old, new: &new }).refusal;
    assert_eq!(refusal.is_some_and(|why| why.contains("factorMigration")), frozen);
}
