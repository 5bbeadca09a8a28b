//! How fast things happen in a mesh.

use std::ops::Range;
use std::time::Duration;

/// How fast things happen in a mesh. The order of things is the same in every pacing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pacing {
    /// Time a message is on its way.
    pub delivery: Range<Duration>,
    /// Extra time of a delayed message (Nagle's algorithm and delayed acknowledgements).
    pub delivery_delay: Duration,
    /// How many messages of a thousand are delayed.
    pub delayed_per_mille: u64,
    /// From the start of a process until its loops run.
    pub boot: Range<Duration>,
    /// Computing the first version in an apply, per storage node.
    pub apply_first: Range<Duration>,
    /// Computing a further version in an apply, per storage node: it also looks for the fewest moves.
    pub apply: Range<Duration>,
    /// Checking a received state that brings no new version.
    pub check: Range<Duration>,
    /// Checking a received state that brings a new version.
    pub check_version: Range<Duration>,
    /// Time until received trackers are taken over.
    pub trackers: Range<Duration>,
    /// The first round of table synchronisation with other nodes after a new version.
    pub sync_version: Range<Duration>,
    /// A further round of table synchronisation with other nodes.
    pub sync: Range<Duration>,
    /// A round of table synchronisation of a node that is alone in the layout.
    pub sync_alone: Range<Duration>,
    /// Period of the loop that dials and pings.
    pub peering: Duration,
    /// Time between two pings of a peer.
    pub ping: Duration,
    /// Time after which a ping has failed.
    pub ping_timeout: Duration,
    /// Time between two exchanges of status, once nothing changes.
    pub status: Duration,
    /// The same after something changed; doubled from exchange to exchange until it is `status`.
    pub status_eager: Duration,
    /// Time between two attempts to reach a peer, after the first.
    pub redial: Duration,
    /// Attempts in a row that fail before a peer is given up until it is heard of again: five minutes' worth (Garage
    /// admin reference §5), also where attempts are more frequent.
    pub dial_failures: u32,
    /// Time after which a connection that is not answered is given up.
    pub dial_timeout: Duration,
    /// Time after which a call on another node that is not answered has failed.
    pub rpc_timeout: Duration,
    /// Time between two writes of the peer list.
    pub save_peers: Duration,
    /// Whether what is sure to change nothing is left out: a status that the receiver has, a ping that will be
    /// answered. Large meshes that are idle cost little then. The delays that such messages would have are not drawn.
    pub skips_idle: bool,
}

/// Pings that fail in a row before a connection is given up.
pub(super) const PING_FAILURES: u32 = 5;

const fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

impl Pacing {
    /// The default of the harness: a mesh settles in well under a second.
    #[must_use]
    pub const fn fast() -> Self {
        Self {
            delivery: ms(1)..ms(3),
            delivery_delay: ms(0),
            delayed_per_mille: 0,
            boot: ms(0)..ms(0),
            apply_first: ms(0)..ms(0),
            apply: ms(0)..ms(0),
            check: ms(0)..ms(0),
            check_version: ms(1)..ms(3),
            trackers: ms(0)..ms(0),
            sync_version: ms(1)..ms(3),
            sync: ms(3)..ms(10),
            sync_alone: ms(1)..ms(3),
            peering: ms(20),
            ping: ms(1500),
            ping_timeout: ms(1000),
            status: ms(1000),
            status_eager: ms(50),
            redial: ms(1000),
            dial_failures: 300,
            dial_timeout: ms(1000),
            rpc_timeout: ms(30_000),
            save_peers: ms(1000),
            skips_idle: true,
        }
    }

    /// As measured on real processes: four nodes on two cores (Garage admin reference §9 to §11).
    #[must_use]
    pub const fn observed() -> Self {
        Self {
            delivery: ms(2)..ms(8),
            delivery_delay: ms(40),
            delayed_per_mille: 180,
            boot: ms(90)..ms(190),
            apply_first: ms(11)..ms(20),
            apply: ms(15)..ms(38),
            check: ms(15)..ms(25),
            check_version: ms(60)..ms(150),
            trackers: ms(20)..ms(200),
            sync_version: ms(200)..ms(450),
            sync: ms(150)..ms(350),
            sync_alone: ms(20)..ms(50),
            peering: ms(1000),
            ping: ms(15_000),
            ping_timeout: ms(10_000),
            status: ms(10_000),
            status_eager: ms(10_000),
            redial: ms(30_000),
            dial_failures: 10,
            dial_timeout: ms(10_000),
            rpc_timeout: ms(300_000),
            save_peers: ms(60_000),
            skips_idle: false,
        }
    }

    /// The observed periods and delays, each at the same value every time: what replays run under.
    #[must_use]
    pub const fn calm() -> Self {
        Self {
            delivery: ms(2)..ms(4),
            delivery_delay: ms(0),
            delayed_per_mille: 0,
            // Loops of nodes that start together come round together: what one tells at its beat comes too late for
            // the others' (capture 02).
            boot: ms(148)..ms(152),
            apply_first: ms(12)..ms(13),
            apply: ms(36)..ms(37),
            check: ms(78)..ms(80),
            check_version: ms(83)..ms(85),
            trackers: ms(145)..ms(150),
            sync_version: ms(395)..ms(400),
            sync: ms(215)..ms(220),
            sync_alone: ms(30)..ms(35),
            ..Self::observed()
        }
    }
}
