//! Who a node is: its own answer, never a guess (operator contract §2.3).

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt};

use super::super::apply::write_status;
use super::super::context::Context;
use super::super::endpoints::Endpoints;
use super::super::error::{ReconcileError, chain};
use super::super::scope::{address, is_ready, unready_because};
use crate::api::naming;
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;
use crate::decision::identity_change::{Old, refusal};
use crate::decision::node_state::Obstacle;
use crate::garage::AdminError;

/// An identity and the pod that answered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Node ID in lower case.
    pub(super) id: String,
    /// UID of the pod; `None` for an external node.
    pub(super) pod_uid: Option<String>,
}

/// The identity that an external node declares. The schema demands one; a stripped schema does not.
pub(super) fn declared(node: &GarageNode) -> Result<Found, Obstacle> {
    let id = node
        .spec
        .node_id
        .as_ref()
        .filter(|id| id.len() == 64 && id.bytes().all(|digit| digit.is_ascii_hexdigit()));
    match id {
        Some(id) => Ok(Found { id: id.to_ascii_lowercase(), pod_uid: None }),
        None => Err(Obstacle::failed("NodeIdMissing", "an external node needs spec.nodeId: 64 hex digits")),
    }
}

/// Asks the pod of a managed node who it is.
pub(super) async fn discover(
    context: &Context,
    cluster: &GarageCluster,
    node: &GarageNode,
    follows: bool,
) -> Result<Result<Found, Obstacle>, ReconcileError> {
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &node.namespace().unwrap_or_default());
    let name = naming::pod(&node.name_any());
    let read =
        || async { pods.get_opt(&name).await.map_err(ReconcileError::kube(format!("read Pod {name}"))) };
    let Some(pod) = read().await? else {
        return Ok(Err(Obstacle::pending("PodMissing", format!("Pod {name} does not exist yet"))));
    };
    let (Some(uid), Some(ip), true) = (pod.uid(), address(&pod), is_ready(&pod)) else {
        return Ok(Err(Obstacle::pending(
            "PodNotReady",
            format!("Pod {name} is not ready{}", unready_because(&pod)),
        )));
    };
    if let Some(found) = recorded(node, &uid) {
        return Ok(Ok(found));
    }
    let endpoints = match Endpoints::of(context, cluster).await? {
        Ok(endpoints) => endpoints,
        Err(missing) => return Ok(Err(Obstacle::pending("AdminTokenMissing", missing.to_string()))),
    };
    let id = match endpoints.pod(ip).self_identity().await {
        Ok(id) => id,
        Err(error) => return Ok(Err(Obstacle::pending("IdentityUnknown", chain(&error)))),
    };
    if read().await?.and_then(|pod| pod.uid()).as_deref() != Some(uid.as_str()) {
        return Ok(Err(Obstacle::pending(
            "PodReplaced",
            format!("Pod {name} was replaced while it was asked"),
        )));
    }
    if let Some(before) = changed(node, &id) {
        match replacement(&endpoints, node, &before, &id, follows).await {
            Ok(None) => {}
            Ok(Some(refused)) => return Ok(Err(refused)),
            Err(error) => return Ok(Err(Obstacle::pending("GarageUnreachable", chain(&error)))),
        }
    }
    Ok(accept(node, id, uid))
}

/// Why the new identity may not take the place of the old one; asks Garage what is left of that.
async fn replacement(
    endpoints: &Endpoints,
    node: &GarageNode,
    before: &str,
    now: &str,
    follows: bool,
) -> Result<Option<Obstacle>, AdminError> {
    let admin = endpoints.service();
    let (status, layout) = tokio::try_join!(admin.cluster_status(), admin.cluster_layout())?;
    let known = node.status.as_ref().and_then(|status| status.layout_version).unwrap_or(0);
    if layout.version < known {
        // The Service may ask the very node that has lost its metadata: what it does not know is no evidence.
        let why = format!("the node that answers knows layout version {}, not yet {known}", layout.version);
        return Ok(Some(Obstacle::pending("LayoutUnknown", why)));
    }
    let old = Old { id: before, has_role: layout.role(before).is_some(), up: status.is_up(before) };
    Ok(refusal(node, old, now, follows))
}

