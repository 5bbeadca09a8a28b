//! `kill -9` at any moment, then `onewriter down`: nothing of ours is left, and nothing of others is touched.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use rstest::rstest;
use tempfile::TempDir;

use super::run::{Moment, Run, has_files, onewriter, owned_by, signal, until};

/// Whom the signal hits.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Victim {
    /// The client alone: the supervisor lives on without clients.
    Client,
    /// Client and supervisor.
    Both,
}

/// Ports that are listened on below 127.`octet`.
fn listening_below(octet: u8) -> usize {
    let address = format!("{octet:02X}7F:");
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let listens = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap_or_default();
        let state = fields.nth(1).unwrap_or_default();
        local.get(4..9) == Some(&address) && state == "0A"
    };
    table.lines().filter(listens).count()
}

#[rstest]
#[case::while_the_pair_starts(Moment::Start, Victim::Both)]
#[case::the_client_while_the_pair_starts(Moment::Start, Victim::Client)]
#[case::during_a_scenario(Moment::Scenario, Victim::Both)]
#[case::the_client_during_a_scenario(Moment::Scenario, Victim::Client)]
#[case::during_teardown(Moment::Teardown, Victim::Both)]
fn after_a_kill_down_leaves_nothing(#[case] moment: Moment, #[case] victim: Victim) {
    let dir = TempDir::new().unwrap();
    let decoy = dir.path().join("etcd");
    fs::copy("/bin/sleep", &decoy).unwrap();
    let mut decoy = Command::new(decoy).arg("600").spawn().unwrap();

    let mut run = Run::start(&[], &[]);
    run.until(moment);
    let pair = run.pair().unwrap();
    let octet: u8 = pair.to_string_lossy().rsplit('-').next().unwrap().parse().unwrap();
    if victim == Victim::Both {
        until("the supervisor's own record", || run.pid_in("supervisor.json").is_some());
        signal("KILL", run.pid_in("supervisor.json").unwrap());
    }
    signal("KILL", run.client.id());
    let status = run.client.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "the client was killed and did not end by itself: {status}");

    let down = onewriter(&run.state()).arg("down").output().unwrap();

    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    assert_eq!(owned_by(&run.state()), Vec::<String>::new(), "no process is left");
    assert_eq!(listening_below(octet), 0, "no port is left");
    assert!(!has_files(&run.state()), "no folder is left");
    assert_eq!(decoy.try_wait().unwrap(), None, "a foreign process of the same name survives");
    decoy.kill().unwrap();
    decoy.wait().unwrap();
}
