//! A run: cells on a pair, their history, its verdict, and what is left for people to read.
//!
//! | module | what it holds |
//! |---|---|
//! | [`execute`] | the run itself; start here |
//! | [`directory`] | the folder with everything that a run leaves behind |
//! | [`sources`] | the run's history out of its sources |
//! | [`observer`] | who is told how a run goes |

pub mod directory;
pub mod execute;
pub mod observer;
pub mod sources;

pub use directory::RunDirectory;
pub use execute::{RunOptions, execute};
pub use observer::Observer;
