//! Two runs on one machine.

use super::run::Run;

#[test]
fn two_runs_beside_each_other_both_pass() {
    let (one, other) = (Run::start(&[], &[]), Run::start(&[], &[]));
    one.end().assert(0);
    other.end().assert(0);
}
