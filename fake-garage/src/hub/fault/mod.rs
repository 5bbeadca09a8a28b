//! Faults on purpose: what is wrong with nodes and with the links between them.
//!
//! A fault that lasts has a number. It is healed when that is asked for, when its time is over, or when the guard is
//! dropped that it was made with; all of it is written in the history. Faults on single calls are in
//! [`rule`](super::rule).
//!
//! | fault | healed by |
//! |---|---|
//! | `kill` | a start with the files that are left |
//! | `freeze` | going on, once no other fault freezes the node |
//! | `partition`, `slow` | mending these links |
//! | `hold-trackers` | letting them advance, as far as no other fault holds them |
//! | `clock` | the offset of the latest other fault on that clock, else the configured one |
//! | `restart`, `wipe`, `purge` | nothing: they are over at once |

mod active;
mod guard;
mod inject;
mod request;

pub(super) use active::end_kills;
pub use active::{FaultState, Faults, Why, heal};
pub use guard::FaultGuard;
pub use inject::inject;
pub use request::{CutName, FaultRequest, LossName, TrackerName};
