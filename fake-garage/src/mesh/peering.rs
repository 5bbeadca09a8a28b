//! How nodes find, keep and lose each other (Garage admin reference §5 and §10).

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use sha2::{Digest as _, Sha256};

use super::clock::next_beat;
use super::events::{Event, Message};
use super::node::NodeIndex;
use super::pacing::PING_FAILURES;
use super::peer::{Fate, Link, Peer};
use super::{Cut, Mesh, Node, Output, Process, Sender, Time};
use crate::layout::NodeId;

/// What happens to an attempt to connect to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The node of that identity and secret answers.
    Answers(NodeIndex),
    /// The process there is frozen: the connection stands and nothing comes.
    Silent(NodeIndex),
    /// Nothing listens there, or something refuses.
    Refused,
    /// Packets vanish.
    Vanishes,
    /// Another identity or another secret answers.
    Stranger,
    /// Something answers that is no node.
    NoNode,
}

impl Mesh {
    /// What an attempt of `from` to reach `id` at `address` would meet.
    pub(super) fn reach(&self, from: NodeIndex, id: NodeId, address: SocketAddr) -> Reach {
        let alive = |node: &Node| !matches!(node.process, Process::Ended { .. });
        let there = self.nodes().find(|(_, node)| node.config.address == address.ip() && alive(node));
        let Some((index, node)) = there else { return Reach::Refused };
        match self.cut_between(from, index) {
            Some(Cut::Reset) => return Reach::Refused,
            Some(Cut::Silent) => return Reach::Vanishes,
            None => {}
        }
        if address.port() != node.config.rpc_address().port() {
            return if is_other_service(address.port()) { Reach::NoNode } else { Reach::Refused };
        }
        if node.process == Process::Frozen {
            return Reach::Silent(index);
        }
        let secret = &self.node(from).config.rpc_secret;
        if node.id == id && node.config.rpc_secret == *secret {
            Reach::Answers(index)
        } else {
            Reach::Stranger
        }
    }

    /// `from` is now connected to `to`, which hears of it by that.
    pub(super) fn link(&mut self, from: NodeIndex, to: NodeIndex) {
        let (now, boot) = (self.now, self.node(to).boot);
        let (to_id, to_address) = (self.node(to).id, self.node(to).config.rpc_address());
        let node = self.node_mut(from);
        let peer = node.peers.entry(to_id).or_insert_with(|| Peer::heard_of(None, now));
        if peer.address.replace(to_address) != Some(to_address) {
            node.known = OnceLock::new();
        }
        peer.connected(boot);
        self.hurry(from);
        let (from_id, from_address) = (self.node(from).id, self.node(from).config.rpc_address());
        self.hear_of(to, from_id, Some(from_address));
        self.expect_peering(from);
        self.expect_peering(to);
    }

    /// `node` learns that `id` exists at `address`.
    pub(super) fn hear_of(&mut self, node: NodeIndex, id: NodeId, address: Option<SocketAddr>) {
        let now = self.now;
        let node = self.node_mut(node);
        if id == node.id {
            return;
        }
        let is_new = !node.peers.contains_key(&id);
        let peer = node.peers.entry(id).or_insert_with(|| Peer::heard_of(address, now));
        let has_moved = address.is_some() && !peer.is_up() && peer.address != address;
        if has_moved {
            peer.address = address;
        }
        peer.encourage(now);
        if is_new || has_moved {
            node.known = OnceLock::new();
        }
    }

    /// Marks the connection of `from` to `to` as torn; `from` notices at its next write.
    pub(super) fn tear(&mut self, from: NodeIndex, to: NodeIndex) {
        let id = self.node(to).id;
        self.set_fate(from, id, Fate::Torn);
    }

    fn set_fate(&mut self, from: NodeIndex, to: NodeId, now: Fate) {
        if let Some(Link::Up { fate, .. }) = self.node_mut(from).peers.get_mut(&to).map(|peer| &mut peer.link)
        {
            *fate = now;
        }
    }

