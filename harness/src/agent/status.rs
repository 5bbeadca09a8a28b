//! What is reported about pods.

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};

/// Why a pod waits, in the words of a kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// One word: `CreateContainerConfigError`, `CreateContainerError`.
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
}

/// A patch that reports `pod` as running and ready at `address`.
pub fn running(pod: &Pod, address: IpAddr, now: Timestamp) -> Value {
    let started = json!({"running": {"startedAt": seconds(now)}});
    let container = |container: &Container| {
        let image = image(container);
        json!({
            "name": container.name, "image": image, "imageID": image, "containerID": container_id(pod, container),
            "ready": true, "started": true, "restartCount": 0, "state": started,
        })
    };
    let done = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": seconds(now), "finishedAt": seconds(now),
    }});
    let init_container = |container: &Container| {
        let image = image(container);
        json!({
            "name": container.name, "image": image, "imageID": image, "containerID": container_id(pod, container),
            "ready": true, "started": false, "restartCount": 0, "state": done,
        })
    };
    let spec = pod.spec.as_ref();
    let containers: Vec<Value> = spec.iter().flat_map(|spec| &spec.containers).map(container).collect();
    let init: Vec<Value> =
        spec.iter().filter_map(|spec| spec.init_containers.as_ref()).flatten().map(init_container).collect();
    let address = address.to_string();
    let mut status = json!({
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": seconds(now),
        "conditions": conditions(true, now),
        "containerStatuses": containers,
    });
    if !init.is_empty() {
        status["initContainerStatuses"] = init.into();
    }
    patch(pod, &status)
}

/// A patch that reports that the first container of `pod` waits; `None` if that is reported already.
pub fn waiting(pod: &Pod, waiting: &Waiting, now: Timestamp) -> Option<Value> {
    if reported(pod).as_ref() == Some(&(waiting.reason.to_owned(), waiting.message.clone())) {
        return None;
    }
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let state = json!({"waiting": {"reason": waiting.reason, "message": waiting.message}});
    let statuses: Vec<Value> = containers
        .map(|container| {
            json!({
                "name": container.name, "image": image(container), "imageID": "",
                "ready": false, "started": false, "restartCount": 0, "state": state,
            })
        })
        .collect();
    let status = json!({
        "phase": "Pending",
        "startTime": seconds(now),
        "conditions": conditions(false, now),
        "containerStatuses": statuses,
    });
    Some(patch(pod, &status))
}

/// Whether `pod` is reported as running.
pub fn is_running(pod: &Pod) -> bool {
    phase(pod) == Some("Running")
}

/// Whether `pod` has come to its own end.
pub fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), Some("Succeeded" | "Failed"))
}

/// Whether `pod` is reported as ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn reported(pod: &Pod) -> Option<(String, String)> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let waiting = statuses.first()?.state.as_ref()?.waiting.as_ref()?;
    Some((waiting.reason.clone()?, waiting.message.clone()?))
}

fn conditions(ready: bool, now: Timestamp) -> Value {
    let condition = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        json!({"type": kind, "status": status, "lastTransitionTime": seconds(now)})
    };
    json!([
        condition("PodScheduled", true),
        condition("Initialized", true),
        condition("ContainersReady", ready),
        condition("Ready", ready),
    ])
}

/// A patch of exactly this pod: with the identifier in it, a successor of the same name is left alone.
fn patch(pod: &Pod, status: &Value) -> Value {
    json!({"metadata": {"uid": pod.metadata.uid}, "status": status})
}

fn image(container: &Container) -> &str {
    container.image.as_deref().unwrap_or_default()
}

fn container_id(pod: &Pod, container: &Container) -> String {
    format!("onewriter://{}/{}", pod.metadata.uid.as_deref().unwrap_or_default(), container.name)
}

/// Kubernetes' times have whole seconds.
fn seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "garage-0", "namespace": "cell", "uid": "u1"},
            "spec": {
                "initContainers": [{"name": "prepare", "image": "busybox"}],
                "containers": [{"name": "garage", "image": "garage:v2"}],
            },
        }))
        .unwrap()
    }

    /// The pod after an API server has taken a patch.
    fn patched(pod: &Pod, patch: &Value) -> Pod {
        let mut document = serde_json::to_value(pod).unwrap();
        document["status"] = patch["status"].clone();
        serde_json::from_value(document).unwrap()
    }

    fn now() -> Timestamp {
        "2026-03-01T12:00:00.5Z".parse().unwrap()
    }

    #[test]
    fn a_running_pod_is_ready_at_its_address() {
        let patch = running(&pod(), "127.20.1.1".parse().unwrap(), now());
        assert_eq!(patch["metadata"]["uid"], "u1");
        let pod = patched(&pod(), &patch);
        assert!(is_running(&pod) && is_ready(&pod));
        let status = pod.status.unwrap();
        assert_eq!(status.pod_ip.as_deref(), Some("127.20.1.1"));
        assert_eq!(status.container_statuses.unwrap().len(), 1);
        assert_eq!(status.init_container_statuses.unwrap().len(), 1);
        assert_eq!(patch["status"]["startTime"], "2026-03-01T12:00:00Z");
    }

    #[test]
    fn a_waiting_pod_says_why_and_says_it_once() {
        let why = Waiting { reason: "CreateContainerConfigError", message: "secret \"x\" not found".into() };
        let patch = waiting(&pod(), &why, now()).unwrap();
        let waits = patched(&pod(), &patch);
        assert!(!is_running(&waits) && !is_ready(&waits));
        assert_eq!(waiting(&waits, &why, now()), None);
        let other = Waiting { message: "secret \"y\" not found".into(), ..why };
        assert!(waiting(&waits, &other, now()).is_some());
    }
}
