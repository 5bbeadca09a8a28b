//! Phase and conditions of a `GarageNode` (operator contract §4.3).

use crate::api::condition::{DRAIN_PREPARED, READY, Verdict};

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
    /// How far the node is on its way out of the layout; `None` while it stays.
    pub drain: Option<Drain>,
}

/// How far a node is on its way out of the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Its role is gone and the layout is settled.
    Prepared,
    /// It never had a role.
    PreparedNotInLayout,
    /// Under way; says what it waits for.
    Preparing(String),
    /// The writer site has to remove the role, or the role may not be removed; says why.
    Blocked(String),
}

impl Drain {
    /// Whether the node may go.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Prepared | Self::PreparedNotInLayout)
    }

    /// What it waits for.
    pub fn waiting(&self) -> Option<&str> {
        match self {
            Self::Prepared | Self::PreparedNotInLayout => None,
            Self::Preparing(why) | Self::Blocked(why) => Some(why),
        }
    }

    fn verdict(&self) -> Verdict {
        let (reason, message) = match self {
            Self::Prepared => ("PreparedForDeletion", "the role is gone and the layout is settled"),
            Self::PreparedNotInLayout => ("PreparedNotInLayout", "the node has no role"),
            Self::Preparing(why) => ("Preparing", why.as_str()),
            Self::Blocked(why) => ("PreparationBlocked", why.as_str()),
        };
        Verdict::new(DRAIN_PREPARED, self.is_over(), reason, message)
    }
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
        NodeFacts { deleting: true, .. } | NodeFacts { drain: Some(_), .. } => "Draining",
        NodeFacts { obstacle: Some(Obstacle { failed: true, .. }), .. } => "Failed",
        NodeFacts { obstacle: None, connected: true, in_layout: true, .. } => "Running",
        _ => "Pending",
    }
}

/// Whether nothing is under way any more.
pub fn is_settled(facts: &NodeFacts) -> bool {
    if facts.deleting {
        return false;
    }
    match &facts.drain {
        Some(drain) => drain.is_over(),
        None => facts.obstacle.is_none() && facts.connected && facts.in_layout && facts.waiting.is_none(),
    }
}

/// All conditions of the node.
pub fn conditions(facts: &NodeFacts) -> Vec<Verdict> {
    std::iter::once(ready(facts)).chain(facts.drain.as_ref().map(Drain::verdict)).collect()
}

fn ready(facts: &NodeFacts) -> Verdict {
    let not = |reason, message: &str| Verdict::new(READY, false, reason, message);
    let waiting = facts.drain.as_ref().and_then(Drain::waiting).or(facts.waiting.as_deref());
    if facts.drain.is_some() && !facts.deleting {
        return not("Draining", waiting.unwrap_or("the node is ready to be deleted"));
    }
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
    use super::{Drain, NodeFacts, Obstacle, conditions, is_settled, phase, ready};
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

    #[rstest]
    #[case(Drain::Prepared, Holds::Yes, "PreparedForDeletion", true)]
    #[case(Drain::PreparedNotInLayout, Holds::Yes, "PreparedNotInLayout", true)]
    #[case(Drain::Preparing("w".into()), Holds::No, "Preparing", false)]
    #[case(Drain::Blocked("w".into()), Holds::No, "PreparationBlocked", false)]
    fn a_node_on_its_way_out_says_how_far_it_is(
        #[case] drain: Drain,
        #[case] holds: Holds,
        #[case] reason: &str,
        #[case] settled: bool,
    ) {
        let facts = NodeFacts { drain: Some(drain), ..facts(true, true) };
        let prepared = &conditions(&facts)[1];
        assert_eq!((prepared.holds, prepared.reason), (holds, reason));
        assert_eq!(phase(&facts), "Draining");
        assert_eq!(is_settled(&facts), settled);
    }

    #[test]
    fn a_node_with_a_pending_layout_change_is_not_settled() {
        let waiting = NodeFacts { waiting: Some("draining".into()), ..facts(true, true) };
        assert!(!is_settled(&waiting));
        assert!(is_settled(&facts(true, true)));
    }
}
