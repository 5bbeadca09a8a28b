//! Transitions, which only the webhook can judge: it sees the old object. Every case on both versions.

use harness::site::Site::West;
use http::Method;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::requests::{Answer, object, send};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

/// What comes of a write.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Admitted,
    /// Admitted, and told this.
    Warned(&'static str),
    /// Refused, and told this.
    Refused(&'static str),
}

use Outcome::{Admitted, Refused, Warned};

/// A cluster as it stands, a change of it, and what comes of that.
struct Case {
    name: &'static str,
    role: Role,
    status: Value,
    patch: Value,
    outcome: Outcome,
}

fn case(name: &'static str, role: Role, status: &Value, patch: Value, outcome: Outcome) -> Case {
    Case { name, role, status: status.clone(), patch, outcome }
}

fn becomes(role: &str) -> Value {
    json!({"spec": {"layoutManagement": {"siteRole": role}}})
}

const DEMOTED: &str = "layoutManagement.siteRole: Writer to Follower is refused while";
const PROMOTED: &str = "demote the previous writer first";

fn transitions() -> Vec<Case> {
    use Role::{Absent, Follower, Writer};
    let nothing = json!({});
    let drain = json!({"storageDrain": {"node": "garage-storage-1", "nodeId": "aa"}});
    let rollout = json!({"storageRollout": {"node": "garage-storage-0"}});
    let migration = |phase: &str| json!({"factorMigration": {"phase": phase}});
    let demotion = || becomes("Follower");
    let promotion = || becomes("Writer");
    let frozen = "any change of the spec is refused while status.storageDrain of node \"garage-storage-1\"";
    let by_drain = "status.storageDrain of node \"garage-storage-1\" is recorded";
    let by_rollout = "status.storageRollout of node \"garage-storage-0\" is recorded";
    let by_migration = "status.factorMigration in phase Purging is recorded";
    vec![
        case("demotion", Writer, &nothing, demotion(), Admitted),
        case("demotion from absent", Absent, &nothing, demotion(), Admitted),
        case("demotion in a drain", Writer, &drain, demotion(), Refused(by_drain)),
        case("demotion in a drain, first words", Writer, &drain, demotion(), Refused(DEMOTED)),
        case("demotion from absent in a drain", Absent, &drain, demotion(), Refused(by_drain)),
        case("demotion in a rollout", Writer, &rollout, demotion(), Refused(by_rollout)),
        case("demotion from absent in a rollout", Absent, &rollout, demotion(), Refused(by_rollout)),
        case("demotion in a migration", Writer, &migration("Purging"), demotion(), Refused(by_migration)),
        case(
            "demotion from absent in a migration",
            Absent,
            &migration("Purging"),
            demotion(),
            Refused(DEMOTED),
        ),
        case("demotion after a migration", Writer, &migration("Completed"), demotion(), Admitted),
        case("demotion after a failed migration", Writer, &migration("Failed"), demotion(), Admitted),
        case("promotion", Follower, &nothing, promotion(), Warned(PROMOTED)),
        case(
            "promotion in a drain",
            Follower,
            &drain,
            promotion(),
            Refused("the promotion is refused while status.storageDrain"),
        ),
        case("promotion in a rollout", Follower, &rollout, promotion(), Warned(PROMOTED)),
        case("writer to absent", Writer, &nothing, json!({"spec": {"zone": "west"}}), Admitted),
        case(
            "replicas in a drain",
            Writer,
            &drain,
            json!({"spec": {"storage": {"replicas": 5}}}),
            Refused(frozen),
        ),
        case(
            "annotation in a drain",
            Writer,
            &drain,
            json!({"metadata": {"annotations": {"a": "b"}}}),
            Admitted,
        ),
        case(
            "storage in a rollout",
            Writer,
            &rollout,
            json!({"spec": {"storage": {"replicas": 5}}}),
            Refused("spec.storage is frozen while status.storageRollout"),
        ),
        case("image in a rollout", Writer, &rollout, json!({"spec": {"image": "other"}}), Admitted),
        case(
            "replication of a follower",
            Follower,
            &nothing,
            json!({"spec": {"replication": {"factor": 1}}}),
            Warned("spec.replication changes on a Follower"),
        ),
        case(
            "consistency of a follower",
            Follower,
            &nothing,
            json!({"spec": {"replication": {"consistencyMode": "degraded"}}}),
            Warned("change it on the writer site, too"),
        ),
    ]
}

fn others() -> Vec<Case> {
    use Role::{Absent, Follower, Writer};
    let nothing = json!({});
    let remote = |name: &str, zone: &str| json!({"name": name, "zone": zone, "connection": {"adminApiEndpoint": "http://x:3903"}});
    let remotes = |list: Value| json!({"spec": {"remoteClusters": list}});
    vec![
        case(
            "replication of a writer",
            Writer,
            &nothing,
            json!({"spec": {"replication": {"factor": 1}}}),
            Admitted,
        ),
        case(
            "rpc secret",
            Absent,
            &nothing,
            json!({"spec": {"network": {"rpcSecretRef": {"name": "other"}}}}),
            Refused("network.rpcSecretRef is immutable"),
        ),
        case(
            "self-connection",
            Absent,
            &nothing,
            remotes(json!([remote("self", "west")])),
            Refused("the zone \"west\" is the local one"),
        ),
        case(
            "two remotes of a name",
            Absent,
            &nothing,
            remotes(json!([remote("a", "b"), remote("a", "c")])),
            Refused("the name \"a\" is there twice"),
        ),
        case(
            "two remotes of a zone",
            Absent,
            &nothing,
            remotes(json!([remote("a", "c"), remote("b", "c")])),
            Refused("the zone \"c\" is there twice"),
        ),
        case(
            "follower loses its remotes",
            Follower,
            &nothing,
            remotes(json!([])),
            Refused("Follower requires at least one remoteClusters entry"),
        ),
        case("policy", Absent, &nothing, json!({"spec": {"layoutPolicy": "Manual"}}), Admitted),
    ]
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for version in ["v1beta2", "v1beta1"] {
        let name = |what: &str| format!("admission/webhooks/{version}/{what}");
        trials.push(trial(name("transitions"), move |scene| judge_all(scene, version, transitions())));
        trials.push(trial(name("other-rules"), move |scene| judge_all(scene, version, others())));
        trials.push(trial(name("manual-to-auto"), move |scene| manual_to_auto(scene, version)));
        trials.push(trial(name("deletion"), move |scene| deletion(scene, version)));
        trials.push(trial(name("creation"), move |scene| creation(scene, version)));
    }
    trials.push(trial("admission/webhooks/v1beta2/follower-to-absent-is-a-promotion", follower_to_absent));
    trials
}

async fn judge_all(scene: Scene, version: &'static str, cases: Vec<Case>) {
    for case in cases {
        stand(&scene, case.role, &case.status).await;
        let path = format!("{}?dryRun=All", object(&scene, version));
        let answer = send(&scene, West, Method::PATCH, &path, &case.patch).await;
        assert_outcome(&answer, case.outcome, &format!("{} ({})", case.name, case.role.name()));
        remove(&scene).await;
    }
}

fn assert_outcome(answer: &Answer, outcome: Outcome, name: &str) {
    match outcome {
        Admitted => {
            assert_eq!(answer.status, 200, "{name}: {answer:?}");
            assert!(answer.own_warnings().is_empty(), "{name}: {answer:?}");
        }
        Warned(text) => {
            assert_eq!(answer.status, 200, "{name}: {answer:?}");
            assert!(answer.own_warnings().iter().any(|warning| warning.contains(text)), "{name}: {answer:?}");
        }
        Refused(text) => {
            assert!(matches!(answer.status, 403 | 422 | 400), "{name}: {answer:?}");
            assert!(answer.message().contains(text), "{name}: {answer:?}");
        }
    }
}

/// The scene's cluster at west, without an operator, with this role and status.
async fn stand(scene: &Scene, role: Role, status: &Value) {
    scene.create_cluster(West, scene.cluster(West, role)).await;
    let path = format!("{}/status", object(scene, "v1beta2"));
    let answer = send(scene, West, Method::PATCH, &path, &json!({ "status": status })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

async fn remove(scene: &Scene) {
    let answer = send(scene, West, Method::DELETE, &object(scene, "v1beta2"), &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

async fn manual_to_auto(scene: Scene, version: &'static str) {
    let mut manual = scene.cluster(West, Role::Absent);
    manual["spec"]["layoutPolicy"] = json!("Manual");
    scene.create_cluster(West, manual).await;
    let path = format!("{}?dryRun=All", object(&scene, version));
    let patch = json!({"spec": {"layoutPolicy": "Auto"}});
    let answer = send(&scene, West, Method::PATCH, &path, &patch).await;
    assert_outcome(&answer, Refused("layoutPolicy: Manual to Auto is not supported"), "manual to auto");
}

/// Whoever deletes a federated cluster says what is to become of its roles first.
async fn deletion(scene: Scene, version: &'static str) {
    let path = format!("{}?dryRun=All", object(&scene, version));
    let refused = Refused("a federated cluster is deleted only with deletionPolicy Destroy or Drain");
    for (policy, outcome) in
        [(json!("Destroy"), Admitted), (json!("Drain"), Admitted), (Value::Null, refused)]
    {
        let mut cluster = scene.cluster(West, Role::Writer);
        cluster["spec"]["deletionPolicy"] = policy.clone();
        scene.create_cluster(West, cluster).await;
        let answer = send(&scene, West, Method::DELETE, &path, &Value::Null).await;
        assert_outcome(&answer, outcome, &format!("deletion under {policy}"));
        let destroy = json!({"spec": {"deletionPolicy": "Destroy"}});
        scene.patch_cluster(West, destroy).await.unwrap();
        remove(&scene).await;
    }
}

async fn creation(scene: Scene, version: &'static str) {
    let path = format!("{}?dryRun=All", super::requests::collection(&scene, version));
    let mut cluster = scene.cluster(West, Role::Follower);
    cluster["apiVersion"] = format!("garage.rajsingh.info/{version}").into();
    let answer = send(&scene, West, Method::POST, &path, &cluster).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    cluster["spec"]["remoteClusters"][0]["zone"] = json!("west");
    let answer = send(&scene, West, Method::POST, &path, &cluster).await;
    assert_outcome(&answer, Refused("the zone \"west\" is the local one"), "creation");
}

/// On v1beta1 leaving the role out keeps it (see `conversion`).
async fn follower_to_absent(scene: Scene) {
    stand(&scene, Role::Follower, &json!({})).await;
    let path = format!("{}?dryRun=All", object(&scene, "v1beta2"));
    let patch = json!({"spec": {"layoutManagement": null}});
    let answer = send(&scene, West, Method::PATCH, &path, &patch).await;
    assert_outcome(&answer, Warned(PROMOTED), "follower to absent");
}
