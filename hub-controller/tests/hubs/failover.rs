//! A Standby takes over.

use harness::site::Site;
use hub_controller::api::controller::{Cluster, ClusterSpec, VpnKeyRotation};
use hub_controller::api::kind::{HubKind, MirroredKind};
use hub_controller::api::naming::{DEREGISTER_FINALIZER, LEASE_NAME};
use hub_controller::api::worker::WorkerSliceConfig;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::ResourceExt;
use kube::api::ListParams;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::leading::until;
use crate::mirroring::{audit, both, both_with, writers};
use crate::stage::objects::{PROJECT_NAMESPACE, has_finalizer};
use crate::stage::world::HUB_NAMESPACE;
use crate::stage::{Hub, Launching, Role, World, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_killed_active_is_followed_in_order_and_nothing_is_lost", killed),
        trial("an_active_without_api_server_is_followed", without_api_server),
        trial("a_frozen_active_is_followed_and_leads_on_when_it_thaws", frozen),
        trial("a_returned_active_resumes_and_the_promoted_hub_leads_on", returned),
        trial("a_promoted_hub_leads_on_after_a_restart", restarted),
        trial("a_deletion_that_the_dead_active_had_begun_is_carried_out", intent),
        trial("a_lost_shell_is_made_again_by_the_promoted_hub", lost_shell),
    ]
}

/// Everything that a promotion owes, whatever led to it.
pub async fn until_taken_over(world: &World, standby: &Hub) {
    standby.decisions.until_promoted().await;
    assert_taken_over(world, standby).await;
}

/// What a promotion owes, also if the process that began it has died.
pub async fn assert_taken_over(world: &World, standby: &Hub) {
    let west = world.west();
    let all_adopted = async || {
        for kind in HubKind::ALL {
            let objects = west.everything(MirroredKind::Hub(kind)).await;
            if objects.is_empty() || !objects.iter().all(|object| has_finalizer(object, kind)) {
                return false;
            }
        }
        true
    };
    until(standby, "every object has its finalizer again", all_adopted).await;
    let lease = west.until_there::<Lease>(HUB_NAMESPACE, LEASE_NAME).await;
    assert_eq!(lease.spec.as_ref().unwrap().holder_identity.as_deref(), Some("hub-west"));
    let told = async || {
        let events = west.api::<Event>(HUB_NAMESPACE).list(&ListParams::default()).await.unwrap();
        let promoted = events.items.into_iter().filter(|it| it.reason.as_deref() == Some("PromotedToActive"));
        promoted.collect::<Vec<Event>>()
    };
    until(standby, "the Event of the promotion", async || !told().await.is_empty()).await;
    let promoted = told().await;
    assert_eq!(promoted.len(), 1, "{promoted:?}");
    let involved = &promoted[0].involved_object;
    assert_eq!((involved.kind.as_deref(), &involved.name), (Some("Lease"), &lease.metadata.name));
    assert_eq!(involved.uid, lease.uid());
    for cluster in ["c1", "c2"] {
        west.until::<Cluster>(PROJECT_NAMESPACE, cluster, "the declaration of the promoted hub", |it| {
            let declared = it.status.as_ref().and_then(|status| status.active_controller.as_ref());
            declared.is_some_and(|declared| declared.identity.as_deref() == Some("hub-west"))
        })
        .await;
    }
}

