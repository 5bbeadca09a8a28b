//! What the program makes of what runs left behind: pages, and judgements without any cluster.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness::checks;
use harness::garage;
use harness::report::{Invocation, Verdict, bundle};
use onewriter_history::History;
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs `onewriter` with state and artifacts below a folder.
fn onewriter(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onewriter"))
        .args(args)
        .env("ONEWRITER_STATE_DIR", dir.join("state"))
        .env("ONEWRITER_ARTIFACTS_DIR", dir)
        .env("CI", "true")
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A run whose follower, west, reads, and writes if `west_writes`.
fn run(dir: &Path, name: &str, west_writes: bool) -> PathBuf {
    let folder = dir.join(name);
    fs::create_dir_all(folder.join("scenarios/bootstrap__follower")).unwrap();
    let text = history(name, west_writes);
    let history = History::parse(&text).unwrap();
    let mut verdict = Verdict::new(name, vec![], checks::judge(&garage::checks::all(), &history), vec![]);
    verdict.invocation = Some(Invocation::default());
    fs::write(folder.join("history.jsonl"), text).unwrap();
    fs::write(folder.join("verdict.json"), serde_json::to_string(&verdict).unwrap()).unwrap();
    bundle::write(&folder, &verdict).unwrap();
    folder
}

fn history(run: &str, west_writes: bool) -> String {
    let node = "ab".repeat(32);
    let mut events = vec![
        state("roles", &json!({"east": "Writer", "west": "Follower"})),
        state("expectation", &json!({"writes": ["east"], "reads": ["west"]})),
        state("node", &json!({"node": "east/m1/garage-0", "nodeId": node, "event": "started"})),
        begin(1, "east", "POST", "/v2/ApplyClusterLayout", 0),
        state("layout", &json!({"nodeId": node, "incarnation": 0, "event": "applied", "from": 0, "to": 1})),
        end(1),
    ];
    let mut calls = vec![("GET", "/v2/GetClusterLayout")];
    calls.extend(west_writes.then_some(("POST", "/v2/UpdateClusterLayout")));
    for (call, (method, path)) in (2..).zip(calls) {
        events.extend([begin(call, "west", method, path, 1), end(call)]);
    }
    let count = events.len();
    events.push(json!({"kind": "state", "subject": "end", "value": {"events": count}}));
    let header = json!({"schema": "onewriter.history/1", "run": run, "startedAt": "2026-01-01T00:00:00Z",
        "sites": ["east", "west"], "versions": {}});
    let mut text = format!("{header}\n");
    for (seq, mut event) in (1..).zip(events) {
        let place = json!({"seq": seq, "at": "2026-01-01T00:00:01Z", "monoNs": seq, "source": "hub", "sourceSeq": seq});
        event.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        text += &format!("{event}\n");
    }
    text
}

fn state(subject: &str, value: &Value) -> Value {
    json!({"kind": "state", "cell": "bootstrap/follower", "mesh": "m1", "subject": subject, "value": value})
}

fn begin(call: u64, caller: &str, method: &str, path: &str, version: u64) -> Value {
    json!({"kind": "call.begin", "call": call, "mesh": "m1", "caller": caller, "target": caller,
        "node": format!("{caller}/m1/garage-0"), "nodeId": "ab".repeat(32), "incarnation": 0, "method": method,
        "token": format!("{caller}@{caller}"), "path": path, "layoutWrite": method == "POST",
        "layoutVersion": version, "layoutDigest": ""})
}

fn end(call: u64) -> Value {
    json!({"kind": "call.end", "call": call, "status": 200, "incarnation": 0, "layoutVersion": 1, "layoutDigest": ""})
}

#[rstest]
#[case::a_run_by_its_name("r1", "r1/report.html")]
#[case::the_newest_run("latest", "r1/report.html")]
#[case::a_history("r1/history.jsonl", "r1/history.html")]
#[case::a_bundle("r1/bundle.tar.gz", "r1/bundle.html")]
fn a_page_is_written_about(#[case] named: &str, #[case] page: &str) {
    let dir = TempDir::new().unwrap();
    run(dir.path(), "r1", true);
    std::os::unix::fs::symlink("r1", dir.path().join("latest")).unwrap();
    let output = onewriter(dir.path(), &["report", named]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let html = fs::read_to_string(dir.path().join(page)).unwrap();
    for part in ["follower-never-writes", "west is declared Follower and wrote the layout", "id=\"index\""] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_page_goes_where_it_is_wanted() {
    let dir = TempDir::new().unwrap();
    run(dir.path(), "r1", false);
    let page = dir.path().join("pages/one.html");
    let output =
        onewriter(dir.path(), &["report", "r1", "--output", page.to_str().unwrap(), "--format", "json"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["bytes"], fs::metadata(&page).unwrap().len());
}

#[rstest]
#[case::the_folder_of_a_violating_run("r1", true, 97)]
#[case::its_bundle("r1/bundle.tar.gz", true, 97)]
#[case::its_history("r1/history.jsonl", true, 97)]
#[case::the_bundle_of_a_passing_run("r1/bundle.tar.gz", false, 0)]
fn what_was_recorded_is_judged_again(#[case] named: &str, #[case] west_writes: bool, #[case] code: i32) {
    let dir = TempDir::new().unwrap();
    run(dir.path(), "r1", west_writes);
    let output = onewriter(dir.path(), &["replay", named]);
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    assert!(
        stdout(&output).contains(&format!("the run itself ended with exit code {code}, too")),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_bundle_whose_history_was_torn_leaves_the_verdict_open() {
    let dir = TempDir::new().unwrap();
    let folder = run(dir.path(), "r1", true);
    let path = folder.join("history.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 9]).unwrap();
    bundle::write(&folder, &Verdict::new("r1", vec![], vec![], vec![])).unwrap();
    let output = onewriter(dir.path(), &["replay", "r1/bundle.tar.gz"]);
    assert_eq!(output.status.code(), Some(98));
    assert!(stderr(&output).contains("the history is torn"), "{}", stderr(&output));
}

#[rstest]
#[case::a_run_that_is_not_there(&["report", "r9"], 2, "r9")]
#[case::a_bundle_that_is_not_there(&["replay", "/no/such/bundle.tar.gz"], 2, "/no/such/bundle.tar.gz")]
#[case::a_folder_of_no_run(&["replay", "empty"], 2, "neither verdict.json nor history.jsonl")]
#[case::an_archive_that_is_cut(&["replay", "cut.tar.gz"], 2, "cut.tar.gz")]
#[case::tries_of_nothing(&["replay", "r1", "--tries", "5"], 2, "--run")]
#[case::no_try(&["replay", "r1", "--run", "--tries", "0"], 2, "--tries")]
#[case::an_operator_that_is_not_there(&["replay", "r1", "--run", "--operator-bin", "/no/op"], 2, "/no/op")]
#[case::logs_of_nothing(&["logs"], 4, "nothing runs")]
#[case::logs_of_no_pair(&["logs", "--pair", "pair-99"], 4, "no pair is named `pair-99`")]
#[case::evidence_of_nothing(&["collect"], 4, "nothing runs")]
fn bad_input_is_named_and_has_its_exit_code(#[case] args: &[&str], #[case] code: i32, #[case] says: &str) {
    let dir = TempDir::new().unwrap();
    run(dir.path(), "r1", true);
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("cut.tar.gz"), [0x1f, 0x8b, 8]).unwrap();
    let output = onewriter(dir.path(), args);
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
}
