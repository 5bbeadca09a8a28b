//! The program: what it prints and with which code it exits.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use tempfile::TempDir;

#[path = "support/network.rs"]
mod network;

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

#[rstest]
#[case::empty("", "not a script of format garage-conformance/1", "EOF while parsing")]
#[case::no_object("7", "not a script", "invalid type: integer `7`")]
#[case::deep(&format!(r#"{{"x":{}"#, "[".repeat(100_000)), "not a script", "EOF while parsing a list at line 1 column 100005")]
#[case::no_steps(
    r#"{"format":"garage-conformance/1","name":"n","nodes":{}}"#,
    "not a script",
    "missing field `steps`"
)]
#[case::unknown_node(
    r#"{"format":"garage-conformance/1","name":"n","nodes":{},"steps":[{"at_ms":0,"do":{"op":"kill","nodes":["n1"]}}]}"#,
    "because: step 0: there is no node `n1`",
    ""
)]
#[case::far_future(
    r#"{"format":"garage-conformance/1","name":"n","nodes":{},"steps":[{"at_ms":18446744073709551615,"do":{"op":"heal"}}]}"#,
    "because: step 0: at_ms 18446744073709551615 is more than a day",
    ""
)]
#[case::no_identity(
    r#"{"format":"garage-conformance/1","name":"n","nodes":{"n1":{"id":"xy","site":"s","rpc":"127.0.0.1:1"}},"steps":[]}"#,
    "not a script",
    "at line 1 column"
)]
fn a_malformed_session_exits_2_and_says_where(
    #[case] session: &str,
    #[case] what: &str,
    #[case] place: &str,
) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("session.json");
    fs::write(&path, session).unwrap();
    let output = fake_garage(&["replay", path.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(path.to_str().unwrap()) && said.contains(what) && said.contains(place), "{said}");
}

#[rstest]
#[case::absent(None, "No such file or directory")]
#[case::no_text(Some(b"\xff\xfe".as_slice()), "valid UTF-8")]
fn a_session_that_cannot_be_read_exits_2(#[case] content: Option<&[u8]>, #[case] message: &str) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("session.json");
    if let Some(content) = content {
        fs::write(&path, content).unwrap();
    }
    let output = fake_garage(&["replay", SESSION, path.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("cannot read {}", path.display())) && said.contains(message), "{said}");
    assert!(output.stdout.is_empty(), "nothing is replayed");
}

/// A hub's command line, and the files it names.
struct Serving {
    folder: TempDir,
    listen: String,
}

