//! A storage node that comes back as somebody else: when its new identity may take the place of the old one.

use kube::ResourceExt;

use super::assignment::identity;
use super::node_state::Obstacle;
use crate::api::naming::ACKNOWLEDGE_LOST_SOURCE;
use crate::api::v1beta1::GarageNode;

/// What is known about the old identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Old<'a> {
    /// Its node ID.
    pub id: &'a str,
    /// It has a role in the current layout.
    pub has_role: bool,
    /// It is up in the view of the cluster.
    pub up: bool,
}

/// The identity whose loss a person acknowledged on this node, in lower case.
pub fn acknowledged(node: &GarageNode) -> Option<String> {
    node.annotations().get(ACKNOWLEDGE_LOST_SOURCE).map(|id| id.trim().to_ascii_lowercase())
}

/// The identity that this node had, whose role is to be removed: its loss was acknowledged, and the node has another one
/// since.
pub fn lost_source(node: &GarageNode) -> Option<String> {
    let lost = acknowledged(node)?;
    let well_formed = lost.len() == 64 && lost.bytes().all(|digit| digit.is_ascii_hexdigit());
    let replaced = identity(node).is_some_and(|id| id != lost);
    (well_formed && replaced && !node.spec.gateway && node.spec.external.is_none()).then_some(lost)
}

/// Why `new` may not take the place of the old identity; `None` if it may: nothing in the layout names the old one any
/// more, or its loss was acknowledged where the layout may be changed.
pub fn refusal(node: &GarageNode, old: Old<'_>, new: &str, follows: bool) -> Option<Obstacle> {
    if !old.has_role {
        return None;
    }
    let told = format!("the node was {} with a role in the layout and is now {new}", old.id);
    let failed = |why: String| Some(Obstacle::failed("IdentityChanged", format!("{told}: {why}")));
    if old.up {
        return failed("somebody else runs under the old identity".to_owned());
    }
    if follows {
        return failed(format!("its metadata was lost; the writer site must remove the role of {}", old.id));
    }
    if acknowledged(node).as_deref() == Some(old.id) {
        return None;
    }
    failed(format!(
        "its metadata was lost; bring the old volume back, or give the old role up with the annotation \
         {ACKNOWLEDGE_LOST_SOURCE}: {}",
        old.id
    ))
}

#[cfg(test)]
mod tests {
    use super::{ACKNOWLEDGE_LOST_SOURCE, Old, lost_source, refusal};
    use crate::api::v1beta1::{GarageNode, GarageNodeSpec, GarageNodeStatus};
    use rstest::rstest;

    const OLD: &str = "abababababababababababababababababababababababababababababababab";
    const NEW: &str = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";

    fn node(annotation: Option<&str>, recorded: &str) -> GarageNode {
        let mut node = GarageNode::new("garage-0", GarageNodeSpec::default());
        let value = |id: &str| [(ACKNOWLEDGE_LOST_SOURCE.to_owned(), id.to_owned())].into();
        node.metadata.annotations = annotation.map(value);
        node.status =
            Some(GarageNodeStatus { node_id: Some(recorded.to_owned()), ..GarageNodeStatus::default() });
        node
    }

    #[rstest]
    #[case::nothing_is_left(None, false, false, false, None)]
    #[case::nothing_is_left_at_a_follower(None, false, false, true, None)]
    #[case::not_acknowledged(None, true, false, false, Some("acknowledge-lost-source: abab"))]
    #[case::another_one_acknowledged(Some(NEW), true, false, false, Some("acknowledge-lost-source: abab"))]
    #[case::acknowledged(Some(OLD), true, false, false, None)]
    #[case::acknowledged_but_alive(Some(OLD), true, true, false, Some("somebody else runs"))]
    #[case::acknowledged_at_a_follower(Some(OLD), true, false, true, Some("the writer site must remove"))]
    fn a_new_identity_takes_a_place_only_when_the_old_one_is_given_up(
        #[case] annotation: Option<&str>,
        #[case] has_role: bool,
        #[case] up: bool,
        #[case] follows: bool,
        #[case] says: Option<&str>,
    ) {
        let refused = refusal(&node(annotation, OLD), Old { id: OLD, has_role, up }, NEW, follows);
        match says {
            None => assert_eq!(refused, None),
            Some(part) => assert!(refused.as_ref().unwrap().message.contains(part), "{refused:?}"),
        }
    }

    #[rstest]
    #[case(Some(OLD), NEW, Some(OLD))]
    #[case(Some(OLD), OLD, None)]
    #[case(Some("short"), NEW, None)]
    #[case(None, NEW, None)]
    fn the_role_of_an_identity_goes_once_the_node_has_another_one(
        #[case] annotation: Option<&str>,
        #[case] recorded: &str,
        #[case] lost: Option<&str>,
    ) {
        assert_eq!(lost_source(&node(annotation, recorded)).as_deref(), lost);
    }
}
