//! The cells of the scenario `bootstrap`.

use std::process::ExitCode;

fn main() -> ExitCode {
    suites::trial::main("bootstrap", env!("CARGO_TARGET_TMPDIR"))
}
