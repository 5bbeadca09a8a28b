//! Nodes and what goes on between them, under a virtual clock.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod failures;
mod faults;
mod gossip;
mod idle;
mod races;
mod settling;
mod table;
mod world;
