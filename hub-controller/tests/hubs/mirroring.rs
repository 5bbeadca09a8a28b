//! A Standby mirrors, and writes nothing else.

use std::collections::BTreeMap;

use harness::site::Site;
use hub_controller::api::controller::{Cluster, ClusterSpec, SliceConfig};
use hub_controller::api::kind::{HubKind, MirroredKind};
use hub_controller::api::naming::{DEREGISTER_FINALIZER, MIRRORED_ANNOTATION, TOKEN_SECRET_TYPE};
use hub_controller::api::worker::{WorkerSliceConfig, WorkerSliceGateway};
use hub_controller::decision::copy::{Upkeep, copy, print_of};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt;
use kube::api::{DynamicObject, Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::json;

use crate::leading::until;
use crate::stage::objects::PROJECT_NAMESPACE;
use crate::stage::{Hub, Launching, Role, World, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_standby_mirrors_everything_and_writes_nothing_else", everything),
        trial("a_token_secret_is_a_shell_that_this_hub_fills_and_nobody_touches", tokens),
        trial("deletions_on_the_active_leave_nothing_terminating", deletions),
        trial("a_resync_repairs_copies_and_prunes_what_it_missed_and_spares_what_is_native", resync),
    ]
}

/// An Active in the east with everything, and a Standby of it in the west.
pub async fn both(world: &World) -> (Hub, Hub) {
    both_with(world, &[]).await
}

/// The same, the Standby with these options.
pub async fn both_with(world: &World, flags: &[&str]) -> (Hub, Hub) {
    let active = Launching::new(world, "active", Site::East, Role::Active).start().await;
    world.east().seed().await;
    world.give_way(Site::West, &world.reader_of(Site::East).await).await;
    let standby = Launching::new(world, "standby", Site::West, Role::Standby).flags(flags).start().await;
    until_mirrored(world, &standby).await;
    (active, standby)
}

/// Waits until every copy looks as it should.
pub async fn until_mirrored(world: &World, standby: &Hub) {
    world.east().until_there::<WorkerSliceGateway>(PROJECT_NAMESPACE, "red-c2-c1").await;
    until(standby, "the copies are those of the originals", async || differences(world).await.is_empty())
        .await;
}

/// What is not the same on both sides.
pub async fn differences(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for kind in MirroredKind::all() {
        let named = |objects: Vec<DynamicObject>| -> BTreeMap<String, DynamicObject> {
            let ours = objects
                .into_iter()
                .filter(|it| kind != MirroredKind::ServiceAccount || it.name_any() != "default");
            ours.map(|object| (object.name_any(), object)).collect()
        };
        let (originals, copies) =
            (named(world.east().everything(kind).await), named(world.west().everything(kind).await));
        for (name, original) in &originals {
            let wanted = copy(kind, original);
            match copies.get(name) {
                None => found.push(format!("{kind} {name} is missing")),
                Some(live) if wanted.upkeep == Upkeep::Updated && wanted.print() != print_of(kind, live) => {
                    found.push(format!("{kind} {name} differs"));
                }
                Some(_) => {}
            }
        }
        let extra = copies.keys().filter(|name| !originals.contains_key(*name));
        found.extend(extra.map(|name| format!("{kind} {name} is too much")));
    }
    found
}

async fn everything(world: World) {
    let (active, standby) = both(&world).await;
    for kind in HubKind::ALL {
        let copies = world.west().everything(MirroredKind::Hub(kind)).await;
        assert!(!copies.is_empty(), "{kind}");
        for copy in copies {
            assert!(copy.finalizers().is_empty() && copy.owner_references().is_empty(), "{copy:?}");
            assert!(copy.annotations().contains_key(MIRRORED_ANNOTATION));
            assert!(!copy.data["status"].to_string().contains("activeController"), "{copy:?}");
        }
    }
    // A change and a status change arrive.
    world
        .east()
        .merge::<Cluster>(PROJECT_NAMESPACE, "c3", &json!({"spec": {"networkInterface": "eth7"}}))
        .await;
    world
        .east()
        .merge_status::<Cluster>(
            PROJECT_NAMESPACE,
            "c3",
            &json!({"status": {"registrationStatus": "Registered"}}),
        )
        .await;
    world
        .west()
        .until::<Cluster>(PROJECT_NAMESPACE, "c3", "both changes", |it| {
            it.spec.network_interface.as_deref() == Some("eth7")
                && it.status.as_ref().is_some_and(|status| status.registration_status.is_some())
        })
        .await;
    // Reconcilers of the Standby have seen the copies, and have dropped them.
    assert!(standby.log().contains("skipping reconcile"));
    assert_eq!(standby.metric("ha_fence_open").await, 0.0);
    let writers = writers(&world, Site::West);
    assert!(writers.keys().all(|user| user.ends_with(":hub-controller-mirror")), "{writers:?}");
    assert!(writers.values().sum::<usize>() > 20, "{writers:?}");
    let cross = self::writers(&world, Site::East);
    assert!(
        cross.keys().all(|user| !user.contains("standby-reader") && !user.contains("mirror")),
        "{cross:?}"
    );
    active.stop().await;
    standby.stop().await;
}

