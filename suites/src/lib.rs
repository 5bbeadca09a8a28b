//! Scenarios, their test binaries, and the `onewriter` program.
//!
//! A scenario is a file in [`scenarios`], named after its stimulus. What it applies to both sites comes from
//! [`fixture`], what it does and awaits is in [`world`]; [`teeth`]
//! proves that they bite. The program and the test binaries run the same [`scenarios::matrix`].

pub mod cli;
pub mod fixture;
pub mod pair;
pub mod record;
pub mod scenarios;
pub mod teeth;
pub mod trial;
pub mod world;
