//! Hubs that must not mirror, and hubs that are set up wrongly.

use std::time::Duration;

use harness::site::Site;
use hub_controller::api::controller::{Cluster, Project, ProjectSpec};
use hub_controller::api::naming::LEASE_NAME;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::leading::until;
use crate::stage::objects::PROJECT_NAMESPACE;
use crate::stage::world::HUB_NAMESPACE;
use crate::stage::{Launching, Role, World, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_standby_with_its_own_old_lease_refuses_to_mirror_until_it_was_wiped", old_lease),
        trial("a_standby_with_objects_that_no_mirror_made_refuses_to_mirror", unmarked),
        trial("the_same_cluster_given_twice_ends_the_hub", same_cluster),
        trial("a_placeholder_endpoint_is_not_declared", placeholder),
    ]
}

/// The Active at east, with little.
async fn east_leads(world: &World) -> crate::stage::Hub {
    let active = Launching::new(world, "active", Site::East, Role::Active).start().await;
    world.east().create(HUB_NAMESPACE, &Project::new("blue", ProjectSpec::default())).await;
    world.east().until_project().await;
    world.give_way(Site::West, &world.reader_of(Site::East).await).await;
    active
}

async fn old_lease(world: World) {
    let active = east_leads(&world).await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE_NAME, "namespace": HUB_NAMESPACE},
        "spec": {"holderIdentity": "hub-west", "leaseDurationSeconds": 3},
    });
    world.west().create(HUB_NAMESPACE, &serde_json::from_value::<Lease>(lease).unwrap()).await;
    let standby = Launching::new(&world, "standby", Site::West, Role::Standby).launch().await;
    let refused = standby.decisions.until("it refuses", |it| it["standing"] == "refused").await;
    assert!(refused["why"].as_str().unwrap().contains("the wipe was skipped"), "{refused}");
    let (status, why) = standby.readiness().await;
    assert!(status == 503 && why.contains("the wipe was skipped"), "{status} {why}");
    assert_eq!(standby.metric("ha_mirror_refused").await, 1.0);
    let told = async || {
        let events = world.west().api::<Event>(HUB_NAMESPACE).list(&ListParams::default()).await.unwrap();
        events.items.iter().any(|event| event.reason.as_deref() == Some("WipeSkipped"))
    };
    until(&standby, "the Event", told).await;
    assert!(world.west().get::<Project>(HUB_NAMESPACE, "blue").await.is_none());
    world.west().delete::<Lease>(HUB_NAMESPACE, LEASE_NAME).await;
    world.west().until_there::<Project>(HUB_NAMESPACE, "blue").await;
    standby.stop().await;
    active.stop().await;
}

async fn unmarked(world: World) {
    let active = east_leads(&world).await;
    world.west().create(HUB_NAMESPACE, &Project::new("blue", ProjectSpec::default())).await;
    let standby = Launching::new(&world, "standby", Site::West, Role::Standby).launch().await;
    let refused = standby.decisions.until("it refuses", |it| it["standing"] == "refused").await;
    assert!(refused["why"].as_str().unwrap().contains("Project kubeslice-controller/blue"), "{refused}");
    assert_eq!(standby.decisions.named("mirror"), [] as [Value; 0]);
    // Nor is it promoted.
    active.kill().await;
    let looked = || standby.decisions.named("poll").iter().filter(|poll| poll["verdict"] == "stale").count();
    until(&standby, "the Active is dead, and seen so", async || looked() >= 3).await;
    assert_eq!(standby.decisions.steps(), [] as [String; 0]);
    standby.stop().await;
}

async fn same_cluster(world: World) {
    world.give_way(Site::West, &world.reader_of(Site::West).await).await;
    let standby = Launching::new(&world, "standby", Site::West, Role::Standby).launch().await;
    let status = tokio::time::timeout(crate::stage::LIMIT, standby.child.exited()).await.unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(standby.log().contains("leads to this hub's own cluster"), "{}", standby.log());
}

async fn placeholder(world: World) {
    let flags = ["--controller-end-point=https://controller.cisco.com:6443/"];
    let hub = Launching::new(&world, "hub", Site::East, Role::Active).flags(&flags).start().await;
    world.east().seed().await;
    world
        .east()
        .until_there::<k8s_openapi::api::core::v1::Secret>(PROJECT_NAMESPACE, "kubeslice-worker-c1")
        .await;
    let told = async || {
        let events = world.east().api::<Event>(HUB_NAMESPACE).list(&ListParams::default()).await.unwrap();
        events.items.iter().any(|event| event.reason.as_deref() == Some("PlaceholderEndpoint"))
    };
    until(&hub, "the Event", told).await;
    assert_eq!(hub.metric("ha_publish_refused").await, 1.0);
    let cluster = world.east().get::<Cluster>(PROJECT_NAMESPACE, "c1").await.unwrap();
    assert_eq!(cluster.status.and_then(|status| status.active_controller), None);
    // With a real endpoint the same hub declares itself.
    hub.child.stop(Duration::from_secs(5)).await;
    let again = Launching::new(&world, "again", Site::East, Role::Active).start().await;
    world
        .east()
        .until::<Cluster>(PROJECT_NAMESPACE, "c1", "the declaration", |it| {
            it.status.as_ref().is_some_and(|status| status.active_controller.is_some())
        })
        .await;
    again.stop().await;
}
