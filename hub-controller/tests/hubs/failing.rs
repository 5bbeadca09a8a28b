//! Promotions that must not happen, or not yet.

use harness::site::Site;
use hub_controller::api::controller::Cluster;
use hub_controller::api::naming::LEASE_NAME;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::Role as RbacRole;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::failover::until_taken_over;
use crate::leading::until;
use crate::mirroring::both;
use crate::stage::hold::Hold;
use crate::stage::objects::PROJECT_NAMESPACE;
use crate::stage::world::HUB_NAMESPACE;
use crate::stage::{Hub, Launching, Role, World, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_standby_that_never_read_the_lease_is_not_promoted_until_it_has", never_read),
        trial("a_standby_whose_own_api_server_is_down_is_promoted_when_it_is_back", own_server_down),
        trial("a_lease_write_that_is_held_aborts_the_attempt_and_the_mirror_goes_on", lease_held),
        trial("a_mirror_write_that_is_held_keeps_the_fence_closed", mirror_held),
        trial("steps_after_the_fence_that_hang_leave_the_hub_leading", publish_held),
    ]
}

/// The window has passed several times, as the Standby itself counts: it has looked that often.
async fn until_looked(standby: &Hub, outcome: &str, times: usize) {
    let looked = || {
        let polls = standby.decisions.named("poll");
        polls.iter().filter(|poll| poll["outcome"] == outcome).count()
    };
    let before = looked();
    until(standby, outcome, async || looked() >= before + times).await;
}

async fn never_read(world: World) {
    let active = Launching::new(&world, "active", Site::East, Role::Active).start().await;
    world.east().seed().await;
    // A wrong token, then a right one without the right to read the Lease.
    world.give_way(Site::West, &world.kubeconfig(Site::East, "no-token")).await;
    let standby = Launching::new(&world, "standby", Site::West, Role::Standby).start().await;
    until_looked(&standby, "refused", 20).await;
    let nothing = json!({"rules": [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]});
    world.east().merge::<RbacRole>(HUB_NAMESPACE, "hub-controller-standby-reader", &nothing).await;
    world.give_way(Site::West, &world.reader_of(Site::East).await).await;
    until_looked(&standby, "refused", 20).await;
    assert_eq!(standby.decisions.steps(), [] as [String; 0]);
    assert!(standby.log().contains("was never read by this process"));
    assert_eq!(standby.metric("ha_proof_of_life_age_seconds").await, -1.0);
    // The right is given; the same process reads, and takes over when the Active dies.
    let right = json!({"rules": [{
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LEASE_NAME], "verbs": ["get"],
    }]});
    world.east().merge::<RbacRole>(HUB_NAMESPACE, "hub-controller-standby-reader", &right).await;
    until_looked(&standby, "read", 3).await;
    crate::mirroring::until_mirrored(&world, &standby).await;
    active.kill().await;
    until_taken_over(&world, &standby).await;
    standby.stop().await;
}

async fn own_server_down(world: World) {
    let (active, standby) = both(&world).await;
    world.plane(Site::West).end_api_server(std::time::Duration::ZERO).await;
    active.kill().await;
    let failed = || standby.decisions.steps().iter().filter(|step| *step == "self-check failed").count();
    until(&standby, "two failed checks", async || failed() >= 2).await;
    assert_eq!(standby.metric("ha_fence_open").await, 0.0);
    world.plane(Site::West).revive_api_server().await.unwrap();
    until_taken_over(&world, &standby).await;
    standby.stop().await;
}

fn leases() -> Value {
    json!({
        "apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["leases"], "scope": "Namespaced",
    })
}

async fn lease_held(world: World) {
    let (active, standby) = both(&world).await;
    let hold = Hold::new(world.west(), "lease", world.address(), &leases(), ":hub-controller-election").await;
    active.freeze();
    hold.until_held(1).await;
    standby.decisions.until("the attempt is given up", |it| it["decision"] == "aborted").await;
    assert_eq!(standby.metric("ha_fence_open").await, 0.0);
    let aborted = standby.decisions.named("aborted").remove(0);
    assert_eq!((&aborted["step"], &aborted["mirrorRestarted"]), (&json!("acquire-lease"), &json!(true)));
    assert!(standby.log().contains("mirroring again"));
    // Polls went on during the hang.
    until_looked(&standby, "read", 3).await;
    // The Active is back: the Standby mirrors on, and nobody holds its Lease.
    active.thaw();
    let from = standby.decisions.count();
    standby.decisions.until_from(from, "life is seen", |it| it["finding"] == "advanced").await;
    hold.release().await;
    let changed = json!({"spec": {"networkInterface": "eth9"}});
    world.east().merge::<Cluster>(PROJECT_NAMESPACE, "c1", &changed).await;
    world
        .west()
        .until::<Cluster>(PROJECT_NAMESPACE, "c1", "the change", |it| {
            it.spec.network_interface.as_deref() == Some("eth9")
        })
        .await;
    let unheld = |lease: &Lease| lease.spec.as_ref().is_none_or(|spec| spec.holder_identity.is_none());
    if world.west().get::<Lease>(HUB_NAMESPACE, LEASE_NAME).await.is_some() {
        world.west().until::<Lease>(HUB_NAMESPACE, LEASE_NAME, "nobody as its holder", unheld).await;
    }
    assert_eq!(standby.decisions.named("promoted"), [] as [Value; 0]);
    active.kill().await;
    until_taken_over(&world, &standby).await;
    standby.stop().await;
}

async fn mirror_held(world: World) {
    let (active, standby) = both(&world).await;
    let clusters = json!({
        "apiGroups": ["controller.kubeslice.io"], "apiVersions": ["v1alpha1"], "operations": ["UPDATE"],
        "resources": ["clusters"], "scope": "Namespaced",
    });
    let hold = Hold::new(world.west(), "mirror", world.address(), &clusters, ":hub-controller-mirror").await;
    world
        .east()
        .merge::<Cluster>(PROJECT_NAMESPACE, "c1", &json!({"spec": {"networkInterface": "late"}}))
        .await;
    hold.until_held(1).await;
    active.kill().await;
    let aborted = standby.decisions.until("the attempt is given up", |it| it["decision"] == "aborted").await;
    assert_eq!(aborted["step"], "stop-mirror");
    assert_eq!(standby.metric("ha_fence_open").await, 0.0);
    assert!(world.west().get::<Lease>(HUB_NAMESPACE, LEASE_NAME).await.is_none());
    hold.release().await;
    until_taken_over(&world, &standby).await;
    // What was held was finished before the fence opened.
    let cluster = world.west().get::<Cluster>(PROJECT_NAMESPACE, "c1").await.unwrap();
    assert_eq!(cluster.spec.network_interface.as_deref(), Some("late"));
    standby.stop().await;
}

async fn publish_held(world: World) {
    let (active, standby) = both(&world).await;
    let status = json!({
        "apiGroups": ["controller.kubeslice.io"], "apiVersions": ["v1alpha1"], "operations": ["UPDATE"],
        "resources": ["clusters/status"], "scope": "Namespaced",
    });
    let hold =
        Hold::new(world.west(), "publish", world.address(), &status, ":hub-controller-publisher").await;
    active.kill().await;
    standby.decisions.until_promoted().await;
    assert!(
        standby.decisions.steps().contains(&"publish timed-out".to_owned()),
        "{:?}",
        standby.decisions.steps()
    );
    assert_eq!(standby.metric("ha_fence_open").await, 1.0);
    hold.release().await;
    until_taken_over(&world, &standby).await;
    standby.stop().await;
}
