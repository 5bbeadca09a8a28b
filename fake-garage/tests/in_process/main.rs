//! A hub under a virtual clock, with calls in the same process: faults that last, and histories that repeat.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod determinism;
mod digests;
mod faults;
mod world;
