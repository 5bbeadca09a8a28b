//! `onewriter`: starts two sites, runs the scenario matrix, and judges the recorded history.

use harness::report::Exit;
use suites::{cli, pair};

fn main() -> Exit {
    pair::intercept();
    cli::run()
}
