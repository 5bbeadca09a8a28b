//! One process owns a pair; clients hold it by a connection.
//!
//! A client that wants a pair ([`Client::start_or_attach`]) claims a folder and addresses, opens the pair's
//! socket, and starts a *supervisor*: the same executable again, detached, which inherits folder lock, addresses
//! and socket. The supervisor starts the pair's parts through a [`Launcher`](crate::process::Launcher), so they
//! cannot outlive it, serves clients, and takes everything down when nobody needs it any more. What a `kill -9`
//! leaves behind is found and removed by [`down`](down::down).
//!
//! | module | what it holds |
//! |---|---|
//! | [`pair`] | what is supervised: the interface; start here |
//! | [`start`], [`client`], [`client_error`] | getting a pair, holding it, and what can go wrong |
//! | [`down`], [`status`] | taking pairs down, listing them |
//! | [`root`], [`folder`], [`address`], [`claim`] | where pairs lie and what is theirs |
//! | [`life`] | the rule that says how long a pair lives |
//! | `server`, `protocol`, `control` | the supervisor's process, and how to talk to it |
//! | [`reap`], [`removal`] | ending what is left, removing folders |

pub mod address;
pub mod claim;
pub mod client;
pub mod client_error;
mod control;
pub mod down;
pub mod folder;
mod joined;
pub mod life;
mod locking;
mod logs;
pub mod pair;
mod protocol;
pub mod reap;
pub mod remote;
pub mod removal;
pub mod root;
pub(crate) mod server;
pub mod start;
pub mod status;

pub use address::PairAddresses;
pub use client::{Client, ClientError};
pub use down::{DownOptions, Outcome, PairDown};
pub use folder::Owner;
pub use life::{Holder, Phase};
pub use pair::{AnyError, Context, LogTail, Pair, PartDeath, Progress, ProgressSink, Running, StartError};
pub use root::{RootError, StateRoot};
pub use server::MakePair;
pub use start::{LINGER, Wanted};
pub use status::{PairState, PairStatus, ProcessStatus};
