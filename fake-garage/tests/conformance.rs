//! Every recorded session with real Garage replays without a mismatch.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::PathBuf;

use fake_garage::replay::{FileReport, Script, rename_nodes, run};
use rstest::rstest;

fn replay(path: &PathBuf, change: impl Fn(&str) -> String, seed: u64) -> FileReport {
    let text = change(&fs::read_to_string(path).unwrap());
    run(&Script::parse(&text).unwrap(), seed)
}

fn assert_as_recorded(report: &FileReport) {
    assert!(report.totals().compared > 0, "{} compares nothing", report.name);
    assert!(report.mismatches.is_empty(), "{report}");
}

#[rstest]
fn a_session_replays_as_recorded(#[files("tests/conformance/*.json")] path: PathBuf) {
    assert_as_recorded(&replay(&path, str::to_owned, 0));
}

#[rstest]
fn a_session_replays_as_recorded_whatever_is_left_to_chance(
    #[files("tests/conformance/*.json")] path: PathBuf,
    #[values(1, 2, 3)] seed: u64,
) {
    assert_as_recorded(&replay(&path, str::to_owned, seed));
}

#[rstest]
fn a_session_replays_as_recorded_under_other_identities(
    #[files("tests/conformance/*.json")] path: PathBuf,
    #[values(7, 8)] seed: u64,
) {
    assert_as_recorded(&replay(&path, |text| rename_nodes(text, seed), 0));
}

/// Peers tell each other of a third one at their beats, which are a few milliseconds apart.
#[test]
fn session_02_replays_as_recorded_under_any_seed() {
    let path = PathBuf::from("tests/conformance/02-fresh-and-connect.json");
    for seed in 1..=100 {
        assert_as_recorded(&replay(&path, str::to_owned, seed));
    }
}
