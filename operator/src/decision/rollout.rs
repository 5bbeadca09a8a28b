//! Which pod is replaced next when the workload of a node has changed: one at a time, and only while all others are
//! well (operator contract §3.1).

/// The pod of a managed node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePod {
    /// The `GarageNode`.
    pub node: String,
    /// It runs an older revision of its workload.
    pub outdated: bool,
    /// It is ready.
    pub ready: bool,
    /// Its Garage node is up in the view of the cluster, or there is no layout yet for that to matter.
    pub up: bool,
}

/// The next step of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// Every pod runs the current revision.
    Converged,
    /// This node is recorded as the one being replaced; nothing is done yet, or it has to come back.
    Waiting(String),
    /// The pod of this node, which is recorded, is deleted now.
    Replace(String),
    /// A pod has to be replaced, but not while another one is not well.
    Held(String),
}

/// Decides from the pods and the recorded node. A node is recorded first and replaced on the next pass, so that a
/// crash in between neither replaces two nor forgets one.
pub fn next(pods: &[NodePod], recorded: Option<&str>) -> Rollout {
    let well = |pod: &&NodePod| pod.ready && pod.up;
    if let Some(current) = pods.iter().find(|pod| Some(pod.node.as_str()) == recorded)
        && (current.outdated || !well(&current))
    {
        let others_well = pods.iter().filter(|pod| pod.node != current.node).all(|pod| well(&pod));
        return match (current.outdated, others_well) {
            (true, true) => Rollout::Replace(current.node.clone()),
            (true, false) => Rollout::Held(current.node.clone()),
            (false, _) => Rollout::Waiting(current.node.clone()),
        };
    }
    let Some(outdated) = pods.iter().find(|pod| pod.outdated) else { return Rollout::Converged };
    // A pod that is itself unwell is replaced first: its new revision may be the cure.
    let candidate = pods.iter().find(|pod| pod.outdated && !well(pod)).unwrap_or(outdated);
    let others_well = pods.iter().filter(|pod| pod.node != candidate.node).all(|pod| well(&pod));
    if others_well { Rollout::Waiting(candidate.node.clone()) } else { Rollout::Held(candidate.node.clone()) }
}

#[cfg(test)]
mod tests {
    use super::{NodePod, Rollout, next};
    use rstest::rstest;

    /// Pods `a`, `b`, … from letters: `.` is current and well, `o` outdated and well, `x` outdated and unwell,
    /// `-` current and unwell.
    fn pods(text: &str) -> Vec<NodePod> {
        let pod = |(name, state): (char, char)| NodePod {
            node: name.to_string(),
            outdated: matches!(state, 'o' | 'x'),
            ready: !matches!(state, 'x' | '-'),
            up: true,
        };
        ('a'..='z').zip(text.chars()).map(pod).collect()
    }

    #[rstest]
    #[case("..", None, Rollout::Converged)]
    #[case("..", Some("a"), Rollout::Converged)]
    #[case("oo", None, Rollout::Waiting("a".into()))]
    #[case("oo", Some("a"), Rollout::Replace("a".into()))]
    #[case("-o", Some("a"), Rollout::Waiting("a".into()))]
    #[case(".o", Some("a"), Rollout::Waiting("b".into()))]
    #[case("o-", None, Rollout::Held("a".into()))]
    #[case("o-", Some("a"), Rollout::Held("a".into()))]
    #[case("ox", None, Rollout::Waiting("b".into()))]
    #[case("ox", Some("b"), Rollout::Replace("b".into()))]
    fn one_pod_at_a_time_is_replaced(
        #[case] state: &str,
        #[case] recorded: Option<&str>,
        #[case] expected: Rollout,
    ) {
        assert_eq!(next(&pods(state), recorded), expected);
    }

    #[test]
    fn a_rollout_replaces_every_pod_and_ends() {
        let (mut pods, mut recorded, mut replaced) = (pods("ooo"), None::<String>, Vec::new());
        loop {
            match next(&pods, recorded.as_deref()) {
                Rollout::Converged => break,
                Rollout::Waiting(node) => recorded = Some(node),
                Rollout::Replace(node) => {
                    pods.iter_mut().filter(|pod| pod.node == node).for_each(|pod| pod.outdated = false);
                    replaced.push(node);
                }
                Rollout::Held(node) => panic!("held at {node}"),
            }
        }
        assert_eq!(replaced, ["a", "b", "c"]);
    }
}
