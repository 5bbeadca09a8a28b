//! What a run leaves behind: the verdict, for programs and for people.
//!
//! | module | what it holds |
//! |---|---|
//! | [`verdict`] | the verdict itself; start here |
//! | [`exit`] | the exit codes |
//! | [`summary`] | the verdict as text that ends a run |
//! | [`junit`] | the verdict as JUnit XML |
//! | [`html`] | the verdict with the whole history, as a page |
//! | [`again`] | how a run is run again |
//! | [`bundle`], [`redaction`] | everything about a run in one archive, without secrets |
//! | [`recording`] | finding and reading what a run left behind |

pub mod again;
pub mod bundle;
pub mod exit;
pub mod html;
pub mod junit;
pub mod recording;
pub mod redaction;
pub mod summary;
pub mod verdict;

pub use again::Invocation;
pub use exit::Exit;
pub use recording::Recording;
pub use verdict::{Verdict, VerdictKind};
