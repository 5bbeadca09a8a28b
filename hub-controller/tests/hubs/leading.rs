//! A hub that leads: alone, or as the Active.

use harness::site::Site;
use hub_controller::api::controller::{Cluster, SliceConfig, VpnKeyRotation};
use hub_controller::api::kind::{HubKind, MirroredKind};
use hub_controller::api::naming::LEASE_NAME;
use hub_controller::api::worker::{WorkerServiceImport, WorkerSliceConfig, WorkerSliceGateway};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Secret};
use k8s_openapi::api::rbac::v1::Role as RbacRole;
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use libtest_mimic::Trial;
use serde_json::json;

use crate::stage::objects::{PROJECT_NAMESPACE, has_finalizer, slice};
use crate::stage::world::HUB_NAMESPACE;
use crate::stage::{Hub, Launching, Role, World, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_standalone_hub_reconciles_all_nine_kinds_and_takes_no_lease", standalone),
        trial("an_active_hub_renews_its_lease_and_declares_itself", active),
        trial("a_hub_that_cannot_renew_stops_writing_and_leads_again_when_it_can", cannot_renew),
        trial("a_strangers_lease_is_respected_until_it_runs_out", stranger),
        trial("a_frozen_active_does_not_write_when_it_thaws_before_it_has_renewed", thaw),
        trial("deleting_a_project_leaves_nothing_behind", deletion),
    ]
}

async fn standalone(world: World) {
    let hub = Launching::new(&world, "hub", Site::East, Role::Standalone).start().await;
    let east = world.east();
    east.seed().await;
    let gateway = east.until_there::<WorkerSliceGateway>(PROJECT_NAMESPACE, "red-c1-c2").await;
    east.until_there::<Secret>(PROJECT_NAMESPACE, &gateway.spec.gateway_credentials.secret_name).await;
    east.until_there::<WorkerServiceImport>(PROJECT_NAMESPACE, "web-apps-red-c2").await;
    let worker = east.until_there::<WorkerSliceConfig>(PROJECT_NAMESPACE, "red-c2").await;
    assert_eq!(worker.spec.cluster_subnet_cidr.as_deref(), Some("10.7.1.0/24"));
    east.until::<WorkerSliceConfig>(PROJECT_NAMESPACE, "red-c2", "the details of its profile", |it| {
        it.spec.qos_profile_details.is_some()
    })
    .await;
    let rotation = east
        .until::<VpnKeyRotation>(PROJECT_NAMESPACE, "red", "times, owner and gateways", |it| {
            it.spec.certificate_expiry_time.is_some()
                && !it.owner_references().is_empty()
                && it.spec.cluster_gateway_mapping.len() == 2
        })
        .await;
    assert_eq!(rotation.spec.rotation_count, 1);
    let cluster = east
        .until::<Cluster>(PROJECT_NAMESPACE, "c1", "its Secret", |it| {
            it.status.as_ref().is_some_and(|status| status.secret_name.is_some())
        })
        .await;
    assert_eq!(cluster.status.unwrap().active_controller, None);
    east.until::<Secret>(PROJECT_NAMESPACE, "kubeslice-worker-c1", "a token and the endpoint", |it| {
        it.data
            .as_ref()
            .is_some_and(|data| data.contains_key("token") && data.contains_key("controllerEndpoint"))
    })
    .await;
    east.until_there::<RbacRole>(PROJECT_NAMESPACE, "kubeslice-worker-cluster").await;
    east.until_there::<Secret>(PROJECT_NAMESPACE, "kubeslice-rw-wendy").await;
    for kind in HubKind::ALL {
        let objects = east.everything(MirroredKind::Hub(kind)).await;
        assert!(!objects.is_empty(), "{kind}");
        assert!(objects.iter().all(|object| has_finalizer(object, kind)), "{kind}");
    }
    assert_eq!(east.get::<Lease>(HUB_NAMESPACE, LEASE_NAME).await, None);
    hub.stop().await;
}

async fn active(world: World) {
    let hub = Launching::new(&world, "hub", Site::East, Role::Active).start().await;
    let east = world.east();
    east.seed().await;
    let cluster = east
        .until::<Cluster>(PROJECT_NAMESPACE, "c1", "the declaration of the hub", |it| {
            it.status.as_ref().is_some_and(|status| status.active_controller.is_some())
        })
        .await;
    let declared = cluster.status.unwrap().active_controller.unwrap();
    assert_eq!(declared.endpoint.as_deref(), Some("https://hub-east.example:6443"));
    assert_eq!(declared.identity.as_deref(), Some("hub-east"));
    let lease = east.until_there::<Lease>(HUB_NAMESPACE, LEASE_NAME).await.spec.unwrap();
    assert_eq!(
        (lease.holder_identity.as_deref(), lease.acquire_time),
        (Some("hub-east"), declared.acquire_time)
    );
    // A worker of an older version knows nothing of the field and replaces the whole status.
    let mut erased = east.get::<Cluster>(PROJECT_NAMESPACE, "c1").await.unwrap();
    erased.status = serde_json::from_value(json!({"secretName": "kubeslice-worker-c1"})).unwrap();
    let version = loop {
        let api = east.api::<Cluster>(PROJECT_NAMESPACE);
        if let Ok(written) = api.replace_status("c1", &PostParams::default(), &erased).await {
            break written.resource_version();
        }
        let fresh = east.get::<Cluster>(PROJECT_NAMESPACE, "c1").await.unwrap();
        erased.metadata.resource_version = fresh.resource_version();
    };
    east.until::<Cluster>(PROJECT_NAMESPACE, "c1", "the declaration, again", |it| {
        it.resource_version() != version
            && it.status.as_ref().is_some_and(|status| status.active_controller.is_some())
    })
    .await;
    hub.stop().await;
    // The Lease is not given back: a restarted hub sees itself as holder and resumes.
    let lease = east.get::<Lease>(HUB_NAMESPACE, LEASE_NAME).await.unwrap().spec.unwrap();
    assert_eq!(lease.holder_identity.as_deref(), Some("hub-east"));
}

