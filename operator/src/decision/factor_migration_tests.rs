//! Tables of the factor migration.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use rstest::rstest;

use super::{
    COMPLETED, FAILED, PURGING, Patience, SCALING_DOWN, Scene, VALIDATING, VERIFYING, Wish, abort, advance,
    begin, factor, is_in_flight, refusal,
};
use crate::api::federation::{RemoteCluster, RemoteConnection};
use crate::api::layout::LayoutPolicy;
use crate::api::observed::FactorMigrationStatus;
use crate::api::storage::StorageTier;
use crate::api::v1beta1::{External, GarageNode, GarageNodeSpec};
use crate::api::v1beta2::{GarageCluster, GarageClusterSpec, GarageClusterStatus};

const PATIENCE: Patience = Patience { validating: Duration::from_mins(2), stuck: Duration::from_mins(15) };

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

/// A cluster of three nodes with the factor 3 in force and `factor` in its spec.
fn cluster(factor: u32) -> GarageCluster {
    let mut spec = GarageClusterSpec {
        storage: Some(StorageTier { replicas: 3, ..StorageTier::default() }),
        ..GarageClusterSpec::default()
    };
    spec.replication.factor = factor;
    let mut cluster = GarageCluster::new("garage", spec);
    cluster.status = Some(GarageClusterStatus {
        layout_version: Some(4),
        replication_factor: Some(3),
        ..GarageClusterStatus::default()
    });
    cluster
}

fn wish(factor: u32) -> Wish {
    Wish { factor, force: false }
}

fn in_phase(phase: &str) -> FactorMigrationStatus {
    FactorMigrationStatus { phase: phase.to_owned(), ..begin(&cluster(2), wish(2), &at(100)) }
}

fn waits() -> Scene {
    let because = || Some("because".to_owned());
    Scene {
        nodes: 3,
        pods: 3,
        ready: 3,
        busy: because(),
        ailing: None,
        unpurged: because(),
        unbuilt: because(),
        unrepaired: because(),
    }
}

#[rstest]
#[case("factor=2", Some(wish(2)))]
#[case("factor=2,force", Some(Wish { factor: 2, force: true }))]
#[case("factor=0", None)]
#[case("factor=", None)]
#[case("2", None)]
#[case("factor=2,now", None)]
#[case("", None)]
fn the_annotation_names_a_factor(#[case] value: &str, #[case] expected: Option<Wish>) {
    assert_eq!(Wish::parse(value).ok(), expected);
}

#[test]
fn a_migration_goes_through_its_phases_when_nothing_holds_it() {
    let (mut migration, mut phases) = (begin(&cluster(2), wish(2), &at(100)), vec![]);
    while is_in_flight(&migration) {
        phases.push(migration.phase.clone());
        let gone = migration.phase == SCALING_DOWN;
        let scene = Scene { nodes: 3, pods: if gone { 0 } else { 3 }, ready: 3, ..Scene::default() };
        migration = advance(&migration, &scene, &at(101), PATIENCE);
    }
    assert_eq!(
        phases,
        ["Validating", "ScalingDown", "Purging", "Verifying", "RebuildingLayout", "Converging"]
    );
    assert_eq!((migration.phase.as_str(), migration.purge.as_deref()), (COMPLETED, Some("factor-2-100")));
}

#[rstest]
#[case("Validating", "because")]
#[case("ScalingDown", "3 pods have not ended yet")]
#[case("Verifying", "because")]
#[case("RebuildingLayout", "because")]
#[case("Converging", "because")]
fn a_phase_waits_says_for_what_and_is_given_up_in_the_end(#[case] phase: &str, #[case] says: &str) {
    let migration = in_phase(phase);
    let waiting = advance(&migration, &waits(), &at(219), PATIENCE);
    assert_eq!((waiting.phase.as_str(), waiting.message.as_str()), (phase, says));
    let given_up = advance(&waiting, &waits(), &at(1000), PATIENCE);
    assert_eq!(given_up.phase, FAILED);
    assert!(given_up.message.contains(says) && given_up.message.contains(phase), "{}", given_up.message);
}

