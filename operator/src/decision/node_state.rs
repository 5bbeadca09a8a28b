//! Phase and conditions of a `GarageNode` (operator contract §4.3).

use crate::api::condition::{READY, Verdict};

/// What a reconcile learnt about a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Something stands in the way before Garage is even asked: no cluster, no pod, no identity.
    pub obstacle: Option<Obstacle>,
    /// The node is up in the view of its cluster.
    pub connected: bool,
    /// The node has a role in the current layout.
    pub in_layout: bool,
    /// What a layout change waits for.
    pub waiting: Option<String>,
    /// The object is being deleted.
    pub deleting: bool,
}

/// What stands in the way of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Reason in `CamelCase`.
    pub reason: &'static str,
    /// What a person should know.
    pub message: String,
    /// Waiting does not help; somebody has to change something.
    pub failed: bool,
}

impl Obstacle {
    /// Something that goes away by itself.
    pub fn pending(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), failed: false }
    }

    /// Something that somebody has to change.
    pub fn failed(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), failed: true }
    }
}

/// Phase of the node.
pub fn phase(facts: &NodeFacts) -> &'static str {
    match facts {
        NodeFacts { deleting: true, .. } => "Draining",
        NodeFacts { obstacle: Some(Obstacle { failed: true, .. }), .. } => "Failed",
        NodeFacts { obstacle: None, connected: true, in_layout: true, .. } => "Running",
        _ => "Pending",
    }
}

/// Whether nothing is under way any more.
pub fn is_settled(facts: &NodeFacts) -> bool {
    facts.obstacle.is_none()
        && facts.connected
        && facts.in_layout
        && facts.waiting.is_none()
        && !facts.deleting
}

/// The Ready condition of the node.
pub fn ready(facts: &NodeFacts) -> Verdict {
    let not = |reason, message: &str| Verdict::new(READY, false, reason, message);
    let waiting = facts.waiting.as_deref();
    if facts.deleting {
        return not("Deleting", waiting.unwrap_or("the node is being removed"));
    }
    if let Some(obstacle) = &facts.obstacle {
        return not(obstacle.reason, &obstacle.message);
    }
    if !facts.in_layout {
        return not("NotInLayout", waiting.unwrap_or("the node has no role in the layout"));
    }
    if !facts.connected {
        return not("NodeDisconnected", "the node is not up in the view of its cluster");
    }
    Verdict::new(READY, true, "NodeReady", waiting.unwrap_or("the node is connected and has a role"))
}

#[cfg(test)]
mod tests {
    use super::{NodeFacts, Obstacle, is_settled, phase, ready};
    use crate::api::condition::Holds;
    use rstest::rstest;

    fn facts(connected: bool, in_layout: bool) -> NodeFacts {
        NodeFacts { connected, in_layout, ..NodeFacts::default() }
    }

    #[rstest]
    #[case(facts(true, true), "Running", Holds::Yes, "NodeReady")]
    #[case(facts(false, true), "Pending", Holds::No, "NodeDisconnected")]
    #[case(facts(true, false), "Pending", Holds::No, "NotInLayout")]
    #[case(NodeFacts { deleting: true, ..facts(true, true) }, "Draining", Holds::No, "Deleting")]
    #[case(
        NodeFacts { obstacle: Some(Obstacle::pending("PodNotReady", "")), ..facts(true, true) },
        "Pending", Holds::No, "PodNotReady"
    )]
    #[case(
        NodeFacts { obstacle: Some(Obstacle::failed("IdentityChanged", "")), ..facts(true, true) },
        "Failed", Holds::No, "IdentityChanged"
    )]
    fn a_node_says_how_it_is(
        #[case] facts: NodeFacts,
        #[case] expected: &str,
        #[case] holds: Holds,
        #[case] reason: &str,
    ) {
        assert_eq!(phase(&facts), expected);
        let verdict = ready(&facts);
        assert_eq!((verdict.holds, verdict.reason), (holds, reason));
    }

    #[test]
    fn a_node_with_a_pending_layout_change_is_not_settled() {
        let waiting = NodeFacts { waiting: Some("draining".into()), ..facts(true, true) };
        assert!(!is_settled(&waiting));
        assert!(is_settled(&facts(true, true)));
    }
}
