//! Round trips between the versions through the API server.

use harness::site::Site::West;
use http::Method;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::requests::{collection, object, send};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for role in Role::ALL {
        let name = |what: &str| format!("admission/conversion/{what}/{}", role.name());
        trials.push(trial(name("both-versions-say-the-same"), move |scene| same_content(scene, role)));
        trials
            .push(trial(name("unchanged-write-changes-nothing"), move |scene| unchanged_write(scene, role)));
        trials.push(trial(name("older-client-keeps-the-role"), move |scene| older_client(scene, role)));
    }
    trials.push(trial("admission/conversion/created-by-an-older-client", created_by_an_older_client));
    trials
}

async fn read(scene: &Scene, version: &str) -> Value {
    let answer = send(scene, West, Method::GET, &object(scene, version), &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

async fn write(scene: &Scene, version: &str, cluster: &Value) -> Vec<String> {
    let answer = send(scene, West, Method::PUT, &object(scene, version), cluster).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.own_warnings().into_iter().map(str::to_owned).collect()
}

/// A cluster with a status.
async fn stand(scene: &Scene, role: Role) {
    scene.create_cluster(West, scene.cluster(West, role)).await;
    let mut status =
        json!({"phase": "Running", "layoutVersion": 3, "storageRollout": {"node": "garage-storage-0"}});
    if role != Role::Absent {
        let told = if role == Role::Writer { "Writer" } else { "Follower" };
        status["layoutWriter"] = json!({ "role": told });
    }
    let path = format!("{}/status", object(scene, "v1beta2"));
    let answer = send(scene, West, Method::PATCH, &path, &json!({ "status": status })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

async fn same_content(scene: Scene, role: Role) {
    stand(&scene, role).await;
    let (newer, older) = (read(&scene, "v1beta2").await, read(&scene, "v1beta1").await);
    assert_eq!(older["apiVersion"], "garage.rajsingh.info/v1beta1");
    for part in ["spec", "status"] {
        assert_eq!(newer[part], older[part], "{part}");
    }
    assert_eq!(older["spec"].get("layoutManagement").is_some(), role != Role::Absent);
    assert_eq!(older["status"].get("layoutWriter").is_some(), role != Role::Absent);
}

/// What is written back as it was read, in either version, leaves the stored object as it is, to the byte: its
/// resource version stays.
async fn unchanged_write(scene: Scene, role: Role) {
    stand(&scene, role).await;
    let before = read(&scene, "v1beta2").await;
    for version in ["v1beta1", "v1beta2", "v1beta1"] {
        let as_read = read(&scene, version).await;
        assert!(write(&scene, version, &as_read).await.is_empty());
        assert_eq!(read(&scene, "v1beta2").await, before, "after a write in {version}");
    }
}

/// A client that does not know the field leaves it out: that does not clear it, and another edit gets through.
async fn older_client(scene: Scene, role: Role) {
    stand(&scene, role).await;
    let before = read(&scene, "v1beta2").await;
    for image in ["one", "two"] {
        let mut forgetful = read(&scene, "v1beta1").await;
        let spec = forgetful["spec"].as_object_mut().unwrap();
        spec.remove("layoutManagement");
        spec.insert("image".into(), json!(image));
        let warnings = write(&scene, "v1beta1", &forgetful).await;
        let kept = warnings.iter().any(|warning| warning.contains("is kept"));
        assert_eq!(kept, role != Role::Absent, "{warnings:?}");
        let after = read(&scene, "v1beta2").await;
        assert_eq!(after["spec"]["image"], image);
        assert_eq!(after["spec"].get("layoutManagement"), before["spec"].get("layoutManagement"));
        assert_eq!(after["status"], before["status"]);
    }
}

async fn created_by_an_older_client(scene: Scene) {
    let mut cluster = scene.cluster(West, Role::Follower);
    cluster["apiVersion"] = json!("garage.rajsingh.info/v1beta1");
    let answer = send(&scene, West, Method::POST, &collection(&scene, "v1beta1"), &cluster).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(answer.warnings.iter().any(|warning| warning.contains("v1beta1 GarageCluster is deprecated")));
    let stored = read(&scene, "v1beta2").await;
    assert_eq!(stored["spec"]["layoutManagement"], json!({"siteRole": "Follower"}));
    let object: kube::api::DynamicObject = serde_json::from_value(stored).unwrap();
    assert_eq!(object.types.unwrap().api_version, "garage.rajsingh.info/v1beta2");
}
