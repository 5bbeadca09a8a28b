//! The cells of the scenario `federation`.

use std::process::ExitCode;

fn main() -> ExitCode {
    suites::trial::main("federation", env!("CARGO_TARGET_TMPDIR"))
}
