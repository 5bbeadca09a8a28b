//! The nodes of a cluster and what goes on between them, as a simulation without I/O.
//!
//! [`layout`](crate::layout) tells what happens when two copies meet. This module tells when they do: how states travel,
//! how nodes find and lose each other, and how long all of it takes. A [`Mesh`] is driven from outside: time is told to
//! it ([`Mesh::advance`]), calls on its nodes are methods, and what is worth telling is collected
//! ([`Mesh::take_outputs`]). Between two calls nothing happens by itself, so the hub drives it with the real clock and a
//! replay with a virtual one; with the same seed and the same calls at the same times, the same things happen.
//!
//! Every node has its own layout copy, its own table of peers and its own wall clock. There is no shared layout: what
//! can go wrong between real nodes lives in the differences (Garage admin reference §14).
//!
//! # How a change travels
//!
//! Nodes form a full mesh. A node whose copy changed, by a call or by a merge, sends it to all its peers at once: as a
//! full state, or as trackers only if nothing else changed. Each receiver that changed does the same (§9):
//!
//! ```text
//!  call ──▶ n1 ── state ──▶ n2 ── state ──▶ n1, n3, n4     nothing new there: the flood ends
//!              ── state ──▶ n3 ── state ──▶ …
//!              ── state ──▶ n4
//! ```
//!
//! What is lost on the way is made up for by *status*: every 10 s a node tells its peers how it is, with a digest of its
//! copy ([`GossipDigest`](crate::layout::GossipDigest)): number of the current version, count of live ones, hashes of
//! trackers and staging. Who sees a difference asks for the full state. The *content* of a version is not in the digest,
//! so nodes that hold different contents of one number do not notice between two changes.
//!
//! # How nodes lose each other
//!
//! Each node judges by its own connection to a peer; `isUp` is what that one node believes (§10):
//!
//! | what happened | noticed after (observed pacing) | how |
//! |---|---|---|
//! | a process was killed | up to 10 s | the second write fails |
//! | the network resets connections | up to 10 s | the next write fails |
//! | the network swallows packets | about 75 s | five pings in a row, one every 15 s, time out after 10 s |
//! | a process is frozen | about 75 s | the same; its port still accepts connections, and calls to it hang |
//!
//! Until it is noticed, health says healthy, and node-scoped calls hang. A lost peer is dialled again at once and then
//! every 30 s. Copies that changed on both sides meanwhile meet at the next status.
//!
//! # Races
//!
//! Computing a version takes time (60 to 150 ms with four nodes on two busy cores), and so does checking one that
//! arrives. That opens a window in which two applies of the same number do not know of each other. What becomes of the
//! second one depends on when it begins:
//!
//! ```text
//!  n3  apply 2 ├── computing ──┤── on its way ──┤── checked by n1 ─┤
//!  n1                │                  │                              │
//!        begins here: diverged   here: either, by luck          here: refused (500)
//!                                diverged or dropped after a 200
//! ```
//!
//! Under [`Pacing::observed`] these outcomes come out in about the proportions that were measured. The same window loses
//! staged changes: a node that stages while another's apply or revert is on its way gets a 200, and loses the change.
//!
//! # Faults
//!
//! [`network`] separates and slows links, [`lifecycle`] ends, freezes and robs processes, [`fault`] sets clocks and
//! holds trackers. Here a partition makes two sites disagree, and healing it does not make them agree:
//!
//! ```
//! # use std::time::Duration;
//! # use fake_garage::layout::{ConsistencyMode, NodeId, Role, StageRequest};
//! # use fake_garage::mesh::{Cut, Mesh, NodeConfig, Pacing, StateTable, Target, connect::Nowhere};
//! # let site = |place: u8| if place < 3 { "east" } else { "west" };
//! # let config = |place: u8| NodeConfig {
//! #     name: format!("{}/ns/garage-{place}", site(place)),
//! #     site: site(place).to_owned(), address: [127, 0, 0, place].into(), hostname: String::new(),
//! #     region: "garage".to_owned(),
//! #     factor: 2, mode: ConsistencyMode::Consistent, rpc_secret: String::new(), clock_offset: 0,
//! # };
//! # let id = |place: u8| NodeId::new([place; 32]);
//! # let role = |place: u8, size: u64| (id(place), Some(Role { zone: site(place).to_owned(), capacity: Some(size << 30), tags: vec![] }));
//! # let mut mesh = Mesh::new(Pacing::fast(), 1_790_000_000_000, 7);
//! # let nodes: Vec<_> = (1..=4).map(|place| mesh.add(id(place), config(place))).collect();
//! # let targets: Vec<_> = (2..=4).map(|place| Target::Node { id: id(place), address: config(place).rpc_address() }).collect();
//! # mesh.connect(nodes[0], &targets, &Nowhere);
//! # mesh.advance(Duration::from_secs(2));
//! # let stage = |mesh: &mut Mesh, node, roles| mesh.stage(node, &StageRequest { roles, parameters: None }).unwrap();
//! # stage(&mut mesh, nodes[0], (1..=4).map(|place| role(place, 100)).collect());
//! # mesh.apply(nodes[0], 1)?;
//! # mesh.advance(Duration::from_secs(4));
//! // Four nodes, two at each site, share version 1.
//! let (east, west) = nodes.split_at(2);
//! let cut = mesh.partition(east, west, Cut::Silent);
//! for (node, change) in [(east[0], role(1, 50)), (west[0], role(3, 70))] {
//!     stage(&mut mesh, node, vec![change]);
//!     mesh.apply(node, 2)?;
//! }
//! mesh.mend(cut);
//! mesh.advance(mesh.now() + Duration::from_secs(60));
//!
//! let content = |node| mesh.node(node).layout().current().digest();
//! assert_eq!(content(east[0]), content(east[1]));
//! assert_ne!(content(east[0]), content(west[0]), "both are version 2");
//! // One line per node: versions, digests of their content, trackers, roles, peers, clocks, faults.
//! println!("{}", StateTable::of(&mesh));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! | file | what it holds |
//! |---|---|
//! | [`node`], [`peer`] | a node, and what it knows about another |
//! | [`lifecycle`] | start, stop, kill, freeze, loss of files |
//! | [`peering`] | dialling, pings, failure detection, exchange of peers |
//! | [`gossip`] | how layouts spread |
//! | [`connect`] | `ConnectClusterNodes` |
//! | [`change`] | stage, apply, revert, skip |
//! | [`network`] | partitions and slow links |
//! | [`fault`] | clocks that are off, trackers that stand still |
//! | [`state`] | how things stand, as a table |
//! | [`pacing`], [`clock`], [`random`] | how fast, when, by what chance |