/// The recorded identity, if this very pod answered it.
fn recorded(node: &GarageNode, pod_uid: &str) -> Option<Found> {
    let status = node.status.as_ref()?;
    let same_pod = status.observed_pod_uid.as_deref() == Some(pod_uid);
    let found = Found { id: status.node_id.clone()?, pod_uid: Some(pod_uid.to_owned()) };
    (same_pod && pinned(node).is_none_or(|pin| pin == found.id)).then_some(found)
}

fn pinned(node: &GarageNode) -> Option<String> {
    node.spec.node_id.as_ref().map(|id| id.to_ascii_lowercase())
}

/// A pin is binding.
fn accept(node: &GarageNode, id: String, pod_uid: String) -> Result<Found, Obstacle> {
    match pinned(node).filter(|pin| *pin != id) {
        Some(pin) => {
            Err(Obstacle::pending("IdentityMismatch", format!("the node is {id}, but spec.nodeId is {pin}")))
        }
        None => Ok(Found { id, pod_uid: Some(pod_uid) }),
    }
}

/// The identity with which this storage node had a role, if it has another one now.
fn changed(node: &GarageNode, id: &str) -> Option<String> {
    let status = node.status.as_ref().filter(|status| status.in_layout && !node.spec.gateway)?;
    status.node_id.clone().filter(|before| before != id)
}

/// Records an identity, in the API server and in `node`, before anything is done with it.
pub(super) async fn record(
    context: &Context,
    node: &mut GarageNode,
    found: &Found,
) -> Result<(), ReconcileError> {
    let mut status = node.status.clone().unwrap_or_default();
    if status.node_id.as_ref() == Some(&found.id) && status.observed_pod_uid == found.pod_uid {
        return Ok(());
    }
    status.node_id = Some(found.id.clone());
    status.observed_pod_uid.clone_from(&found.pod_uid);
    write_status(&context.client, node, &status).await?;
    node.status = Some(status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{accept, changed};
    use crate::api::v1beta1::{GarageNode, GarageNodeSpec, GarageNodeStatus};
    use rstest::rstest;

    fn node(pin: Option<&str>, before: Option<(&str, bool)>) -> GarageNode {
        let mut node = GarageNode::new(
            "garage-0",
            GarageNodeSpec { node_id: pin.map(str::to_owned), ..GarageNodeSpec::default() },
        );
        node.status = before.map(|(id, in_layout)| GarageNodeStatus {
            node_id: Some(id.to_owned()),
            in_layout,
            ..GarageNodeStatus::default()
        });
        node
    }

    #[rstest]
    #[case(node(None, None), None)]
    #[case(node(Some("AA"), None), None)]
    #[case(node(Some("bb"), None), Some("IdentityMismatch"))]
    #[case(node(None, Some(("aa", true))), None)]
    #[case(node(None, Some(("bb", false))), None)]
    #[case(node(Some("aa"), Some(("bb", true))), None)]
    fn an_identity_is_accepted_unless_a_pin_speaks_against_it(
        #[case] node: GarageNode,
        #[case] refused: Option<&str>,
    ) {
        let result = accept(&node, "aa".into(), "uid".into());
        assert_eq!(result.err().map(|obstacle| obstacle.reason), refused);
    }

    #[rstest]
    #[case(node(None, None), false)]
    #[case(node(None, Some(("aa", true))), false)]
    #[case(node(None, Some(("bb", false))), false)]
    #[case(node(None, Some(("bb", true))), true)]
    fn an_identity_has_changed_if_the_old_one_had_a_role(#[case] node: GarageNode, #[case] has: bool) {
        assert_eq!(changed(&node, "aa").is_some(), has);
    }
}
