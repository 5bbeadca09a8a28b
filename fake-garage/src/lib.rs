//! A recording fake of the Garage admin API and cluster layout.
//!
//! Garage is an object store whose nodes have no leader: every node has a copy of the cluster's layout, answers the
//! admin API from it, and tells the others. This crate has the same nodes without the store. What is here behaves as
//! observed on real processes; where it does, the section of the Garage admin reference or the number of the capture
//! is named.
//!
//! To learn the protocol, read on in this order:
//!
//! 1. [`layout`]: what a layout is, how it changes, and how two copies of it are merged. Pure values.
//! 2. [`mesh`]: how copies travel, how nodes notice each other's absence, and the races that follow.
//! 3. [`admin`]: what a caller of the admin API gets to see of it, which is less than one would wish.
//!
//! Around these are [`replay`], which holds the fake to recorded answers of the real program, [`hub`], the process
//! with sockets, control API and history, and [`node`], the process of a pod, which leads to the hub.
//!
//! # A cluster in twenty lines
//!
//! A mesh is a simulation: nothing happens unless time is told to pass. Here two nodes meet, get a layout, and are
//! asked for it.
//!
//! ```
//! use std::time::Duration;
//! use fake_garage::layout::{ConsistencyMode, NodeId, Role, StageRequest};
//! use fake_garage::mesh::{Mesh, NodeConfig, Pacing, Target, connect::Nowhere};
//!
//! let node = |place: u8| NodeConfig {
//!     name: format!("east/ns/garage-{place}"),
//!     site: "east".to_owned(),
//!     address: [127, 0, 0, place].into(),
//!     hostname: format!("garage-{place}"),
//!     region: "garage".to_owned(),
//!     factor: 2,
//!     mode: ConsistencyMode::Consistent,
//!     rpc_secret: "shared".to_owned(),
//!     clock_offset: 0,
//! };
//! let (one, two) = (NodeId::new([1; 32]), NodeId::new([2; 32]));
//! let mut mesh = Mesh::new(Pacing::fast(), 1_790_000_000_000, 42);
//! let (first, second) = (mesh.add(one, node(1)), mesh.add(two, node(2)));
//!
//! // One of them is told where the other is; the other dials back by itself.
//! let target = Target::Node { id: two, address: mesh.node(second).config().rpc_address() };
//! mesh.connect(first, &[target], &Nowhere);
//! mesh.advance(Duration::from_millis(500));
//! assert!(mesh.node(second).sees_up(one));
//!
//! // Stage two roles on the first node, apply them there, and read the result on the second.
//! let role = Role { zone: "east".to_owned(), capacity: Some(1_000_000_000), tags: vec![] };
//! let roles = vec![(one, Some(role.clone())), (two, Some(role))];
//! mesh.stage(first, &StageRequest { roles, parameters: None })?;
//! mesh.apply(first, 1)?;
//! mesh.advance(Duration::from_millis(1_000));
//! assert_eq!(mesh.node(second).layout().current().number, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the same seed and the same calls at the same times, the same things happen, to the last digest.

pub mod admin;
pub mod hub;
pub mod layout;
pub mod mesh;
pub mod node;
pub mod replay;

pub use hub::{
    Clock, ControlToken, FaultGuard, FaultRequest, Hub, NodeNetwork, Options, RuleGuard, RuleRequest,
    ServeError, serve,
};