    /// Sends a message over `from`'s own connection. A connection that turns out to be dead is given up.
    pub(super) fn send(&mut self, from: NodeIndex, to: NodeId, message: Message) {
        let Some(Link::Up { boot, fate }) = self.node(from).peers.get(&to).map(|peer| peer.link) else {
            return;
        };
        match self.find_alive(to).filter(|index| self.node(*index).boot == boot) {
            Some(index) if fate == Fate::Intact => self.deliver(from, index, boot, message),
            None if fate == Fate::Intact => self.set_fate(from, to, Fate::Lost),
            _ => self.disconnect(from, to),
        }
    }

    /// Sends a message back over the connection of `to`.
    pub(super) fn reply(&mut self, from: NodeIndex, to: Sender, message: Message) {
        if self.node(to.index).boot == to.boot {
            self.deliver(from, to.index, to.boot, message);
        }
    }

    fn deliver(&mut self, from: NodeIndex, to: NodeIndex, boot: u64, message: Message) {
        if self.cut_between(from, to).is_some() {
            return;
        }
        let mut delay = self.random.duration(&self.pacing.delivery) + self.extra_delay(from, to);
        if self.pacing.delayed_per_mille > 0 && self.random.chance(self.pacing.delayed_per_mille) {
            delay += self.pacing.delivery_delay;
        }
        if matches!(message, Message::Trackers(_)) {
            delay += self.random.duration(&self.pacing.trackers);
        }
        let event = Event::Arrival { from, from_boot: self.node(from).boot, message };
        self.queue.add(self.now + delay, to, boot, event);
    }

    /// Gives up `node`'s own connection to `peer`; it is dialled again soon.
    pub(crate) fn disconnect(&mut self, node: NodeIndex, peer: NodeId) {
        let now = self.now;
        if let Some(peer) = self.node_mut(node).peers.get_mut(&peer).filter(|peer| peer.is_up()) {
            peer.disconnected(now);
            self.outputs.push(Output::Disconnected { node });
        }
        self.expect_peering(node);
    }

    /// Has the peering loop come round when something is due, on the node's own beat.
    pub(super) fn expect_peering(&mut self, index: NodeIndex) {
        let ping = self.pacing.ping;
        let node = self.node(index);
        let due = node.peers.values().filter_map(|peer| match peer.link {
            Link::Up { .. } => Some(peer.pinged.map_or(self.now, |at| at + ping)),
            Link::Down { retry, .. } => retry.filter(|_| peer.address.is_some()),
            Link::Dialling { .. } => None,
        });
        let is_saved = self.pacing.skips_idle && node.saved == Some(known(node));
        let to_save = !node.peers.is_empty() && !is_saved;
        let due = due.chain(to_save.then_some(node.peers_saved + self.pacing.save_peers)).min();
        let Some(due) = due else { return };
        // A beat at which something is due, but never this very moment.
        let before = due.max(self.now).saturating_sub(Time::from_nanos(u64::from(due > self.now)));
        // The loop runs a little behind the exchange of status (capture 11).
        let at = next_beat(node.started + self.pacing.peering / 100, self.pacing.peering, before);
        if node.peering_at.is_none_or(|planned| planned > at) {
            self.node_mut(index).peering_at = Some(at);
            self.schedule(at, index, Event::Peering);
        }
    }

    pub(super) fn peering_round(&mut self, index: NodeIndex) {
        if self.node(index).peering_at != Some(self.now) {
            return;
        }
        self.node_mut(index).peering_at = None;
        self.save_peers_if_due(index);
        self.tend_all(index);
        self.expect_peering(index);
    }

    /// Pings or dials every peer for which that is due.
    pub(super) fn tend_all(&mut self, index: NodeIndex) {
        let peers: Vec<_> = self.node(index).peers.keys().copied().collect();
        for id in peers {
            self.tend(index, id);
        }
    }

    fn save_peers_if_due(&mut self, index: NodeIndex) {
        if self.now >= self.node(index).peers_saved + self.pacing.save_peers {
            self.save_peers(index);
        }
    }

