//! `garage server`: a pod's process and a hub, both as real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod ending;
mod forwarding;
mod mistakes;
#[path = "../support/network.rs"]
mod network;
mod starting;
mod world;
