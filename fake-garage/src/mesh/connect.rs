//! `ConnectClusterNodes`: dialling nodes on request (Garage admin reference §5).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::events::Event;
use super::node::NodeIndex;
use super::peer::{Link, Peer};
use super::peering::Reach;
use super::{Mesh, Output};
use crate::layout::NodeId;

/// An entry of a request to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A node at an address.
    Node {
        /// Who should answer there.
        id: NodeId,
        /// Where.
        address: SocketAddr,
    },
    /// An entry that names no node, or a host that does not resolve.
    Unusable {
        /// The entry as it was given.
        entry: String,
    },
}

/// What a node finds around it that is not part of its mesh.
pub trait Surroundings {
    /// The address of a host name, as the node's site resolves it.
    fn resolve(&self, host: &str) -> Option<IpAddr>;

    /// Whether something listens at `address` that is no node of the mesh.
    fn stranger_at(&self, address: SocketAddr) -> bool;
}

/// Surroundings without names and strangers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Surroundings for Nowhere {
    fn resolve(&self, host: &str) -> Option<IpAddr> {
        host.parse().ok()
    }

    fn stranger_at(&self, _: SocketAddr) -> bool {
        false
    }
}

/// What became of one entry: nothing on success, else Garage's error text.
pub type Connected = Result<(), String>;

/// How an attempt ended.
#[derive(Debug, Clone)]
pub(super) enum Dialled {
    Reached(NodeIndex),
    Failed(String),
}

/// Attempts of one call that are not over.
#[derive(Debug)]
pub(super) struct Attempts {
    results: Vec<Option<Connected>>,
}

impl Target {
    /// Reads an entry `id@host:port`.
    #[must_use]
    pub fn parse(entry: &str, surroundings: &dyn Surroundings) -> Self {
        Self::node(entry, surroundings).unwrap_or_else(|| Self::Unusable { entry: entry.to_owned() })
    }

    fn node(entry: &str, surroundings: &dyn Surroundings) -> Option<Self> {
        let (id, place) = entry.split_once('@')?;
        let id = NodeId::parse(id).ok()?;
        let (host, port) = place.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = match host.parse::<IpAddr>() {
            Ok(address) => address,
            Err(_) => surroundings.resolve(host)?,
        };
        Some(Self::Node { id, address: SocketAddr::new(address, port.parse().ok()?) })
    }
}

impl Mesh {
    /// Begins to connect a node to others, and gives a ticket. [`Output::Connected`] tells that all attempts are
    /// over; it never comes while a frozen process holds one of them.
    pub fn connect(&mut self, node: NodeIndex, targets: &[Target], surroundings: &dyn Surroundings) -> u64 {
        let ticket = self.ticket();
        self.node_mut(node).attempts.insert(ticket, Attempts { results: vec![None; targets.len()] });
        for (place, target) in targets.iter().enumerate() {
            self.attempt(node, ticket, place, target, surroundings);
        }
        self.finish_attempts(node, ticket);
        ticket
    }

    fn attempt(
        &mut self,
        node: NodeIndex,
        ticket: u64,
        place: usize,
        target: &Target,
        surroundings: &dyn Surroundings,
    ) {
        let (id, address) = match target {
            Target::Unusable { entry } => {
                let text = format!("Unable to parse or resolve node specification: {entry}");
                return self.attempted(node, ticket, place, Err(text));
            }
            Target::Node { id, address } => (*id, *address),
        };
        if self.node(node).sees_up(id) {
            return self.attempted(node, ticket, place, Ok(()));
        }
        let failed = |reason: &str| Dialled::Failed(refusal(id, address, reason));
        let mut at_once = false;
        let (delay, outcome) = match self.reach(node, id, address) {
            Reach::Answers(to) => match self.handshake(node, to) {
                Some(extra) => {
                    // Where meshes are to settle fast, the answer is there at once.
                    at_once = extra.is_zero() && self.pacing.status_eager < self.pacing.status;
                    (self.random.duration(&self.pacing.delivery) + extra, Dialled::Reached(to))
                }
                None => (self.pacing.dial_timeout, failed(&format!("connect to {address} timed out"))),
            },
            Reach::Refused if surroundings.stranger_at(address) => (super::Time::ZERO, failed(EOF)),
            Reach::Refused => (super::Time::ZERO, failed("IO error: Connection refused (os error 111)")),
            Reach::Stranger => (super::Time::ZERO, failed(EOF)),
            Reach::NoNode => (super::Time::ZERO, failed(NO_NODE)),
            Reach::Vanishes => (self.pacing.dial_timeout, failed(&format!("connect to {address} timed out"))),
            Reach::Silent(to) => return self.wait_for(node, to, (ticket, place)),
        };
        if delay.is_zero() || at_once {
            self.dialled(node, ticket, place, outcome);
        } else {
            self.schedule(self.now + delay, node, Event::Dialled { ticket, place, outcome });
        }
    }