    pub(super) fn save_peers(&mut self, index: NodeIndex) {
        let now = self.now;
        let node = self.node_mut(index);
        node.peers_saved = now;
        node.files.peers = addresses(node);
        node.saved = Some(known(node));
    }

    /// Pings a peer, or dials it, whichever is due.
    fn tend(&mut self, index: NodeIndex, id: NodeId) {
        let now = self.now;
        // Where idle meshes are to cost little, pings that are due soon go with one that is due now.
        let soon = if self.pacing.skips_idle { now + self.pacing.ping / 4 } else { now };
        let Some(peer) = self.node(index).peers.get(&id) else { return };
        match (peer.link, peer.address) {
            (Link::Up { .. }, _) if peer.pinged.is_none_or(|at| at + self.pacing.ping <= soon) => {
                self.ping(index, id);
            }
            (Link::Down { failures, retry: Some(retry) }, Some(address)) if retry <= now => {
                self.dial(index, id, address, failures);
            }
            _ => {}
        }
    }

    fn dial(&mut self, index: NodeIndex, id: NodeId, address: SocketAddr, failures: u32) {
        let failed_at = match self.reach(index, id, address) {
            Reach::Answers(to) => match self.handshake(index, to) {
                Some(Time::ZERO) => return self.link(index, to),
                Some(time) => {
                    let boot = self.await_link(index, to);
                    self.schedule(self.now + time, index, Event::Linked { to, boot });
                    return;
                }
                None => self.now + self.pacing.dial_timeout,
            },
            Reach::Silent(to) => {
                self.await_link(index, to);
                return;
            }
            Reach::Vanishes => self.now + self.pacing.dial_timeout,
            Reach::Refused | Reach::Stranger | Reach::NoNode => self.now,
        };
        let failures = failures + 1;
        let retry = (failures < self.pacing.dial_failures).then(|| failed_at + self.pacing.redial);
        if let Some(peer) = self.node_mut(index).peers.get_mut(&id) {
            peer.link = Link::Down { failures, retry };
        }
    }

    /// Extra time until a connection over slow links stands: one round trip for TCP, one for the handshake. `None`
    /// where the first takes longer than is waited for it.
    pub(super) fn handshake(&mut self, from: NodeIndex, to: NodeIndex) -> Option<Time> {
        let opened = self.extra_round_trip(from, to);
        let known = self.extra_round_trip(from, to);
        (opened <= self.pacing.dial_timeout).then(|| opened + known)
    }

    fn await_link(&mut self, from: NodeIndex, to: NodeIndex) -> u64 {
        let (id, boot) = (self.node(to).id, self.node(to).boot);
        if let Some(peer) = self.node_mut(from).peers.get_mut(&id) {
            peer.link = Link::Dialling { boot };
        }
        boot
    }

    /// A connection over slow links would stand now, if everything is as it was.
    pub(super) fn linked(&mut self, from: NodeIndex, to: NodeIndex, boot: u64) {
        let (id, now) = (self.node(to).id, self.now);
        let dialling = |peer: &Peer| peer.link == Link::Dialling { boot };
        if !self.node(from).peers.get(&id).is_some_and(dialling) {
            return;
        }
        match self.reach(from, id, self.node(to).config.rpc_address()) {
            Reach::Answers(_) => self.link(from, to),
            // It will be let in when the process goes on.
            Reach::Silent(_) => {}
            _ => {
                if let Some(peer) = self.node_mut(from).peers.get_mut(&id) {
                    peer.disconnected(now);
                }
                self.expect_peering(from);
            }
        }
    }

    /// The process at the other end of a connection, if it runs and nothing is between.
    pub(super) fn undisturbed(&self, from: NodeIndex, to: NodeId, peer: &Peer) -> Option<NodeIndex> {
        let Link::Up { boot, fate: Fate::Intact } = peer.link else { return None };
        let index = self.find_alive(to)?;
        let other = self.node(index);
        (other.boot == boot && other.is_running() && self.is_clear(from, index)).then_some(index)
    }

