//! The command line from outside: what it prints, and how it ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use onewriter_history::{CallBegin, CallEnd, Event, Header, Journal, Source, State};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs `onewriter` with a state folder of its own.
fn onewriter(state: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onewriter"))
        .args(args)
        .env("ONEWRITER_STATE_DIR", state)
        .env("ONEWRITER_ARTIFACTS_DIR", state.join("artifacts"))
        .env("CI", "true")
        .output()
        .unwrap()
}

fn exit_code(args: &[&str]) -> i32 {
    let state = TempDir::new().unwrap();
    onewriter(state.path(), args).status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[rstest]
#[case::unknown_cell(&["run", "bootstarp"], 4, "the scenarios are: bootstrap, new_node, federation_import")]
#[case::unknown_cell_in_a_list(&["list", "nothing"], 4, "no cell matches `nothing`")]
#[case::everything_skipped(&["run", "bootstrap", "--skip", "bootstrap"], 4, "every cell is skipped")]
#[case::a_row_that_is_none(&["list", "--rows", "ten"], 2, "rows are given as a number")]
#[case::a_row_without_the_cells(&["run", "bootstrap", "--rows", "2-12"], 4, "of another row")]
#[case::a_row_that_is_not_there(&["list", "--rows", "99"], 4, "of another row")]
#[case::unknown_provider(&["run", "--provider", "banana"], 2, "banana")]
#[case::unknown_flag(&["run", "--no-such-flag"], 2, "--no-such-flag")]
#[case::a_time_that_is_none(&["run", "--timeout", "soon"], 2, "soon")]
#[case::no_parallelism(&["run", "--parallel", "0"], 2, "--parallel")]
#[case::an_operator_that_is_not_there(&["run", "--operator-bin", "/no/such/operator"], 2, "--operator-bin")]
#[case::an_operator_for_up_that_is_not_there(&["up", "--operator-bin", "/no/such/operator"], 2, "--operator-bin")]
#[case::a_history_that_is_not_there(&["check", "/no/such/history.jsonl"], 2, "/no/such/history.jsonl")]
#[case::unknown_mutant(&["teeth", "no-such-defect"], 4, "no mutant matches `no-such-defect`")]
#[case::no_command(&[], 2, "Usage")]
fn bad_input_is_named_and_has_its_exit_code(#[case] args: &[&str], #[case] code: i32, #[case] says: &str) {
    let state = TempDir::new().unwrap();
    let output = onewriter(state.path(), args);
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn the_matrix_lists_itself_without_any_cluster() {
    let state = TempDir::new().unwrap();
    let output = onewriter(state.path(), &["list", "--format", "json"]);
    let cells: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let paths: Vec<&str> = cells.iter().filter_map(|cell| cell["path"].as_str()).collect();
    assert_eq!(paths[..3], ["bootstrap/writer", "bootstrap/follower", "bootstrap/absent"]);
    let first = &cells[0];
    assert_eq!((&first["row"], &first["roles"]["east"]), (&json!(1), &json!("Writer")));
    let statement = &first["claims"][0]["record"][0];
    assert_eq!(statement["id"], "matrix-bootstrap");
    assert!(statement["text"].as_str().unwrap().contains("first layout"), "{statement}");
}

#[test]
fn the_list_tells_people_rows_claims_and_statements_and_counts_itself() {
    let state = TempDir::new().unwrap();
    let output = onewriter(state.path(), &["list", "bootstrap/follower"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in
        ["row 1", "bootstrap/follower", "subject", "makes no layout write", "matrix-bootstrap: ", "1 cells"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_dry_run_starts_nothing() {
    let state = TempDir::new().unwrap();
    let output = onewriter(state.path(), &["run", "federation_import", "--dry-run", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        plan["cells"],
        json!([
            "federation_import/writer",
            "federation_import/follower",
            "federation_import/apart",
            "federation_import/absent"
        ])
    );
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn the_published_schema_is_the_one_that_the_program_prints() {
    let state = TempDir::new().unwrap();
    let printed = onewriter(state.path(), &["schema", "history"]).stdout;
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/history.schema.json");
    let published = std::fs::read(published).unwrap();
    assert!(printed == published, "docs/history.schema.json has drifted; `just generate` writes it anew");
}

#[rstest]
#[case("bash")]
#[case("zsh")]
#[case("fish")]
fn completions_know_the_commands(#[case] shell: &str) {
    let state = TempDir::new().unwrap();
    let output = onewriter(state.path(), &["completions", shell]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("doctor"));
}

#[test]
fn with_nothing_running_status_and_down_have_nothing_to_say() {
    assert_eq!(exit_code(&["status"]), 0);
    assert_eq!(exit_code(&["down"]), 0);
}

/// A recorded run: east is Writer and writes; west is Follower, reads, and writes if `west_writes`.
fn recorded(west_writes: bool) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("history.jsonl");
    let mut journal = Journal::create(&path, &Header::new("recorded"), Source::hub()).unwrap();
    let mut events = 0;
    let mut append = |event| events = journal.append(event).unwrap();
    append(state("roles", json!({"east": "Writer", "west": "Follower"})));
    append(state("expectation", json!({"writes": ["east"], "reads": ["west"]})));
    let node = "ab".repeat(32);
    append(state("node", json!({"node": "east/ns/garage-0-0", "nodeId": node, "event": "started"})));
    append(Event::CallBegin(CallBegin {
        layout_version: 0,
        ..begin(1, "east", "POST", "/v2/ApplyClusterLayout")
    }));
    append(state(
        "layout",
        json!({"nodeId": node, "incarnation": 0, "event": "applied", "from": 0, "to": 1}),
    ));
    append(Event::CallEnd(end(1)));
    let mut calls = vec![("west", "GET", "/v2/GetClusterLayout")];
    if west_writes {
        calls.push(("west", "POST", "/v2/UpdateClusterLayout"));
    }
    for (number, (caller, method, route)) in (1..).zip(calls) {
        append(Event::CallBegin(begin(number, caller, method, route)));
        append(Event::CallEnd(end(number)));
    }
    let end = State { cell: None, mesh: None, subject: "end".to_owned(), value: json!({ "events": events }) };
    journal.append(Event::State(end)).unwrap();
    (dir, path)
}

fn state(subject: &str, value: Value) -> Event {
    let (cell, mesh) = (Some("cell".to_owned()), Some("m1".to_owned()));
    Event::State(State { cell, mesh, subject: subject.to_owned(), value })
}

fn begin(call: u64, caller: &str, method: &str, path: &str) -> CallBegin {
    CallBegin {
        call,
        mesh: "m1".to_owned(),
        caller: Some(caller.to_owned()),
        target: caller.to_owned(),
        node: format!("{caller}/ns/garage-0-0"),
        node_id: "ab".repeat(32),
        incarnation: 0,
        token: Some(format!("{caller}@{caller}")),
        method: method.to_owned(),
        path: path.to_owned(),
        query: None,
        host: None,
        body: None,
        layout_write: method == "POST",
        layout_version: 1,
        layout_digest: String::new(),
    }
}

fn end(call: u64) -> CallEnd {
    CallEnd {
        call,
        status: Some(200),
        answer_digest: None,
        error: None,
        incarnation: 0,
        layout_version: 1,
        layout_digest: String::new(),
    }
}

#[test]
fn a_clean_history_passes_without_any_cluster() {
    let (_dir, path) = recorded(false);
    assert_eq!(exit_code(&["check", path.to_str().unwrap()]), 0);
}

#[test]
fn a_followers_write_is_a_violation_and_its_witness_names_the_call() {
    let (dir, path) = recorded(true);
    let output = onewriter(dir.path(), &["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(97));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("here →  #9"), "{text}");
    assert!(text.contains("west (west@west) → node west/ns/garage-0-0"), "{text}");
    assert!(text.contains("POST /v2/UpdateClusterLayout"), "{text}");
}

#[test]
fn with_the_offending_line_removed_the_history_is_broken_and_does_not_pass() {
    let (dir, path) = recorded(true);
    let text = std::fs::read_to_string(&path).unwrap();
    let spliced: String = text
        .lines()
        .filter(|line| !line.contains("UpdateClusterLayout"))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&path, spliced).unwrap();
    let output = onewriter(dir.path(), &["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(98));
    assert!(stderr(&output).contains("expected event 9, found 10"), "{}", stderr(&output));
}

#[test]
fn of_several_histories_the_strongest_exit_counts() {
    let ((dir, clean), (_other, violated)) = (recorded(false), recorded(true));
    let output = onewriter(dir.path(), &["check", clean.to_str().unwrap(), violated.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(97));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("\nPASS\n") && text.contains("\nVIOLATION\n"), "{text}");
}

#[test]
fn a_history_without_its_end_does_not_pass() {
    let (dir, path) = recorded(true);
    let text = std::fs::read_to_string(&path).unwrap();
    // Cut at a line's end, before the violation: nothing in the numbers shows it.
    let cut: String = text.lines().take(6).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, cut).unwrap();
    let output = onewriter(dir.path(), &["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(98));
    assert!(String::from_utf8_lossy(&output.stdout).contains("its end is missing"));
}

#[rstest]
#[case::torn(|text: &str| text[..text.len() - 9].to_owned(), 98)]
#[case::empty(|_: &str| String::new(), 2)]
#[case::not_json(|_: &str| "garbage\n".to_owned(), 2)]
#[case::garbled_in_the_middle(|text: &str| text.replacen("\"kind\":\"state\"", "\"kind\":42", 1), 2)]
#[case::another_schema(|text: &str| text.replace("onewriter.history/1", "onewriter.history/2"), 2)]
fn a_damaged_history_is_told_from_a_file_that_is_none(#[case] damage: fn(&str) -> String, #[case] code: i32) {
    let (_dir, path) = recorded(false);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, damage(&text)).unwrap();
    assert_eq!(exit_code(&["check", path.to_str().unwrap()]), code);
}