async fn killed(world: World) {
    let (active, standby) = both(&world).await;
    let rotation = world.west().until_there::<VpnKeyRotation>(PROJECT_NAMESPACE, "red").await;
    let keys = world.west().get::<Secret>(PROJECT_NAMESPACE, "red-c1-c2").await.unwrap().data;
    let octet = world.west().get::<WorkerSliceConfig>(PROJECT_NAMESPACE, "red-c2").await.unwrap().spec.octet;
    active.kill().await;
    until_taken_over(&world, &standby).await;
    let done =
        ["self-check", "final-read", "stop-mirror", "acquire-lease", "open-fence", "requeue", "publish"];
    let steps = standby.decisions.steps();
    for (step, taken) in done.iter().zip(&steps) {
        assert_eq!(*taken, format!("{step} done"), "{steps:?}");
    }
    assert_eq!(standby.metric("ha_failover_total").await, 1.0);
    assert_eq!(standby.metric("ha_fence_open").await, 1.0);
    // Nothing was made anew.
    let after = world.west().get::<VpnKeyRotation>(PROJECT_NAMESPACE, "red").await.unwrap();
    assert_eq!(after.spec.rotation_count, rotation.spec.rotation_count);
    assert_eq!(after.uid(), rotation.uid());
    assert_eq!(world.west().get::<Secret>(PROJECT_NAMESPACE, "red-c1-c2").await.unwrap().data, keys);
    let worker = world.west().get::<WorkerSliceConfig>(PROJECT_NAMESPACE, "red-c2").await.unwrap();
    assert_eq!(worker.spec.octet, octet);
    // The worker's Secret now names this hub.
    world
        .west()
        .until::<Secret>(PROJECT_NAMESPACE, "kubeslice-worker-c1", "this hub's endpoint", |it| {
            let endpoint = it.data.as_ref().and_then(|data| data.get("controllerEndpoint"));
            endpoint.is_some_and(|bytes| bytes.0 == b"https://hub-west.example:6443")
        })
        .await;
    assert_order(&world);
    assert_joined(&world, &standby);
    standby.stop().await;
}

fn user(entry: &Value) -> &str {
    entry["impersonatedUser"]["username"].as_str().or(entry["user"]["username"].as_str()).unwrap_or_default()
}

/// By the audit log: the last write of the mirror ends before the own Lease is written, which is before the first write of
/// a reconciler; the Event comes after it.
fn assert_order(world: &World) {
    let log = audit(world, Site::West);
    let writes: Vec<&Value> = log
        .iter()
        .filter(|it| {
            it["stage"] == "ResponseComplete" && it["responseStatus"]["code"].as_u64().unwrap_or(500) < 300
        })
        .filter(|it| !["get", "list", "watch"].contains(&it["verb"].as_str().unwrap_or_default()))
        .collect();
    let time = |it: &Value| it["stageTimestamp"].as_str().unwrap().to_owned();
    let of = |role: &str, resource: Option<&str>| -> Vec<String> {
        writes
            .iter()
            .filter(|it| user(it).ends_with(&format!(":hub-controller-{role}")))
            .filter(|it| resource.is_none_or(|resource| it["objectRef"]["resource"] == resource))
            .map(|it| time(it))
            .collect()
    };
    let mirror = of("mirror", None).pop().expect("the mirror wrote");
    let lease = of("election", Some("leases")).remove(0);
    let first = of("reconcile", None).into_iter().min().expect("a reconciler wrote");
    let event = of("election", Some("events")).remove(0);
    assert!(mirror < lease && lease <= first && first <= event, "{mirror} {lease} {first} {event}");
}

/// Every look at the Active's Lease that was answered is in the Active's audit log under its name.
fn assert_joined(world: &World, standby: &Hub) {
    let ids: Vec<String> = audit(world, Site::East)
        .iter()
        .filter_map(|entry| Some(entry["auditID"].as_str()?.to_owned()))
        .collect();
    let polls = standby.decisions.named("poll");
    let read: Vec<&Value> = polls.iter().filter(|poll| poll["outcome"] == "read").collect();
    assert!(read.len() >= 5, "{}", read.len());
    for poll in read {
        assert!(ids.contains(&poll["auditId"].as_str().unwrap().to_owned()), "{poll}");
    }
}

async fn without_api_server(world: World) {
    let (_active, standby) = both(&world).await;
    world.plane(Site::East).end_api_server(std::time::Duration::ZERO).await;
    until_taken_over(&world, &standby).await;
    let polls = standby.decisions.named("poll");
    assert!(
        polls.iter().any(|poll| poll["outcome"] == "unreachable" && poll["verdict"] == "stale"),
        "{polls:?}"
    );
    standby.stop().await;
}

