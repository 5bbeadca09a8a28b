//! The cells of the scenario `federation_import`.

use std::process::ExitCode;

fn main() -> ExitCode {
    suites::trial::main("federation_import", env!("CARGO_TARGET_TMPDIR"))
}
