//! Two hubs on two real API servers. East is the Active at first, west the Standby.
//!
//! Each test has two control planes of its own: a hub watches all of its cluster, so that two tests cannot share one.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    reason = "tests, whose metrics are whole numbers; this target has a main of its own"
)]

#[cfg(feature = "crash-at-step")]
mod crash;
mod failing;
mod failover;
mod leading;
mod mirroring;
mod stage;
mod standing;

use libtest_mimic::{Arguments, Trial};

/// A pair of control planes takes a core for seconds.
const AT_ONCE: usize = 1;

fn main() {
    harness::entry::intercept(&harness::entry::Helpers::new());
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let trials = [
        leading::trials(),
        mirroring::trials(),
        failover::trials(),
        failing::trials(),
        standing::trials(),
        crash_trials(),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit()
}

/// They need a hub that can be told when to die.
#[cfg(feature = "crash-at-step")]
fn crash_trials() -> Vec<Trial> {
    crash::trials()
}

#[cfg(not(feature = "crash-at-step"))]
fn crash_trials() -> Vec<Trial> {
    Vec::new()
}
