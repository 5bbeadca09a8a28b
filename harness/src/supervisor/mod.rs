//! One process owns a pair; clients hold it by a connection.
//!
//! | module | what it holds |
//! |---|---|
//! | [`pair`] | what is supervised: the interface; start here |
//! | [`address`] | the addresses of a pair |

pub mod address;
pub mod pair;

pub use address::PairAddresses;
pub use pair::{AnyError, Context, LogTail, Pair, PartDeath, Progress, ProgressSink, Running, StartError};
