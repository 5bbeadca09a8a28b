//! What a node knows about another one.

use std::net::SocketAddr;

use super::Time;
use super::node::NodeStatus;

/// What a node knows about another one. It is forgotten only when the process ends.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Where it was last heard to be reachable.
    pub address: Option<SocketAddr>,
    /// This node's own connection to it.
    pub link: Link,
    /// When it last answered a ping.
    pub last_seen: Option<Time>,
    /// When it was last pinged.
    pub(super) pinged: Option<Time>,
    pub(super) pings: u64,
    pub(super) failed_pings: u32,
    /// What it last told about itself.
    pub status: Option<NodeStatus>,
}

/// A node's own connection to a peer. Only this makes a peer "up"; connections from the peer do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Connected to the process that the peer was at that time.
    Up {
        /// Which start of the peer the connection leads to.
        boot: u64,
        /// What became of the connection without this side having noticed.
        fate: Fate,
    },
    /// The peer accepted a connection and is silent.
    Dialling {
        /// Which start of the peer the connection leads to.
        boot: u64,
    },
    /// Not connected.
    Down {
        /// Attempts in a row that failed.
        failures: u32,
        /// When to try again; `None` once the peer was given up.
        retry: Option<Time>,
    },
}

/// What became of a connection without the side that holds it having noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing, as far as it matters.
    Intact,
    /// The other process has ended, and a message was lost in it: the next one fails.
    ///
    /// The kernel takes the first message to a process that has ended (captures 05, 06 and 11).
    Lost,
    /// It was torn: the next message fails.
    Torn,
}

impl Peer {
    /// A peer just heard of, to be dialled as soon as possible.
    pub(super) const fn heard_of(address: Option<SocketAddr>, now: Time) -> Self {
        Self {
            address,
            link: Link::Down { failures: 0, retry: Some(now) },
            last_seen: None,
            pinged: None,
            pings: 0,
            failed_pings: 0,
            status: None,
        }
    }

    /// Whether this node is connected to it, as far as it knows.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        matches!(self.link, Link::Up { .. })
    }

    pub(super) const fn connected(&mut self, boot: u64) {
        self.link = Link::Up { boot, fate: Fate::Intact };
        self.failed_pings = 0;
        self.pinged = None;
    }

    pub(super) const fn disconnected(&mut self, now: Time) {
        self.link = Link::Down { failures: 0, retry: Some(now) };
        self.failed_pings = 0;
        self.pinged = None;
    }

    /// It was pinged, and nothing is there that could keep it from answering.
    pub(super) const fn answered_at_once(&mut self, now: Time) {
        self.pinged = Some(now);
        self.last_seen = Some(now);
        self.pings += 1;
        self.failed_pings = 0;
    }

    /// It was heard of again: an attempt is worth while now.
    pub(super) const fn encourage(&mut self, now: Time) {
        if let Link::Down { .. } = self.link {
            self.link = Link::Down { failures: 0, retry: Some(now) };
        }
    }
}
