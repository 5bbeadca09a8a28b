//! What a run leaves behind: the verdict, for programs and for people.

pub mod exit;
pub mod junit;
pub mod summary;
pub mod verdict;

pub use exit::Exit;
pub use verdict::{Verdict, VerdictKind};