pub mod change;
pub mod clock;
pub mod connect;
mod events;
pub mod fault;
pub mod gossip;
pub mod lifecycle;
pub mod network;
pub mod node;
mod output;
pub mod pacing;
pub mod peer;
pub mod peering;
pub mod random;
pub mod state;

use std::collections::BTreeMap;

use crate::layout::{LayoutEvent, NodeId};

pub use change::Applied;
pub use clock::{Time, wall_clock};
pub use connect::{Connected, Surroundings, Target};
pub use lifecycle::Loss;
pub use network::{Cut, LinkFault, Slowness};
pub use node::{Node, NodeConfig, NodeIndex, NodeStatus, Process, RPC_PORT};
pub use output::{HeldContent, Output};
pub use pacing::Pacing;
pub use peer::{Link, Peer};
pub use random::Random;
pub use state::{NodeState, StateTable};

use events::{Due, Event, EventQueue, Message};
use network::Network;

/// The nodes of a cluster.
#[derive(Debug)]
pub struct Mesh {
    pacing: Pacing,
    origin: u64,
    now: Time,
    random: Random,
    nodes: Vec<Node>,
    by_name: BTreeMap<String, NodeIndex>,
    by_id: BTreeMap<NodeId, NodeIndex>,
    network: Network,
    queue: EventQueue,
    outputs: Vec<Output>,
    tickets: u64,
}

impl Mesh {
    /// A mesh without nodes that begins when wall clocks show `origin` (milliseconds since 1970).
    #[must_use]
    pub fn new(pacing: Pacing, origin: u64, seed: u64) -> Self {
        Self {
            pacing,
            origin,
            now: Time::ZERO,
            random: Random::new(seed),
            nodes: Vec::new(),
            by_name: BTreeMap::new(),
            by_id: BTreeMap::new(),
            network: Network::default(),
            queue: EventQueue::default(),
            outputs: Vec::new(),
            tickets: 0,
        }
    }

