//! The program: what it prints and with which code it exits.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use tempfile::TempDir;

fn fake_garage(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fake-garage")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const SESSION: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/14-single-node-consistent.json");

/// A copy of a session with something else in it.
fn changed(folder: &Path, from: &str, to: &str) -> PathBuf {
    let path = folder.join("session.json");
    fs::write(&path, fs::read_to_string(SESSION).unwrap().replace(from, to)).unwrap();
    path
}

#[test]
fn a_replay_that_is_as_recorded_exits_0_and_ends_with_the_sums() {
    let output = fake_garage(&["replay", SESSION]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).lines().last(), Some("12 compared, 0 mismatched, 1 skipped"));
}

#[test]
fn a_replay_that_is_not_as_recorded_exits_3_and_shows_what_differs() {
    let folder = TempDir::new().unwrap();
    let path = changed(folder.path(), "\"minAck\":1", "\"minAck\":7");
    let output = fake_garage(&["replay", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    let shown = text(&output.stdout);
    assert!(shown.contains("$.minAck\n      expected 7\n      answered 1"), "{shown}");
    assert_eq!(shown.lines().last(), Some("12 compared, 1 mismatched, 1 skipped"));
}

#[rstest]
#[case::no_json("{\"format\"", "{", "not a script")]
#[case::another_format("garage-conformance/1", "garage-conformance/9", "format `garage-conformance/9`")]
#[case::unknown_operation("\"stop-all\"", "\"explode\"", "unknown variant `explode`")]
#[case::an_unknown_node("\"node\":\"n1\"", "\"node\":\"n9\"", "there is no node `n9`")]
#[case::an_unknown_partition(
    "\"stop-all\"",
    "\"partition\",\"between\":[[],[]],\"kind\":\"loud\"",
    "unknown variant `loud`"
)]
#[case::no_steps("\"steps\"", "\"stops\"", "missing field `steps`")]
fn a_file_that_is_no_session_exits_2(#[case] from: &str, #[case] to: &str, #[case] message: &str) {
    let folder = TempDir::new().unwrap();
    let path = changed(folder.path(), from, to);
    let output = fake_garage(&["replay", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
}

#[test]
fn one_file_that_cannot_be_replayed_stops_all_and_is_named() {
    let output = fake_garage(&["replay", SESSION, "/nowhere/session.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot read /nowhere/session.json"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "", "nothing half-done is shown");
}

#[test]
fn json_has_one_object_per_file_and_the_sums_last() {
    let output = fake_garage(&["replay", "--format", "json", SESSION]);
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["name"], "14-single-node-consistent");
    assert_eq!(lines[1]["compared"], 12);
}

#[test]
fn a_hub_does_not_start_over_an_existing_history() {
    let folder = TempDir::new().unwrap();
    let (token, journal) = (folder.path().join("token"), folder.path().join("journal"));
    fs::write(&token, "token").unwrap();
    fs::write(&journal, "").unwrap();
    let serve = |token: &Path| {
        let (token, journal) = (token.to_str().unwrap(), journal.to_str().unwrap());
        let fixed = ["serve", "--listen", "127.250.9.9:0", "--run", "r", "--node-network", "127.250.9.10+4"];
        fake_garage(&[&fixed[..], &["--control-token-file", token, "--journal", journal]].concat())
    };
    let output = serve(&token);
    assert_eq!(output.status.code(), Some(96));
    assert!(text(&output.stderr).contains("cannot begin the history"));
    fs::write(&token, " \n").unwrap();
    let output = serve(&token);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("holds no token"));
    assert_eq!(serve(Path::new("/nowhere/token")).status.code(), Some(2));
}

#[test]
fn a_mistake_in_the_command_line_exits_2() {
    assert_eq!(fake_garage(&["replay"]).status.code(), Some(2));
    assert_eq!(fake_garage(&["serve", "--node-network", "somewhere"]).status.code(), Some(2));
}