/// How often each account of a hub wrote at a site, by the audit log.
pub fn writers(world: &World, site: Site) -> BTreeMap<String, usize> {
    let mut writers = BTreeMap::new();
    for entry in audit(world, site) {
        let user = entry["impersonatedUser"]["username"].as_str().or(entry["user"]["username"].as_str());
        let user = user.unwrap_or_default().to_owned();
        let write = ["create", "update", "patch", "delete", "deletecollection"];
        if write.contains(&entry["verb"].as_str().unwrap_or_default())
            && user.contains(":hub-controller")
            && entry["responseStatus"]["code"].as_u64().unwrap_or(500) < 300
            && entry["stage"] == "ResponseComplete"
        {
            *writers.entry(user).or_default() += 1;
        }
    }
    writers
}

/// The audit log of a site.
pub fn audit(world: &World, site: Site) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(world.plane(site).audit_log()).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn token(secret: &Secret) -> Option<Vec<u8>> {
    Some(secret.data.as_ref()?.get("token")?.0.clone())
}

async fn tokens(world: World) {
    let (active, standby) = both(&world).await;
    let name = "kubeslice-worker-c1";
    let filled = |secret: &Secret| token(secret).is_some();
    let original = world.east().until::<Secret>(PROJECT_NAMESPACE, name, "a token", filled).await;
    let shell = world.west().until::<Secret>(PROJECT_NAMESPACE, name, "a token of its own", filled).await;
    assert_eq!(shell.type_.as_deref(), Some(TOKEN_SECRET_TYPE));
    assert_ne!(token(&shell), token(&original));
    assert!(!shell.data.as_ref().unwrap().contains_key("controllerEndpoint"));
    let account = world.west().get::<ServiceAccount>(PROJECT_NAMESPACE, name).await.unwrap();
    assert_eq!(shell.annotations().get("kubernetes.io/service-account.uid"), account.uid().as_ref());
    // Two more resyncs change nothing.
    resyncs(&standby, 2).await;
    let after = world.west().get::<Secret>(PROJECT_NAMESPACE, name).await.unwrap();
    assert_eq!(after.resource_version(), shell.resource_version());
    active.stop().await;
    standby.stop().await;
}

/// Waits for so many more resyncs of Secrets and Clusters.
async fn resyncs(standby: &Hub, count: usize) {
    for kind in ["Secret", "Cluster"] {
        let whole = || {
            let all = standby.decisions.named("resync");
            all.iter().filter(|entry| entry["kind"] == kind && entry["whole"] == true).count()
        };
        let before = whole();
        until(standby, "resyncs", async || whole() >= before + count).await;
    }
}

async fn deletions(world: World) {
    let (active, standby) = both(&world).await;
    // The worker of c3 delays its end on the Active.
    let patch = json!({"metadata": {"finalizers": ["controller.kubeslice.io/cluster-finalizer", DEREGISTER_FINALIZER]}});
    world.east().merge::<Cluster>(PROJECT_NAMESPACE, "c3", &patch).await;
    world.east().delete::<Cluster>(PROJECT_NAMESPACE, "c3").await;
    world
        .west()
        .until::<Cluster>(PROJECT_NAMESPACE, "c3", "the intent to delete it", |it| {
            it.annotations().contains_key("controller.kubeslice.io/delete-requested")
                && it.metadata.deletion_timestamp.is_none()
        })
        .await;
    world.east().delete::<SliceConfig>(PROJECT_NAMESPACE, "red").await;
    world.west().until_gone::<SliceConfig>(PROJECT_NAMESPACE, "red").await;
    world.west().until_gone::<WorkerSliceConfig>(PROJECT_NAMESPACE, "red-c1").await;
    world.west().until_gone::<WorkerSliceGateway>(PROJECT_NAMESPACE, "red-c1-c2").await;
    let leave = json!({"metadata": {"finalizers": ["controller.kubeslice.io/cluster-finalizer"]}});
    world.east().merge::<Cluster>(PROJECT_NAMESPACE, "c3", &leave).await;
    world.west().until_gone::<Cluster>(PROJECT_NAMESPACE, "c3").await;
    world.west().until_gone::<ServiceAccount>(PROJECT_NAMESPACE, "kubeslice-worker-c3").await;
    for kind in MirroredKind::all() {
        let stuck: Vec<String> = world
            .west()
            .everything(kind)
            .await
            .iter()
            .filter(|it| it.metadata.deletion_timestamp.is_some())
            .map(ResourceExt::name_any)
            .collect();
        assert_eq!(stuck, [] as [String; 0], "{kind}");
    }
    active.stop().await;
    standby.stop().await;
}