#[rstest]
#[case(false, VALIDATING)]
#[case(true, SCALING_DOWN)]
fn force_begins_although_garage_is_not_healthy(#[case] force: bool, #[case] phase: &str) {
    let scene = Scene { ailing: Some("degraded".into()), ..Scene::default() };
    let migration = FactorMigrationStatus { force, ..in_phase(VALIDATING) };
    assert_eq!(advance(&migration, &scene, &at(101), PATIENCE).phase, phase);
}

#[test]
fn a_second_migration_keeps_the_purge_of_the_first_until_its_own() {
    let mut cluster = cluster(2);
    let first =
        FactorMigrationStatus { phase: COMPLETED.into(), purge: Some("p".into()), ..in_phase(PURGING) };
    cluster.status.as_mut().unwrap().factor_migration = Some(first);
    let second = begin(&cluster, wish(2), &at(200));
    assert_eq!(second.purge.as_deref(), Some("p"));
    let down = FactorMigrationStatus { phase: SCALING_DOWN.into(), ..second };
    assert_eq!(advance(&down, &Scene::default(), &at(201), PATIENCE).purge.as_deref(), Some("factor-2-200"));
}

#[rstest]
#[case(VALIDATING, true)]
#[case(SCALING_DOWN, true)]
#[case(PURGING, false)]
#[case(VERIFYING, false)]
fn a_migration_is_aborted_only_before_anything_is_purged(#[case] phase: &str, #[case] possible: bool) {
    let aborted = abort(&in_phase(phase), &at(300));
    assert_eq!(aborted.is_ok_and(|migration| migration.phase == FAILED), possible);
}

fn federated() -> GarageCluster {
    let mut cluster = cluster(2);
    let connection =
        RemoteConnection { admin_api_endpoint: "http://x:3903".into(), ..RemoteConnection::default() };
    cluster.spec.remote_clusters = vec![RemoteCluster { name: "w".into(), zone: "w".into(), connection }];
    cluster
}

fn manual() -> GarageCluster {
    let mut cluster = cluster(2);
    cluster.spec.layout_policy = LayoutPolicy::Manual;
    cluster
}

fn migrating() -> GarageCluster {
    let mut cluster = cluster(2);
    cluster.status.as_mut().unwrap().factor_migration = Some(in_phase(PURGING));
    cluster
}

#[rstest]
#[case(cluster(2), 2, None)]
#[case(cluster(3), 2, Some("in the same update"))]
#[case(cluster(3), 3, Some("already"))]
#[case(cluster(5), 5, Some("fewer than"))]
#[case(federated(), 2, Some("federated"))]
#[case(manual(), 2, Some("Manual"))]
#[case(migrating(), 2, Some("in phase Purging"))]
fn a_cluster_migrates_or_says_why_not(
    #[case] cluster: GarageCluster,
    #[case] factor: u32,
    #[case] says: Option<&str>,
) {
    let refusal = refusal(&cluster, &[], wish(factor));
    match says {
        Some(part) => assert!(refusal.as_ref().unwrap().contains(part), "{refusal:?}"),
        None => assert_eq!(refusal, None),
    }
}

#[test]
fn a_node_that_the_operator_does_not_run_keeps_its_layout_file() {
    let external = Some(External { address: "x".into(), port: 3901 });
    let node = GarageNode::new("west-0", GarageNodeSpec { external, ..GarageNodeSpec::default() });
    assert!(refusal(&cluster(2), &[node], wish(2)).unwrap().contains("west-0"));
}

#[test]
fn an_edited_factor_takes_effect_only_while_there_is_no_layout() {
    let mut cluster = cluster(2);
    assert_eq!(factor(&cluster), 3);
    cluster.status.as_mut().unwrap().layout_version = Some(0);
    assert_eq!(factor(&cluster), 2);
    cluster.status = None;
    assert_eq!(factor(&cluster), 2);
}