    /// Whether a ping would only tell that the other node is there.
    fn is_sure_to_answer(&self, index: NodeIndex, id: NodeId, peers: u64) -> bool {
        let peer = self.node(index).peers.get(&id);
        let there = peer.and_then(|peer| self.undisturbed(index, id, peer));
        there.is_some_and(|there| known(self.node(there)) == peers)
    }

    fn ping(&mut self, index: NodeIndex, id: NodeId) {
        let (now, timeout) = (self.now, self.pacing.ping_timeout);
        let peers = known(self.node(index));
        if self.pacing.skips_idle && self.is_sure_to_answer(index, id, peers) {
            if let Some(peer) = self.node_mut(index).peers.get_mut(&id) {
                peer.answered_at_once(now);
            }
            return;
        }
        let Some(peer) = self.node_mut(index).peers.get_mut(&id) else { return };
        peer.pinged = Some(now);
        peer.pings += 1;
        let sequence = peer.pings;
        self.schedule(now + timeout, index, Event::PingTimeout { peer: id, sequence });
        self.send(index, id, Message::Ping { sequence, peers });
    }

    pub(super) fn pinged(&mut self, node: NodeIndex, from: Sender, sequence: u64, _peers: u64) {
        let peers = known(self.node(node));
        self.reply(node, from, Message::Pong { sequence, peers });
    }

    pub(super) fn ponged(&mut self, node: NodeIndex, from: Sender, sequence: u64, peers: u64) {
        let (now, id, timeout) = (self.now, self.node(from.index).id, self.pacing.ping_timeout);
        if let Some(peer) = self.node_mut(node).peers.get_mut(&id)
            && sequence == peer.pings
            && peer.pinged.is_some_and(|at| now <= at + timeout)
        {
            peer.last_seen = Some(now);
            peer.failed_pings = 0;
        }
        if peers != known(self.node(node)) {
            let known = Arc::new(addresses(self.node(node)));
            self.send(node, id, Message::Peers { known, answer: true });
        }
    }

    pub(super) fn ping_timeout(&mut self, node: NodeIndex, id: NodeId, sequence: u64) {
        let Some(peer) = self.node_mut(node).peers.get_mut(&id) else { return };
        let answered = peer.last_seen >= peer.pinged;
        if sequence != peer.pings || answered || !peer.is_up() {
            return;
        }
        peer.failed_pings += 1;
        if peer.failed_pings >= PING_FAILURES {
            self.disconnect(node, id);
        }
    }

    pub(super) fn peers_told(
        &mut self,
        node: NodeIndex,
        from: Sender,
        told: &[(NodeId, SocketAddr)],
        answer: bool,
    ) {
        for (id, address) in told {
            let unknown = self.node(node).peers.get(id).is_none_or(|peer| !peer.is_up());
            if unknown {
                self.hear_of(node, *id, Some(*address));
            }
        }
        self.expect_peering(node);
        if answer {
            let known = Arc::new(addresses(self.node(node)));
            self.reply(node, from, Message::Peers { known, answer: false });
        }
    }
}

fn is_other_service(port: u16) -> bool {
    // S3, K2V, web, admin.
    matches!(port, 3900 | 3902 | 3903 | 3904)
}

/// The addresses a node knows, its own included.
fn addresses(node: &Node) -> Vec<(NodeId, SocketAddr)> {
    let peers = node.peers.iter().filter_map(|(id, peer)| Some((*id, peer.address?)));
    let own = (node.id, node.config.rpc_address());
    peers.chain(std::iter::once(own)).collect()
}

/// Digest of what [`addresses`] gives: nodes that know the same nodes have the same.
fn known(node: &Node) -> u64 {
    *node.known.get_or_init(|| digest_of_known(node))
}

fn digest_of_known(node: &Node) -> u64 {
    let mut known = addresses(node);
    known.sort_unstable();
    let mut hasher = Sha256::new();
    for (id, address) in known {
        hasher.update(id.as_bytes());
        hasher.update(address.to_string());
    }
    hasher.finalize().iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}
