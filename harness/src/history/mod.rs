//! The history of a run: what the harness adds to it, and how its sources become one.

pub mod log;
pub mod merge;
pub mod recorder;
pub mod tail;

pub use log::LogLines;
pub use merge::{Merged, Stream, merge};
pub use recorder::Recorder;
pub use tail::JournalTail;