    /// The call hangs until the frozen process goes on or ends.
    fn wait_for(&mut self, node: NodeIndex, to: NodeIndex, attempt: (u64, usize)) {
        let boot = self.node(node).boot;
        self.node_mut(to).knocking.push(Knock { node, boot, attempt });
    }

    pub(super) fn dialled(&mut self, node: NodeIndex, ticket: u64, place: usize, outcome: Dialled) {
        let result = match outcome {
            Dialled::Reached(to) => {
                self.link(node, to);
                Ok(())
            }
            Dialled::Failed(text) => Err(text),
        };
        self.attempted(node, ticket, place, result);
        self.finish_attempts(node, ticket);
    }

    fn attempted(&mut self, node: NodeIndex, ticket: u64, place: usize, result: Connected) {
        let attempts = self.node_mut(node).attempts.get_mut(&ticket);
        if let Some(slot) = attempts.and_then(|attempts| attempts.results.get_mut(place)) {
            *slot = Some(result);
        }
    }

    fn finish_attempts(&mut self, node: NodeIndex, ticket: u64) {
        let Some(attempts) = self.node(node).attempts.get(&ticket) else { return };
        let results: Option<Vec<_>> = attempts.results.iter().cloned().collect();
        if let Some(results) = results {
            self.node_mut(node).attempts.remove(&ticket);
            self.outputs.push(Output::Connected { ticket, results });
        }
    }

    /// Lets the connections through that waited for a frozen process.
    pub(super) fn answer_knocks(&mut self, to: NodeIndex) {
        for Knock { node, boot, attempt: (ticket, place) } in std::mem::take(&mut self.node_mut(to).knocking)
        {
            if self.node(node).boot == boot {
                self.dialled(node, ticket, place, Dialled::Reached(to));
            }
        }
        let (id, boot) = (self.node(to).id, self.node(to).boot);
        let waiting: Vec<_> = self
            .nodes()
            .filter(|(_, node)| node.peers.get(&id).is_some_and(|peer| peer.link == Link::Dialling { boot }))
            .map(|(index, _)| index)
            .collect();
        for node in waiting {
            self.link(node, to);
        }
    }

    /// Fails the connections that waited for a frozen process that has ended.
    pub(super) fn refuse_knocks(&mut self, to: NodeIndex) {
        let id = self.node(to).id;
        let address = self.node(to).config.rpc_address();
        for Knock { node, boot, attempt: (ticket, place) } in std::mem::take(&mut self.node_mut(to).knocking)
        {
            if self.node(node).boot == boot {
                self.dialled(node, ticket, place, Dialled::Failed(refusal(id, address, EOF)));
            }
        }
        let now = self.now;
        let dialling = |peer: &&mut Peer| matches!(peer.link, Link::Dialling { .. });
        for node in &mut self.nodes {
            if let Some(peer) = node.peers.get_mut(&id).filter(dialling) {
                peer.disconnected(now);
            }
        }
    }
}

/// A connection that waits for a frozen process.
#[derive(Debug)]
pub(super) struct Knock {
    node: NodeIndex,
    boot: u64,
    attempt: (u64, usize),
}

/// Attempts by ticket.
pub(super) type OpenAttempts = BTreeMap<u64, Attempts>;

const EOF: &str = "Handshake error: i/o: unexpected end of file";
// The misspelling is Garage's (capture 02).
const NO_NODE: &str = "Handshake error: performing handshake: failed verifing server hello";

fn refusal(id: NodeId, address: SocketAddr, reason: &str) -> String {
    format!(
        "Error establishing RPC connection to remote node: {id}@{address}.\nThis can happen if the remote node is not \
         reachable on the network, but also if the two nodes are not configured with the same rpc_secret.\n{reason}"
    )
}