async fn frozen(world: World) {
    let (active, standby) = both(&world).await;
    active.freeze();
    until_taken_over(&world, &standby).await;
    let polls = standby.decisions.named("poll");
    assert!(polls.iter().any(|poll| poll["outcome"] == "read" && poll["verdict"] == "stale"), "{polls:?}");
    active.thaw();
    let from = active.decisions.count();
    // It sees itself as holder of its own Lease, and leads: two leaders, which only people can end.
    active
        .decisions
        .until_from(from, "the thawed Active leads", |it| it["decision"] == "fence" && it["open"] == true)
        .await;
    assert_eq!(standby.metric("ha_fence_open").await, 1.0);
    standby.stop().await;
    active.stop().await;
}

async fn returned(world: World) {
    let (active, standby) = both(&world).await;
    active.kill().await;
    until_taken_over(&world, &standby).await;
    let returned = Launching::new(&world, "returned", Site::East, Role::Active).start().await;
    returned.decisions.until("it leads", |it| it["decision"] == "fence" && it["open"] == true).await;
    // Both lead, each on its own API server, and neither steps back.
    let renewals = async |hub: &Hub| hub.metric("ha_lease_renewals_total{outcome=\"renewed\"}").await;
    let (east, west) = (renewals(&returned).await, renewals(&standby).await);
    until(&standby, "both renew", async || {
        renewals(&returned).await >= east + 3.0 && renewals(&standby).await >= west + 3.0
    })
    .await;
    assert!(standby.decisions.named("mirror").last().is_some_and(|it| it["state"] == "ended"));
    let cross = writers(&world, Site::East);
    assert!(cross.keys().all(|user| !user.contains("standby-reader")), "{cross:?}");
    returned.stop().await;
    standby.stop().await;
}

async fn restarted(world: World) {
    let (active, standby) = both(&world).await;
    active.kill().await;
    until_taken_over(&world, &standby).await;
    standby.kill().await;
    let again = Launching::new(&world, "again", Site::West, Role::Standby).start().await;
    again.decisions.until("it leads on", |it| it["decision"] == "fence" && it["open"] == true).await;
    assert!(again.decisions.named("standing").iter().any(|it| it["standing"] == "resume"));
    assert_eq!(again.decisions.named("mirror"), [] as [Value; 0]);
    world.west().create(PROJECT_NAMESPACE, &Cluster::new("c9", ClusterSpec::default())).await;
    world.west().until_there::<Secret>(PROJECT_NAMESPACE, "kubeslice-worker-c9").await;
    again.stop().await;
}

async fn intent(world: World) {
    let (active, standby) = both(&world).await;
    let patch = json!({"metadata": {"finalizers": ["controller.kubeslice.io/cluster-finalizer", DEREGISTER_FINALIZER]}});
    world.east().merge::<Cluster>(PROJECT_NAMESPACE, "c3", &patch).await;
    world.east().delete::<Cluster>(PROJECT_NAMESPACE, "c3").await;
    world
        .west()
        .until::<Cluster>(PROJECT_NAMESPACE, "c3", "the intent to delete it", |it| {
            it.annotations().contains_key("controller.kubeslice.io/delete-requested")
        })
        .await;
    active.kill().await;
    standby.decisions.until_promoted().await;
    world.west().until_gone::<Cluster>(PROJECT_NAMESPACE, "c3").await;
    world
        .west()
        .until_gone::<k8s_openapi::api::core::v1::ServiceAccount>(PROJECT_NAMESPACE, "kubeslice-worker-c3")
        .await;
    standby.stop().await;
}

async fn lost_shell(world: World) {
    // No resync makes it again before the promotion.
    let (active, standby) = both_with(&world, &["--ha-resync-interval=1h"]).await;
    let name = "kubeslice-worker-c2";
    world.west().delete::<Secret>(PROJECT_NAMESPACE, name).await;
    active.kill().await;
    standby.decisions.until("the fence opens", |it| it["decision"] == "fence" && it["open"] == true).await;
    world
        .west()
        .until::<Secret>(PROJECT_NAMESPACE, name, "a token and this hub's endpoint", |it| {
            it.data
                .as_ref()
                .is_some_and(|data| data.contains_key("token") && data.contains_key("controllerEndpoint"))
        })
        .await;
    until_taken_over(&world, &standby).await;
    standby.stop().await;
}