/// Takes the right to renew away, or gives it back.
async fn may_renew(world: &World, may: bool) {
    let verbs = if may { json!(["get", "update"]) } else { json!(["get"]) };
    let rules = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LEASE_NAME], "verbs": verbs},
    ]);
    let patch = json!({ "rules": rules });
    world.east().merge::<RbacRole>(HUB_NAMESPACE, "hub-controller-renewal", &patch).await;
}

fn fence(open: bool) -> impl Fn(&serde_json::Value) -> bool {
    move |entry| entry["decision"] == "fence" && entry["open"] == open
}

async fn cannot_renew(world: World) {
    let hub = Launching::new(&world, "hub", Site::East, Role::Active).start().await;
    world.east().seed().await;
    world.east().until_there::<WorkerSliceGateway>(PROJECT_NAMESPACE, "red-c1-c2").await;
    may_renew(&world, false).await;
    hub.decisions.until("the fence closes", fence(false)).await;
    let from = hub.decisions.count();
    // It could write, and does not: a new slice draws no reaction.
    world.east().create(PROJECT_NAMESPACE, &slice("green", &["c1"])).await;
    let skipped =
        || async { hub.metric("hub_reconciles_total{kind=\"SliceConfig\",result=\"skipped\"}").await };
    until(&hub, "the slice is skipped", async || skipped().await >= 1.0).await;
    assert!(hub.log().contains("skipping reconcile"));
    let green = world.east().get::<SliceConfig>(PROJECT_NAMESPACE, "green").await.unwrap();
    assert!(green.finalizers().is_empty());
    may_renew(&world, true).await;
    hub.decisions.until_from(from, "the fence opens again", fence(true)).await;
    // What was dropped is reconciled without anybody touching it.
    world.east().until_there::<WorkerSliceConfig>(PROJECT_NAMESPACE, "green-c1").await;
    hub.stop().await;
}

/// Metrics are numbers on a page: there is nothing to wait for but the page.
pub async fn until(hub: &Hub, what: &str, holds: impl AsyncFn() -> bool) {
    let deadline = std::time::Instant::now() + crate::stage::LIMIT;
    while !holds().await {
        assert!(std::time::Instant::now() < deadline, "{what}: not reached\n{}", hub.child.log_tail(20));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn stranger(world: World) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE_NAME, "namespace": HUB_NAMESPACE},
        "spec": {"holderIdentity": "stranger", "leaseDurationSeconds": 5, "renewTime": "2001-01-01T00:00:00.000000Z"},
    });
    let lease: Lease = serde_json::from_value(lease).unwrap();
    world.east().create(HUB_NAMESPACE, &lease).await;
    let hub = Launching::new(&world, "hub", Site::East, Role::Active).start().await;
    let refused =
        hub.decisions.until("the Lease is a stranger's", |entry| entry["outcome"] == "held-by-another").await;
    let opened = hub.decisions.until("the fence opens", fence(true)).await;
    let waited = opened["monotonicMs"].as_u64().unwrap() - refused["monotonicMs"].as_u64().unwrap();
    assert!(waited >= 4_900, "it waited {waited} ms of the 5 s that the stranger's Lease lasts");
    assert!(hub.log().contains("stranger"), "the log names the holder");
    hub.stop().await;
}

async fn thaw(world: World) {
    let hub = Launching::new(&world, "hub", Site::East, Role::Active).start().await;
    world.east().seed().await;
    world.east().until_there::<WorkerSliceGateway>(PROJECT_NAMESPACE, "red-c1-c2").await;
    hub.freeze();
    let renewed = world.east().get::<Lease>(HUB_NAMESPACE, LEASE_NAME).await.unwrap().resource_version();
    world.east().create(PROJECT_NAMESPACE, &slice("green", &["c1"])).await;
    tokio::time::sleep(crate::stage::hub::WINDOW).await;
    hub.thaw();
    let green = world
        .east()
        .until::<SliceConfig>(PROJECT_NAMESPACE, "green", "its finalizer", |it| !it.finalizers().is_empty())
        .await;
    // The first write after the thaw is the Lease: versions of one API server are in order.
    let lease = world.east().get::<Lease>(HUB_NAMESPACE, LEASE_NAME).await.unwrap();
    assert_ne!(lease.resource_version(), renewed);
    let closed = hub.decisions.named("fence");
    assert!(closed.iter().any(|entry| entry["open"] == false), "{closed:?}");
    drop(green);
    hub.stop().await;
}

async fn deletion(world: World) {
    let hub = Launching::new(&world, "hub", Site::East, Role::Active).start().await;
    let east = world.east();
    east.seed().await;
    east.until_there::<WorkerServiceImport>(PROJECT_NAMESPACE, "web-apps-red-c2").await;
    east.delete::<hub_controller::api::controller::Project>(HUB_NAMESPACE, "blue").await;
    let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(east.client.clone());
    harness::wait::until_gone(
        Site::East,
        namespaces,
        PROJECT_NAMESPACE,
        "the namespace",
        crate::stage::LIMIT,
    )
    .await
    .unwrap_or_else(|error| panic!("{error:?}"));
    let events = east.api::<Event>("default").list(&ListParams::default()).await.unwrap();
    assert!(events.items.iter().all(|event| event.type_.as_deref() != Some("Warning")));
    hub.stop().await;
}
