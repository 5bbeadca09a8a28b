//! Enum and rules of the definition, where a client meets them: the controller's own checks are not reached.

use garage_operator::decision::spec_rules::{FOLLOWER_NEEDS_REMOTES, FOLLOWER_WITH_CONNECT_TO};
use harness::site::Site::{self, East, West};
use http::Method;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::requests::{collection, send};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

/// A spec, as far as the rules look at it, and what comes of it.
struct Case {
    name: &'static str,
    management: Value,
    remotes: Option<bool>,
    connects: bool,
    refused: Option<&'static str>,
}

const fn case(name: &'static str, refused: Option<&'static str>) -> Case {
    Case { name, management: Value::Null, remotes: None, connects: false, refused }
}

fn cases() -> Vec<Case> {
    let role = |role: &str| json!({ "siteRole": role });
    let unsupported = "Unsupported value: \"Leader\": supported values: \"Writer\", \"Follower\"";
    vec![
        Case { management: role("Follower"), remotes: Some(true), ..case("follower-with-remotes", None) },
        Case { management: role("Writer"), ..case("writer-without-remotes", None) },
        Case { management: json!({"autoApply": true}), ..case("management-without-role", None) },
        case("nothing", None),
        Case { connects: true, ..case("connect-to-without-role", None) },
        Case { management: role("Writer"), connects: true, ..case("writer-with-connect-to", None) },
        Case {
            management: role("Follower"),
            ..case("follower-without-remotes", Some(FOLLOWER_NEEDS_REMOTES))
        },
        Case {
            management: role("Follower"),
            remotes: Some(false),
            ..case("follower-with-no-remote", Some(FOLLOWER_NEEDS_REMOTES))
        },
        Case {
            management: role("Follower"),
            remotes: Some(true),
            connects: true,
            ..case("follower-with-connect-to", Some(FOLLOWER_WITH_CONNECT_TO))
        },
        Case { management: role("Leader"), remotes: Some(true), ..case("leader", Some(unsupported)) },
        Case { management: role("follower"), remotes: Some(true), ..case("lower-case", Some("Unsupported")) },
    ]
}

pub fn trials() -> Vec<Trial> {
    // East has no webhooks: there the definition alone refuses. West serves both versions.
    let places = [(East, "v1beta2"), (West, "v1beta2"), (West, "v1beta1")];
    let mut trials = Vec::new();
    for (site, version) in places {
        trials.push(trial(format!("admission/schema/{site}/{version}"), move |scene| async move {
            for case in cases() {
                judge(&scene, site, version, &case).await;
            }
            null_is_absent(&scene, site, version).await;
        }));
    }
    trials.push(trial("admission/schema/east/v1beta1-is-not-served-without-webhooks", not_served));
    trials
}

async fn judge(scene: &Scene, site: Site, version: &str, case: &Case) {
    let mut manifest = scene.cluster(site, Role::Absent);
    manifest["apiVersion"] = format!("garage.rajsingh.info/{version}").into();
    let remotes = manifest["spec"]["remoteClusters"].clone();
    let spec = manifest["spec"].as_object_mut().unwrap();
    spec.remove("remoteClusters");
    match case.remotes {
        Some(true) => drop(spec.insert("remoteClusters".into(), remotes)),
        Some(false) => drop(spec.insert("remoteClusters".into(), json!([]))),
        None => {}
    }
    if case.connects {
        spec.remove("storage");
        spec.insert("connectTo".into(), json!({"clusterRef": {"name": "owner"}}));
    }
    if !case.management.is_null() {
        spec.insert("layoutManagement".into(), case.management.clone());
    }
    let path = format!("{}?dryRun=All", collection(scene, version));
    let answer = send(scene, site, Method::POST, &path, &manifest).await;
    let name = format!("{} at {site} in {version}: {answer:?}", case.name);
    match case.refused {
        None => {
            assert_eq!(answer.status, 201, "{name}");
            let stored = answer.body["spec"].get("layoutManagement").unwrap_or(&Value::Null);
            assert_eq!(stored, &case.management, "no default is filled in: {name}");
        }
        Some(message) => {
            assert_eq!(answer.status, 422, "{name}");
            assert!(answer.message().contains(message), "{name}");
        }
    }
}

/// An explicit null is pruned: it neither stays nor trips a rule.
async fn null_is_absent(scene: &Scene, site: Site, version: &str) {
    let mut manifest = scene.cluster(site, Role::Absent);
    manifest["apiVersion"] = format!("garage.rajsingh.info/{version}").into();
    manifest["spec"]["layoutManagement"] = json!({"siteRole": null});
    let path = format!("{}?dryRun=All", collection(scene, version));
    let answer = send(scene, site, Method::POST, &path, &manifest).await;
    assert_eq!((answer.status, &answer.body["spec"]["layoutManagement"]), (201, &json!({})), "{answer:?}");
}

async fn not_served(scene: Scene) {
    let answer = send(&scene, East, Method::GET, &collection(&scene, "v1beta1"), &Value::Null).await;
    assert_eq!(answer.status, 404, "{answer:?}");
}
