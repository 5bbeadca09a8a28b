//! The programs of a local control plane: finding them, and building what is missing.
//!
//! Each program is looked up on its own, in `KUBEBUILDER_ASSETS`, in `PATH` and in the user's cache. What is
//! found nowhere is built once with Go, from modules whose versions and checksums are part of this library.
//!
//! | module | what it holds |
//! |---|---|
//! | [`mod@prepare`] | finding or building everything; start here |
//! | [`program`] | the four programs |
//! | [`pins`] | their versions and checksums |
//! | [`mod@lookup`] | where programs are looked for, and what was found |
//! | [`cache`] | the folder of built programs, and its lock |
//! | [`go`] | the Go toolchain |
//! | [`build`] | building |
//! | [`disk`] | free space |
//! | [`error`] | what can go wrong |

pub mod build;
pub mod cache;
pub mod disk;
pub mod error;
pub mod go;
pub mod lookup;
pub mod pins;
pub mod prepare;
pub mod program;

pub use error::ToolchainError;
pub use lookup::{Environment, Found, Origin, Skipped, Survey, lookup};
pub use prepare::{Binaries, prepare};
pub use program::{Module, Program};