    /// The moment up to which everything has happened.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// How fast things happen.
    #[must_use]
    pub const fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    /// When something happens next by itself.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        self.queue.next_time()
    }

    /// Lets everything happen that is due at or before `now`.
    pub fn advance(&mut self, now: Time) {
        while self.step(now) {}
    }

    /// Lets the next thing happen that is due at or before `now`. Once there is none, the time is `now` and the
    /// answer false.
    pub fn step(&mut self, now: Time) -> bool {
        let Some(due) = self.queue.take_until(now) else {
            self.now = self.now.max(now);
            return false;
        };
        self.now = self.now.max(due.at);
        self.happen(due);
        true
    }

    /// What has happened since this was asked last, in order.
    #[must_use]
    pub fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// All nodes, those that have ended included, in the order in which they joined.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeIndex, &Node)> {
        self.nodes.iter().enumerate().map(|(place, node)| (NodeIndex(place), node))
    }

    /// The node at `index`.
    #[must_use]
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.0]
    }

    /// The node of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<NodeIndex> {
        self.by_name.get(name).copied()
    }

    /// The node with that identity whose process has not ended.
    #[must_use]
    pub fn find_alive(&self, id: NodeId) -> Option<NodeIndex> {
        let index = *self.by_id.get(&id)?;
        let node = self.node(index);
        (node.id == id && !matches!(node.process, Process::Ended { .. })).then_some(index)
    }

    /// What the wall clock of a node shows, in milliseconds since 1970.
    #[must_use]
    pub fn wall_clock(&self, index: NodeIndex) -> u64 {
        wall_clock(self.origin, self.now, self.node(index).clock_offset())
    }

    /// Bytes that nobody has drawn before.
    pub fn draw(&mut self) -> [u8; 32] {
        self.random.bytes()
    }

    /// Has [`Output::Woken`] come `after` some time, unless the process of `node` ends before; gives its ticket.
    pub fn wake(&mut self, node: NodeIndex, after: Time) -> u64 {
        let ticket = self.ticket();
        self.schedule(self.now + after, node, Event::Woken { ticket });
        ticket
    }

    fn tell_layout(&mut self, node: NodeIndex, event: LayoutEvent) {
        let held = self.node(node).held_content(event);
        self.outputs.push(Output::Layout { node, event, held });
    }

    fn node_mut(&mut self, index: NodeIndex) -> &mut Node {
        &mut self.nodes[index.0]
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn schedule(&mut self, at: Time, node: NodeIndex, event: Event) {
        let boot = self.node(node).boot;
        self.queue.add(at, node, boot, event);
    }

    fn log(&mut self, node: NodeIndex, line: String) {
        self.outputs.push(Output::Log { node, line });
    }

    fn happen(&mut self, due: Due) {
        let Due { node, boot, event, .. } = due;
        if self.node(node).boot != boot {
            return;
        }
        match self.node(node).process {
            Process::Running => self.happen_to(node, event),
            Process::Frozen => self.nodes[node.0].frozen.push(event),
            Process::Ended { .. } => {}
        }
    }

    fn happen_to(&mut self, node: NodeIndex, event: Event) {
        match event {
            Event::Peering => self.peering_round(node),
            Event::Status => self.status_round(node),
            Event::Arrival { from, from_boot, message } => self.arrival(node, from, from_boot, message),
            Event::Checked(state) => self.state_checked(node, &state),
            Event::Synchronised(round) => self.synchronised(node, round),
            Event::PingTimeout { peer, sequence } => self.ping_timeout(node, peer, sequence),
            Event::Computed { ticket, computed } => self.computed(node, ticket, *computed),
            Event::Dialled { ticket, place, outcome } => self.dialled(node, ticket, place, outcome),
            Event::Linked { to, boot } => self.linked(node, to, boot),
            Event::Woken { ticket } => self.outputs.push(Output::Woken { ticket }),
        }
    }

    fn arrival(&mut self, node: NodeIndex, from: NodeIndex, from_boot: u64, message: Message) {
        let sender = Sender { index: from, boot: from_boot };
        match message {
            Message::Ping { sequence, peers } => self.pinged(node, sender, sequence, peers),
            Message::Pong { sequence, peers } => self.ponged(node, sender, sequence, peers),
            Message::Peers { known, answer } => self.peers_told(node, sender, &known, answer),
            Message::Status(report) => self.status_told(node, sender, &report),
            Message::PullState => self.state_asked(node, sender),
            Message::PullTrackers => self.trackers_asked(node, sender),
            Message::State(state) => self.state_told(node, state),
            Message::Trackers(trackers) => self.trackers_told(node, &trackers),
        }
    }
}

/// Who sent a message: which start of which node.
#[derive(Debug, Clone, Copy)]
struct Sender {
    index: NodeIndex,
    boot: u64,
}
