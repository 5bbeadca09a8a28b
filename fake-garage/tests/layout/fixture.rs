//! Copies of a layout at two sites, exchanged by hand.

#![allow(clippy::unnecessary_wraps, reason = "a change is a role or a removal")]

use fake_garage::layout::{
    Change, ConsistencyMode, LayoutEvent, LayoutHistory, LocalLayout, Merge, NodeId, Parameters, Role,
    StageRequest, ZoneRedundancy,
};

pub(crate) const A1: NodeId = NodeId::new([0xa1; 32]);
pub(crate) const A2: NodeId = NodeId::new([0xa2; 32]);
pub(crate) const B1: NodeId = NodeId::new([0xb1; 32]);
pub(crate) const B2: NodeId = NodeId::new([0xb2; 32]);
/// A node that is nobody's.
pub(crate) const X: NodeId = NodeId::new([0xc1; 32]);
/// Another one.
pub(crate) const Y: NodeId = NodeId::new([0xc2; 32]);

pub(crate) const GB: u64 = 1_000_000_000;

/// A node that begins at `now`.
pub(crate) fn node(id: NodeId, factor: usize, now: u64) -> LocalLayout {
    LocalLayout::start(id, ConsistencyMode::Consistent, LayoutHistory::fresh(factor, now))
}

pub(crate) fn storage(zone: &str, gigabytes: u64) -> Change {
    Some(Role { zone: zone.to_owned(), capacity: Some(gigabytes * GB), tags: Vec::new() })
}

pub(crate) fn gateway(zone: &str) -> Change {
    Some(Role { zone: zone.to_owned(), capacity: None, tags: Vec::new() })
}

pub(crate) fn stage(node: &mut LocalLayout, roles: &[(NodeId, Change)], now: u64) -> Merge {
    let request = StageRequest { roles: roles.to_vec(), parameters: None };
    let state = node.stage(&request, now).unwrap();
    node.adopt(&state)
}

pub(crate) fn stage_redundancy(node: &mut LocalLayout, zones: usize, now: u64) {
    let parameters = Parameters { zone_redundancy: ZoneRedundancy::AtLeast(zones) };
    let request = StageRequest { roles: Vec::new(), parameters: Some(parameters) };
    let state = node.stage(&request, now).unwrap();
    node.adopt(&state);
}

/// Applies what is staged as the next version.
pub(crate) fn apply(node: &mut LocalLayout, now: u64) -> Vec<LayoutEvent> {
    let next = node.current().number + 1;
    let computed = node.apply(next, now).unwrap();
    node.adopt(&computed.history).events
}

pub(crate) fn revert(node: &mut LocalLayout, now: u64) {
    let state = node.revert(now);
    node.adopt(&state);
}

/// `to` receives the whole state of `from`.
pub(crate) fn send(from: &LocalLayout, to: &mut LocalLayout) -> Merge {
    to.merge(from.history())
}

/// Everybody receives everybody's state until nothing changes any more.
pub(crate) fn settle(nodes: &mut [&mut LocalLayout]) {
    loop {
        let mut changed = false;
        for from in 0..nodes.len() {
            let state = nodes[from].history().clone();
            for (place, to) in nodes.iter_mut().enumerate() {
                changed |= place != from && to.merge(&state).changed;
            }
        }
        if !changed {
            return;
        }
    }
}

/// Every node finishes the synchronisation it is asked for, and everybody hears of it.
pub(crate) fn synchronise(nodes: &mut [&mut LocalLayout]) {
    for node in nodes.iter_mut() {
        let round = node.sync_round();
        node.finish_sync(round);
    }
    settle(nodes);
}

/// Two nodes, one of each site, with version 1 on four storage nodes.
pub(crate) fn two_sites(now: u64) -> (LocalLayout, LocalLayout) {
    let (mut here, mut there) = (node(A1, 2, now), node(B1, 2, now));
    let roles =
        [(A1, storage("a", 100)), (A2, storage("a", 100)), (B1, storage("b", 100)), (B2, storage("b", 100))];
    stage(&mut here, &roles, now + 1);
    apply(&mut here, now + 2);
    settle(&mut [&mut here, &mut there]);
    (here, there)
}

/// The nodes with a change that a reader sees.
pub(crate) fn staged(node: &LocalLayout) -> Vec<NodeId> {
    node.history().visible_changes(false).map(|(id, _)| id).collect()
}

pub(crate) fn live(node: &LocalLayout) -> Vec<u64> {
    node.history().live().iter().map(|version| version.number).collect()
}

pub(crate) fn old(node: &LocalLayout) -> Vec<u64> {
    node.history().old().iter().map(|version| version.number).collect()
}
