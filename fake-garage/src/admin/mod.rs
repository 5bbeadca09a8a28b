//! The admin API of a node: what Garage answers, to the byte.
//!
//! A call is a function of the mesh, the node, the request and the moment; nothing here knows of sockets. Start at
//! [`cluster`].
//!
//! # The order of checks
//!
//! Every call passes the same gates (Garage admin reference §1). Authentication comes late: a malformed request is
//! answered 400 even to somebody without a token, and a well-formed one 403.
//!
//! ```text
//!  repeated parameter ▶ route ▶ body ▶ query ▶ token ▶ what the call is about
//!         400            400     400    400     403     200 · 400 · 404 · 409 · 500 · 503
//! ```
//!
//! # What a caller gets to see of the layout
//!
//! A node answers from its own copy and nothing else. The answer of a call is therefore true of that node at that
//! moment, and three statuses mean less than they seem to:
//!
//! | answer | what it means | what it does not mean |
//! |---|---|---|
//! | 200 to `UpdateClusterLayout` | staged on this node | that it will be in the next version |
//! | 200 to `ApplyClusterLayout` | a version was computed here | that it is the version of that number, even here |
//! | `healthy` | this node's peers are up | that all nodes hold the same layout |
//!
//! `ApplyClusterLayout {"version": N}` checks only that N is the local current version plus one. If it is not, the answer
//! is **500** `Invalid new layout version`, not 409: a caller that looks for a conflict has to look at the text. A
//! conflict between two contents of one version shows in no field of any answer; only `roles` and `partitionSize` differ
//! between nodes. To find one, compare the layouts of all nodes.
//!
//! Staged entries that equal the present role are hidden, though they are there; and staged roles never show in
//! `GetClusterStatus`.
//!
//! ```
//! use fake_garage::admin::request::Attribution;
//! use fake_garage::admin::{Cluster, Credentials, Happening, Profile, Request};
//! use fake_garage::layout::{ConsistencyMode, NodeId};
//! use fake_garage::mesh::{Mesh, NodeConfig, Pacing, connect::Nowhere};
//!
//! let mut mesh = Mesh::new(Pacing::fast(), 1_790_000_000_000, 1);
//! # let config = NodeConfig {
//! #     name: "east/ns/garage-0".to_owned(), site: "east".to_owned(), address: [127, 0, 0, 1].into(),
//! #     hostname: "garage-0".to_owned(), factor: 1, mode: ConsistencyMode::Consistent,
//! #     rpc_secret: String::new(), clock_offset: 0, region: "garage".to_owned(),
//! # };
//! let node = mesh.add(NodeId::new([1; 32]), config);
//! let mut cluster = Cluster::new(mesh, Profile::V2_5);
//! cluster.set_credentials(node, Credentials { admin: ["t0ken".to_owned()].into(), ..Credentials::default() });
//!
//! // A version that is not the next one. The answer comes as a happening, here at once.
//! let request = Request {
//!     method: "POST".to_owned(),
//!     path: "/v2/ApplyClusterLayout".to_owned(),
//!     query: None,
//!     authorization: Some(b"Bearer t0ken".to_vec()),
//!     body: br#"{"version":7}"#.to_vec(),
//!     origin: Attribution::default(),
//! };
//! cluster.handle(1, node, request, &Nowhere);
//! let answer = cluster.take_happenings().into_iter().find_map(|happening| match happening {
//!     Happening::Answered { response, .. } => response,
//!     _ => None,
//! }).unwrap();
//! assert_eq!(answer.status, 500);
//! assert_eq!(answer.error.as_deref(), Some("Internal error: Invalid new layout version"));
//! ```

pub mod auth;
pub mod blocks;
pub mod call;
pub mod cluster;
pub mod error;
mod happening;
pub mod health;
pub mod layout;
pub mod metrics;
pub mod node_info;
pub mod nodes;
mod perform;
pub mod profile;
pub mod query;
pub mod quorum;
pub mod request;
pub mod route;
pub mod statistics;
pub mod status;
pub mod store;
pub mod tables;
pub mod workers;

pub use auth::Credentials;
pub use cluster::Cluster;
pub use error::ApiError;
pub use happening::{Happening, LayoutMark};
pub use profile::Profile;
pub use request::{Request, Response};
