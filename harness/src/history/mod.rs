//! The history of a run: what the harness adds to it, and how its sources become one.

pub mod merge;
pub mod recorder;
pub mod tail;

pub use merge::{Stream, merge};
pub use recorder::Recorder;
pub use tail::JournalTail;