async fn resync(world: World) {
    let (active, standby) = both(&world).await;
    let native: Secret = serde_json::from_value(json!({
        "metadata": {"name": "native"}, "type": "Opaque", "stringData": {"mine": "yes"},
    }))
    .unwrap();
    world.west().create(PROJECT_NAMESPACE, &native).await;
    // Somebody spoils copies: one is changed, one is gone.
    world
        .west()
        .merge::<Cluster>(PROJECT_NAMESPACE, "c1", &json!({"spec": {"networkInterface": "spoiled"}}))
        .await;
    world.west().delete::<WorkerSliceConfig>(PROJECT_NAMESPACE, "red-c2").await;
    // And one has no original.
    let mut orphan = Cluster::new("orphan", ClusterSpec::default());
    orphan.annotations_mut().insert(MIRRORED_ANNOTATION.to_owned(), "somebody".to_owned());
    world.west().create(PROJECT_NAMESPACE, &orphan).await;
    world
        .west()
        .until::<Cluster>(PROJECT_NAMESPACE, "c1", "the repair", |it| it.spec.network_interface.is_none())
        .await;
    world.west().until_there::<WorkerSliceConfig>(PROJECT_NAMESPACE, "red-c2").await;
    world.west().until_gone::<Cluster>(PROJECT_NAMESPACE, "orphan").await;
    resyncs(&standby, 1).await;
    assert!(world.west().get::<Secret>(PROJECT_NAMESPACE, "native").await.is_some());
    // A list that fails prunes nothing.
    world.give_way(Site::West, &world.kubeconfig(Site::East, "no-token")).await;
    until(&standby, "the mirror is cut off", async || {
        standby.metric("ha_mirror_connected{kind=\"Cluster\"}").await == 0.0
    })
    .await;
    assert!(world.west().get::<Cluster>(PROJECT_NAMESPACE, "c1").await.is_some());
    // Nor does one that is refused.
    let reader = "hub-controller-standby-reader";
    let roles = kube::Api::<ClusterRole>::all(world.east().client.clone());
    let rules = roles.get(reader).await.unwrap().rules;
    let mut fewer = rules.clone().unwrap();
    fewer.retain(|rule| rule.api_groups.as_ref().is_none_or(|groups| groups[0] != "controller.kubeslice.io"));
    may(&roles, reader, &json!(fewer)).await;
    world.give_way(Site::West, &world.reader_of(Site::East).await).await;
    let broken = |entry: &serde_json::Value| entry["kind"] == "Cluster" && entry["whole"] == false;
    standby.decisions.until("a list of Clusters fails", |it| it["decision"] == "resync" && broken(it)).await;
    assert!(world.west().get::<Cluster>(PROJECT_NAMESPACE, "c1").await.is_some());
    may(&roles, reader, &json!(rules)).await;
    // What is deleted meanwhile is pruned by the next whole list.
    world.east().delete::<SliceConfig>(PROJECT_NAMESPACE, "red").await;
    world.east().until_gone::<SliceConfig>(PROJECT_NAMESPACE, "red").await;
    world.west().until_gone::<SliceConfig>(PROJECT_NAMESPACE, "red").await;
    assert!(world.west().get::<Secret>(PROJECT_NAMESPACE, "native").await.is_some());
    active.stop().await;
    standby.stop().await;
}

async fn may(roles: &kube::Api<ClusterRole>, name: &str, rules: &serde_json::Value) {
    let patch = json!({ "rules": rules });
    roles.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}
