//! Tells by an event that a node has been without a role for long.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::super::context::Context;
use crate::api::condition::{READY, find};
use crate::api::v1beta1::GarageNode;
use crate::decision::node_state::NodeFacts;
use crate::mutant::{self, Mutant};

const REASON: &str = "AwaitingLayoutWriter";
const NOTE: &str = "the node is still without a role; the writer site must assign it";

/// One event, not one per reconcile, when a Follower's node stays without a role for long.
pub(super) async fn tell(context: &Context, node: &GarageNode, facts: &NodeFacts, follows: bool) {
    let awaits = follows && facts.obstacle.is_none() && facts.drain.is_none() && !facts.in_layout;
    if !awaits {
        return context.events.forget(node, REASON);
    }
    if mutant::is(Mutant::EventFlood) {
        context.events.warn(node, REASON, "AwaitLayoutWriter", NOTE).await;
    }
    if unready_for(node) >= context.settings.roleless_warning {
        context.events.warn_once(node, REASON, "AwaitLayoutWriter", NOTE).await;
    }
}

/// How long the node has not been ready, as its status says: a restart does not begin anew.
fn unready_for(node: &GarageNode) -> Duration {
    let conditions = node.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let since = find(conditions, READY).filter(|ready| ready.status == "False");
    let age = since.map(|ready| Timestamp::now().duration_since(ready.last_transition_time.0));
    age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::unready_for;
    use crate::api::v1beta1::{GarageNode, GarageNodeSpec, GarageNodeStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use k8s_openapi::jiff::{Span, Timestamp};
    use rstest::rstest;

    #[rstest]
    #[case("False", true)]
    #[case("True", false)]
    fn only_a_node_that_is_not_ready_waits(#[case] status: &str, #[case] waits: bool) {
        let since = Time(Timestamp::now().checked_sub(Span::new().minutes(5)).unwrap());
        let condition = Condition {
            type_: "Ready".into(),
            status: status.into(),
            reason: "NotInLayout".into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: since,
        };
        let mut node = GarageNode::new("garage-0", GarageNodeSpec::default());
        assert_eq!(unready_for(&node).as_secs(), 0);
        node.status = Some(GarageNodeStatus { conditions: vec![condition], ..GarageNodeStatus::default() });
        assert_eq!(unready_for(&node).as_secs() >= 300, waits);
    }
}
