//! Child processes that cannot outlive whoever started them, and identities that survive a `kill -9`.
//!
//! A child is started in two steps. The [`Launcher`] runs the same executable again as a hidden *trampoline*
//! (see [`crate::entry`]); the trampoline binds its life to its parent, writes down who it is, and only then
//! becomes the program that was asked for. So at no moment is there a program that nobody could find again.
//!
//! | module | what it holds |
//! |---|---|
//! | [`launcher`] | starting; start here |
//! | [`child`] | a started process: waiting, stopping, its log |
//! | [`identity`] | a process that is never confused with a later one of the same number |
//! | [`record`] | what is written down about a started process |
//! | [`marker`] | the environment variable by which descendants are known as ours |
//! | [`revivable`] | a program that can be ended on purpose and started again |
//! | [`log_tail`] | the end of a log file |

pub mod child;
mod handle;
pub mod identity;
pub mod launcher;
pub mod log_tail;
pub mod marker;
pub mod record;
pub mod revivable;
mod spawner;
pub(crate) mod trampoline;

pub use child::Child;
pub use identity::{IdentityError, ProcessIdentity};
pub use launcher::{Launch, LaunchError, Launcher};
pub use marker::Marker;
pub use record::{ProcessRecord, RecordError};
pub use revivable::Revivable;