impl Serving {
    fn new() -> Self {
        let [high, low] = network::network();
        let serving = Self { folder: TempDir::new().unwrap(), listen: format!("127.{high}.{low}.3:0") };
        serving.token("token", 0o600);
        serving
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn token(&self, text: &str, mode: u32) {
        fs::write(self.path("token"), text).unwrap();
        fs::set_permissions(self.path("token"), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Runs the hub with something else on its command line; it must end by itself.
    fn ends(&self, changed: &[&str]) -> (Option<i32>, String) {
        let (token, journal) = (self.path("token"), self.path("journal"));
        let usual = [
            ("--listen", self.listen.as_str()),
            ("--run", "r"),
            ("--node-network", "127.250.9.10+4"),
            ("--control-token-file", token.to_str().unwrap()),
            ("--journal", journal.to_str().unwrap()),
        ];
        let kept = usual.iter().filter(|(flag, _)| !changed.contains(flag));
        let kept = kept.flat_map(|(flag, value)| [*flag, *value]);
        let output = fake_garage(
            &["serve"].into_iter().chain(kept).chain(changed.iter().copied()).collect::<Vec<_>>(),
        );
        (output.status.code(), text(&output.stderr))
    }
}

#[rstest]
#[case::no_address(&["--listen", "somewhere"], "expected ADDRESS:PORT with a numeric address")]
#[case::no_port(&["--listen", "127.0.0.1"], "expected ADDRESS:PORT with a numeric address")]
#[case::port_too_large(&["--listen", "127.0.0.1:65536"], "expected ADDRESS:PORT with a numeric address")]
#[case::no_network(&["--node-network", "127.20.1.1"], "expected FIRST+COUNT")]
#[case::empty_network(&["--node-network", "127.20.1.1+0"], "expected FIRST+COUNT")]
#[case::no_site(&["--proxy", "127.0.0.1:1"], "expected SITE=ADDRESS:PORT")]
#[case::empty_site(&["--proxy", "=127.0.0.1:1"], "the name of the site is missing")]
#[case::no_proxy_address(&["--proxy", "east=here"], "expected ADDRESS:PORT with a numeric address")]
#[case::no_run(&["--run", ""], "expected a name")]
#[case::unknown_pacing(&["--pacing", "warp"], "possible values: fast, observed")]
#[case::no_seed(&["--seed", "one"], "invalid value 'one' for '--seed <SEED>'")]
#[case::unknown_flag(&["--colour", "red"], "unexpected argument '--colour'")]
fn a_mistake_in_the_hubs_command_line_exits_2(#[case] changed: &[&str], #[case] message: &str) {
    let serving = Serving::new();
    let (code, said) = serving.ends(changed);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(message) && said.contains("--help"), "{said}");
    assert!(!serving.path("journal").exists(), "nothing half-done stays behind");
}

#[rstest]
#[case::empty(" \n", 0o600, "the file holds no token; write a random text into it")]
#[case::two_lines("one\ntwo\n", 0o600, "the file holds several lines; it should hold the token alone")]
#[case::open("token", 0o604, "anybody may read the token (mode 0604); chmod 600 the file")]
fn a_bad_control_token_file_exits_2(#[case] token: &str, #[case] mode: u32, #[case] message: &str) {
    let serving = Serving::new();
    serving.token(token, mode);
    let (code, said) = serving.ends(&[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("{}: {message}", serving.path("token").display())), "{said}");
}

#[test]
fn two_proxies_of_one_site_exit_2() {
    let serving = Serving::new();
    let (code, said) = serving.ends(&["--proxy", "east=127.0.0.1:1", "--proxy", "east=127.0.0.1:2"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--proxy is given twice for east: 127.0.0.1:1 and 127.0.0.1:2"), "{said}");
    assert!(!serving.path("journal").exists(), "nothing half-done stays behind");
}

#[test]
fn by_the_name_garage_it_has_the_version_that_garage_prints() {
    let folder = TempDir::new().unwrap();
    let garage = folder.path().join("garage");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fake-garage"), &garage).unwrap();
    let output = Command::new(&garage).arg("--version").output().unwrap();
    // As garage 2.5.0 was seen to print it.
    let expected = "garage cargo:2.5.0 [features: bundled-libs, k2v, lmdb, metrics, sqlite]\n";
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn a_missing_control_token_file_exits_2() {
    let (code, said) = Serving::new().ends(&["--control-token-file", "/nowhere/token"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("cannot read /nowhere/token") && said.contains("No such file"), "{said}");
}

#[rstest]
#[case::no_folder("/nowhere/journal", "No such file or directory")]
#[case::a_folder("/", "File exists")]
#[case::no_permission("/proc/journal", "")]
fn a_history_that_cannot_be_written_exits_96(#[case] journal: &str, #[case] cause: &str) {
    let (code, said) = Serving::new().ends(&["--journal", journal]);
    assert_eq!(code, Some(96), "{said}");
    let named = format!("cannot create the history {journal}");
    assert!(
        said.contains("cannot begin the history") && said.contains(&named) && said.contains(cause),
        "{said}"
    );
}

#[test]
fn a_hub_does_not_start_over_an_existing_history() {
    let serving = Serving::new();
    fs::write(serving.path("journal"), "precious").unwrap();
    let (code, said) = serving.ends(&[]);
    assert_eq!(code, Some(96), "{said}");
    assert!(said.contains("cannot begin the history") && said.contains("File exists"), "{said}");
    assert_eq!(fs::read_to_string(serving.path("journal")).unwrap(), "precious");
}

#[rstest]
#[case::control("--listen", "", "the control API")]
#[case::proxy("--proxy", "east=", "the proxy of east")]
fn an_address_that_is_taken_exits_96_and_leaves_no_history(
    #[case] flag: &str,
    #[case] before: &str,
    #[case] purpose: &str,
) {
    let serving = Serving::new();
    let taken = std::net::TcpListener::bind(&serving.listen).unwrap();
    let address = taken.local_addr().unwrap();
    let (code, said) = serving.ends(&[flag, &format!("{before}{address}")]);
    assert_eq!(code, Some(96), "{said}");
    let expected =
        format!("cannot listen on {address} for {purpose}: the address is taken; stop what listens there");
    assert!(said.contains(&expected), "{said}");
    assert!(!serving.path("journal").exists());
}

#[test]
fn an_address_of_another_machine_exits_96() {
    let (code, said) = Serving::new().ends(&["--listen", "192.0.2.1:7070"]);
    assert_eq!(code, Some(96), "{said}");
    assert!(said.contains("the address does not belong to this machine"), "{said}");
}

#[test]
fn a_command_line_without_what_is_needed_exits_2() {
    assert_eq!(fake_garage(&[]).status.code(), Some(2));
    assert_eq!(fake_garage(&["explode"]).status.code(), Some(2));
    assert_eq!(fake_garage(&["replay"]).status.code(), Some(2));
    assert_eq!(fake_garage(&["serve"]).status.code(), Some(2));
}

#[rstest]
#[case::program(&["--help"], "A recording fake of the Garage admin API and cluster layout")]
#[case::serve(&["serve", "--help"], "Run a hub: nodes of any number of meshes")]
#[case::node(&["node", "--help"], "Run the process of a pod")]
#[case::replay(&["replay", "--help"], "Play recorded sessions with real Garage to the fake")]
fn help_says_what_a_command_does_and_how_it_ends(#[case] arguments: &[&str], #[case] first: &str) {
    let output = fake_garage(arguments);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(said.starts_with(first) && said.contains("Exit codes: 0 "), "{said}");
}
