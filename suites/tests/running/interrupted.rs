//! Ctrl-C and SIGTERM in any phase: everything is taken down, and the exit code says why.

use rstest::rstest;

use super::run::{Moment, Run, signal};

#[rstest]
#[case::ctrl_c_while_the_pair_starts(Moment::Start, "INT", 130)]
#[case::ctrl_c_during_a_scenario(Moment::Scenario, "INT", 130)]
#[case::ctrl_c_during_teardown(Moment::Teardown, "INT", 130)]
#[case::sigterm_during_a_scenario(Moment::Scenario, "TERM", 143)]
fn an_interrupted_run_leaves_nothing(#[case] moment: Moment, #[case] name: &str, #[case] code: i32) {
    let run = Run::start(&[], &[]);
    run.until(moment);
    signal(name, run.client.id());
    run.end().assert(code);
}
