//! The operator on real API servers: every row of its behaviour matrix, its admission and conversion, its faults.
//!
//! All test processes of one build share two control planes with a hub of fake Garage nodes: whoever comes first brings
//! them up, and they are taken down soon after the last has left, also when it was killed. Each test has a namespace,
//! a mesh and operator processes of its own.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; this target has a main of its own"
)]

mod admission;
#[cfg(feature = "crash-after-write")]
mod crash;
mod faults;
mod matrix;
#[allow(dead_code, reason = "some of it is for the benchmark alone")]
mod stage;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Tests mostly wait for each other's programs: more of them than cores run at once.
const AT_ONCE: usize = 6;

fn main() -> ExitCode {
    stage::intercept();
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let trials = [matrix::trials(), admission::trials(), faults::trials(), crash_trials()];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// They need an operator that can be told when to die.
#[cfg(feature = "crash-after-write")]
fn crash_trials() -> Vec<Trial> {
    crash::trials()
}

#[cfg(not(feature = "crash-after-write"))]
fn crash_trials() -> Vec<Trial> {
    Vec::new()
}
