//! Any order of staging, applying, reverting, synchronising and delivering whole states among three copies of a layout.
//!
//! Each pair of bytes is something that happens. Merging a state again changes nothing, versions and trackers only
//! grow, what a node keeps is consistent, and after everybody has heard everybody nothing changes any more.

use fake_garage::layout::{
    ConsistencyMode, LayoutHistory, LocalLayout, NodeId, Parameters, Role, StageRequest, ZoneRedundancy,
};

/// No input does more than this: an assignment costs a millisecond.
const HAPPENINGS: usize = 40;

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let mut nodes: Vec<_> = [0_u8, 1, 2].map(|node| start(node, 10)).into();
    let mut clocks = [10_u64; 3];
    for pair in data.chunks_exact(2).take(HAPPENINGS) {
        let (kind, detail) = (pair[0], pair[1]);
        let at = usize::from(detail) % nodes.len();
        clocks[at] += u64::from(detail >> 2);
        happen(&mut nodes, at, kind, detail, clocks[at]);
        assert!(nodes.iter().all(|node| node.history().is_consistent() || node.current().number == 0));
    }
    settle(&mut nodes);
}

fn start(node: u8, now: u64) -> LocalLayout {
    LocalLayout::start(id(node), ConsistencyMode::Consistent, LayoutHistory::fresh(2, now))
}

const fn id(node: u8) -> NodeId {
    NodeId::new([node; 32])
}

fn happen(nodes: &mut [LocalLayout], at: usize, kind: u8, detail: u8, now: u64) {
    match kind % 8 {
        0 | 1 => {
            let zone = if kind & 0x10 == 0 { "a" } else { "b" };
            let capacity =
                (kind & 0x20 == 0).then(|| u64::from(detail) << (kind >> 3)).filter(|size| *size >= 1024);
            let role = Role { zone: zone.to_owned(), capacity, tags: Vec::new() };
            stage(&mut nodes[at], vec![(id(detail % 5), Some(role))], None, now);
        }
        2 => stage(&mut nodes[at], vec![(id(detail % 5), None)], None, now),
        3 => {
            let zones = usize::from(kind >> 3).clamp(1, 2);
            let parameters = Parameters { zone_redundancy: ZoneRedundancy::AtLeast(zones) };
            stage(&mut nodes[at], Vec::new(), Some(parameters), now);
        }
        4 => {
            let next = nodes[at].current().number + u64::from(kind >> 3) % 2 + 1;
            if let Ok(computed) = nodes[at].apply(next, now) {
                nodes[at].adopt(&computed.history);
            }
        }
        5 => {
            let reverted = nodes[at].revert(now);
            nodes[at].adopt(&reverted);
        }
        6 => {
            let round = nodes[at].sync_round();
            nodes[at].finish_sync(round);
        }
        _ => {
            deliver(nodes, (at + 1 + usize::from(kind >> 3) % 2) % 3, at);
        }
    }
}

fn stage(
    node: &mut LocalLayout,
    roles: Vec<(NodeId, Option<Role>)>,
    parameters: Option<Parameters>,
    now: u64,
) {
    if let Ok(staged) = node.stage(&StageRequest { roles, parameters }, now) {
        node.adopt(&staged);
    }
}

fn deliver(nodes: &mut [LocalLayout], from: usize, to: usize) -> bool {
    let state = nodes[from].history().clone();
    let before = nodes[to].current().number;
    let changed = nodes[to].merge(&state).changed;
    assert!(nodes[to].current().number >= before, "a merge took a version away");
    assert!(!nodes[to].merge(&state).changed, "the same state again changed something");
    changed
}

/// Everybody hears of everybody until nothing changes; more rounds than nodes and trackers would be a disagreement.
fn settle(nodes: &mut [LocalLayout]) {
    for _ in 0..64 {
        let mut changed = false;
        for from in 0..nodes.len() {
            for to in (0..nodes.len()).filter(|to| *to != from) {
                changed |= deliver(nodes, from, to);
            }
        }
        if !changed {
            return;
        }
    }
    panic!("the copies never agree on what to keep");
}
