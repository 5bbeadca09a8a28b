//! Garage's cluster layout: what every node replicates, and how copies of it meet.
//!
//! Pure values: nothing here reads a clock, draws a number or does I/O. Times are arguments, in milliseconds.
//!
//! # What a layout is
//!
//! A **layout** says two things: which node has which [`Role`], and which nodes hold which of 256 partitions. A role
//! has a zone, a capacity in bytes, and tags; a node without a capacity is a *gateway*: it takes part and stores
//! nothing. Each partition has as many copies as the replication factor says, on distinct nodes, in at least as many
//! distinct zones as the [zone redundancy](ZoneRedundancy) demands.
//!
//! Layouts come as numbered [`Version`]s. Version 0 is the empty one every node is born with. A version never
//! changes; the layout changes by a next version.
//!
//! # One copy per node
//!
//! There is no leader and no shared store. Each node has a [`LocalLayout`], which is its own copy of this state
//! ([`LayoutHistory`]):
//!
//! ```text
//!  ┌ LayoutHistory of one node ──────────────────────────────────────────────┐
//!  │ old       [1] [2]              retired versions, at most five           │
//!  │ live          [3] [4]          still needed; the last one is current    │
//!  │ trackers  node → ack, sync, syncAck                                     │
//!  │ staging   T = 1700000000000                                             │
//!  │           parameters  at …001  maximum                                  │
//!  │           roles       a1: at …005  zone east, 100 GB                    │
//!  │                       b1: at …009  removed                              │
//!  └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Everything below follows from one decision: nodes send each other this *whole* state, and a receiver merges it into
//! its own.
//!
//! # Changing it: stage, apply, revert
//!
//! A caller does not write a version. It **stages** role changes one by one, on any node, and then **applies** all that
//! is staged there as the next version:
//!
//! ```
//! # use fake_garage::layout::{Change, ConsistencyMode, LayoutHistory, LocalLayout, NodeId, Role, StageRequest};
//! # let gigabytes = |zone: &str, size: u64| Some(Role { zone: zone.to_owned(), capacity: Some(size * 1_000_000_000), tags: vec![] });
//! let (a1, b1) = (NodeId::new([0xa1; 32]), NodeId::new([0xb1; 32]));
//! // The copy of node a1, in a cluster with two copies of everything, when its clock shows 1000.
//! let mut copy = LocalLayout::start(a1, ConsistencyMode::Consistent, LayoutHistory::fresh(2, 1_000));
//!
//! let roles = vec![(a1, gigabytes("east", 100)), (b1, gigabytes("west", 100))];
//! let state = copy.stage(&StageRequest { roles, parameters: None }, 2_000)?;
//! copy.adopt(&state);
//! assert_eq!(copy.history().visible_changes(false).count(), 2);
//! assert_eq!(copy.current().number, 0, "nothing is applied yet");
//!
//! let computed = copy.apply(1, 3_000)?;
//! copy.adopt(&computed.history);
//! assert_eq!(copy.current().number, 1);
//! assert_eq!(copy.current().partition_size, 390_625_000, "each holds all 256 partitions");
//! assert_eq!(copy.history().visible_changes(false).count(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Note the two steps: [`LocalLayout::apply`] *computes* a state, and [`LocalLayout::adopt`] *merges* it, by the same
//! rules as a state that came from elsewhere. In between, time passes in which other states can come in. This is where
//! updates get lost, as we shall see.
//!
//! **Revert** empties the staging area.
//!
//! # Who wins: the staging register
//!
//! Two callers may stage on two nodes at once. What wins is decided by times, in two storeys:
//!
//! * Each entry is a last-writer-wins [`Register`]: the later one of two changes of the same node stays. A write that has
//!   seen another gets a later time than it, even if its own clock is behind: `max(now, seen + 1)`.
//! * The staging area as a whole has a time T ([`Staging::moved`]). Of two areas, the one with the later T replaces the
//!   other *altogether*; only areas of the same T are joined entry by entry.
//!
//! **Staging does not move T. Apply and revert do.** So staging alone never wipes anything. But an apply, or a revert
//! even of nothing, wipes what others have staged and it has not seen, although those changes may be newer:
//!
//! ```text
//!            east                              west
//!  t=10      revert            T: 0 → 10
//!  t=20                                        stage X        X at 20, T still 0
//!  t=25      ── whole state ──────────────────▶ T 10 > T 0: replaced. X is gone.
//! ```
//!
//! ```
//! # use fake_garage::layout::{ConsistencyMode, LayoutHistory, LocalLayout, NodeId, StageRequest};
//! # let x = NodeId::new([0xc1; 32]);
//! # let copy = |id| LocalLayout::start(NodeId::new([id; 32]), ConsistencyMode::Consistent, LayoutHistory::fresh(2, 0));
//! let (mut east, mut west) = (copy(0xa1), copy(0xb1));
//! east.adopt(&east.revert(10));
//! let removal = StageRequest { roles: vec![(x, None)], parameters: None };
//! west.adopt(&west.stage(&removal, 20)?);
//! assert!(west.history().staging.roles.contains_key(&x));
//!
//! west.merge(east.history());
//! assert!(west.history().staging.roles.is_empty(), "newer, and lost");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How two copies meet
//!
//! An incoming state is merged by these rules, in this order (Garage admin reference §8):
//!
//! | rule | if | then |
//! |---|---|---|
//! | 5 | its current version is not usable, and the local one is | it is ignored |
//! | 1 | the local current version is older than its *oldest live* one | the local state is replaced, staging and all: it is *swallowed* |
//! | 2 | a live version of it has the next number | it is appended |
//! | 2 | a live version of it has a number that is here, with another content | **the local one stays**; an error is logged |
//! | 3 | a tracker of it is higher | it is raised |
//! | 4 | its staging has a later T, or the same | it replaces the local staging, or is joined with it |
//! | 6 | anything changed | own trackers are refreshed, and the state is sent on |
//!
//! Rule 2 has a consequence that surprises everyone once. Apply checks that the number is the *local* current one plus
//! one, and nothing else: there is **no compare-and-swap** across nodes. If two nodes both apply version 2 before they
//! hear of each other, both succeed, and each keeps its own version 2 forever:
//!
//! ```
//! # use fake_garage::layout::{ConsistencyMode, LayoutEvent, LayoutHistory, LocalLayout, NodeId, Role, StageRequest};
//! # let size = |zone: &str, size: u64| Some(Role { zone: zone.to_owned(), capacity: Some(size * 1_000_000_000), tags: vec![] });
//! # let (a1, b1) = (NodeId::new([0xa1; 32]), NodeId::new([0xb1; 32]));
//! # let stage = |copy: &mut LocalLayout, roles, now| {
//! #     let state = copy.stage(&StageRequest { roles, parameters: None }, now).unwrap();
//! #     copy.adopt(&state);
//! # };
//! # let mut east = LocalLayout::start(a1, ConsistencyMode::Consistent, LayoutHistory::fresh(2, 0));
//! # stage(&mut east, vec![(a1, size("east", 100)), (b1, size("west", 100))], 1);
//! # let computed = east.apply(1, 2).unwrap();
//! # east.adopt(&computed.history);
//! # let mut west = LocalLayout::start(b1, ConsistencyMode::Consistent, LayoutHistory::fresh(2, 0));
//! # west.merge(east.history());
//! // Both have version 1. Each stages a change of its own and applies it.
//! stage(&mut east, vec![(a1, size("east", 50))], 10);
//! stage(&mut west, vec![(b1, size("west", 70))], 10);
//! for copy in [&mut east, &mut west] {
//!     let computed = copy.apply(2, 20)?;
//!     copy.adopt(&computed.history);
//! }
//! assert_ne!(east.current().digest(), west.current().digest());
//!
//! // They meet: one line in a log, and nothing else.
//! let merge = west.merge(east.history());
//! assert!(matches!(merge.events[..], [LayoutEvent::Conflict { version: 2, .. }]));
//! assert_eq!(west.current().role(a1).unwrap().capacity, Some(100_000_000_000), "west keeps its own");
//!
//! // The next version, applied anywhere, is appended by both, and heals the cluster on that node's terms.
//! let computed = east.apply(3, 30)?;
//! east.adopt(&computed.history);
//! west.merge(east.history());
//! assert_eq!(east.current().digest(), west.current().digest());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! And if the other version 2 arrives *while* the own one is being computed, it is the own one that is not taken. Its
//! apply is answered 200 with a content that is nowhere, and the staged change is gone with it: an
//! **answered, then dropped** update ([`LayoutEvent::Dropped`]; capture 23).
//!
//! ```text
//!  east: apply 2  ├─ computing 2 (with X) ─┤ merge: 2 is here, differs, dropped ─▶ 200, layout with X
//!  west's 2       ────────────▶ appended                                            X is nowhere
//! ```
//!
//! Contents are compared in full, with the times at which roles were staged. That is why two bootstraps with the same
//! roles conflict, and why two nodes that apply the *same* staged changes at once do not.
//!
//! # When an old version goes
//!
//! A new version does not take effect at once: data has to move first. So the older one stays live, *draining*, and
//! three trackers per node tell how far everybody is (§9):
//!
//! | tracker | "I …" | advances |
//! |---|---|---|
//! | ack | no longer write to anything older than this | at once on learning a version, once older writes are through |
//! | sync | have copied my tables as this version wants it | to the smallest ack of *all* nodes, after a round of copying |
//! | syncAck | have seen everyone relevant synchronised to this | with the next merged change after that |
//!
//! They advance in this order, each step gossiped, and every node retires for itself what all nodes of the *current*
//! version have as their syncAck:
//!
//! ```text
//!  n1  ack ●──────────────── sync ●──────────── syncAck ●─ retired
//!  n2       ack ●─────────────── sync ●──────── syncAck ●── retired
//!  n3        ack ●──────────── sync ●────────── syncAck ●─ retired
//!               all acked: ┘         all synced: ┘
//! ```
//!
//! "Everyone relevant" is every storage node of every live version where a write needs all copies (factors 1 and 2), and
//! else a write quorum of each set of copies. Three things follow that operators should know:
//!
//! * A dead node holds up everything through its ack. [`LocalLayout::skip_dead_nodes`] raises it by force.
//! * With factor 2 a dead *storage* node holds up S through its sync, even once it has been removed, until somebody
//!   allows data to be missing.
//! * syncAck is never forced. A dead node, gateways included, holds up retirement while it has a role in the current
//!   version: remove it first, then skip.
//!
//! # Which node holds what
//!
//! The size of a partition is the largest for which an assignment exists. Garage looks for it with a flow algorithm; it
//! also has a closed form, which is used here ([`partition_size`]). With k(n) = min(256, capacity ÷ size) for each node
//! and S(Z) its sum over a zone, a size is feasible if Σ S(Z) ≥ 256 × factor and Σ min(256, S(Z)) ≥ 256 × redundancy.
//! A small zone can thus limit everything:
//!
//! ```
//! use fake_garage::layout::partition_size::{Demand, largest};
//! let gb = 1_000_000_000;
//! let size = |zones: &[Vec<u64>], redundancy| largest(zones, Demand { factor: 2, zones: redundancy });
//!
//! // Two zones with two nodes of 100 GB each: 200 GB of everything, in 256 parts.
//! assert_eq!(size(&[vec![100 * gb, 100 * gb], vec![100 * gb, 100 * gb]], 2), Some(781_250_000));
//! // One zone shrinks to 10 GB, and must hold a copy of everything: less than a tenth of the cluster is usable.
//! assert_eq!(size(&[vec![100 * gb, 100 * gb], vec![10 * gb]], 2), Some(39_062_500));
//! // Unless both copies may be in one zone.
//! assert_eq!(size(&[vec![100 * gb, 100 * gb], vec![10 * gb]], 1), Some(409_836_065));
//! ```
//!
//! Which partitions a node holds is free within these bounds. What matters is that it is *deterministic*: the same
//! version before and the same staging give the same version on every node, down to the digest.
//!
//! # Beginning anew
//!
//! A node that loses its layout file starts with version 0 and is swallowed by the first peer it meets (rule 1). If
//! *all* nodes lose it at once, as a change of the replication factor demands, nobody can give it back: the cluster begins
//! again at version 0. Version numbers are therefore comparable only within one *incarnation*.
//!
//! # Where things are
//!
//! | file | what it holds |
//! |---|---|
//! | [`local`] | a node's own copy: stage, preview, apply, revert, skip dead nodes |
//! | [`history`] | the replicated state, and what can be read from it |
//! | [`merge`] | the rules above |
//! | [`staging`], [`register`] | changes that wait, and who wins |
//! | [`version`] | one version, and computing the next |
//! | [`tracker`], [`retirement`] | when an older version stops being live |
//! | [`partition_size`], [`assignment`], [`reassignment`] | which node holds what |
//! | [`statistics`], [`message`] | what Apply and Preview tell |
//! | [`digest`] | comparing states without sending them |

pub mod assignment;
pub mod digest;
mod flow;
pub mod history;
pub mod local;
pub mod merge;
pub mod message;
pub mod node_id;
pub mod parameters;
pub mod partition_size;
pub mod reassignment;
pub mod register;
pub mod retirement;
pub mod role;
pub mod staging;
pub mod statistics;
pub mod tracker;
pub mod version;

pub use digest::Digest;
pub use history::{GossipDigest, LayoutHistory};
pub use local::{ApplyError, Computed, Held, LocalLayout, SkipError, Skipped, StageRequest, SyncRound};
pub use merge::{LayoutEvent, Merge};
pub use node_id::{NodeId, NodeIdError};
pub use parameters::{ConsistencyMode, LARGEST_FACTOR, Parameters, ZoneRedundancy, write_quorum};
pub use register::Register;
pub use role::{Change, Role};
pub use staging::{StageError, Staging};
pub use statistics::Statistics;
pub use tracker::Trackers;
pub use version::{ComputeError, PARTITIONS, Version};
