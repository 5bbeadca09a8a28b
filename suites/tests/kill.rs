//! `kill -9` at any moment, then `onewriter down`: nothing of ours is left, and nothing of others is touched.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rstest::rstest;
use tempfile::TempDir;

/// How long a run may take to get to the moment at which it is killed.
const LIMIT: Duration = Duration::from_mins(15);

/// The moment at which a run is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// A process of the pair has just been started.
    Start,
    /// A scenario has created its cluster.
    Scenario,
    /// The cells are being closed.
    Teardown,
}

/// Whom the signal hits.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Victim {
    /// The client alone: the supervisor lives on without clients.
    Client,
    /// Client and supervisor.
    Both,
}

struct Run {
    state: PathBuf,
    artifacts: PathBuf,
    client: Child,
}

impl Run {
    fn start(dir: &Path) -> Self {
        let (state, artifacts) = (dir.join("state"), dir.join("artifacts"));
        let client = onewriter(&state)
            .args(["run", "bootstrap", "--artifacts-dir"])
            .arg(&artifacts)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { state, artifacts, client }
    }

    /// Whether the run has got to `moment`.
    fn is_at(&self, moment: Moment) -> bool {
        match moment {
            Moment::Start => self.pair().is_some_and(|pair| has_files(&pair.join("processes"))),
            Moment::Scenario => self.has_step("create GarageCluster"),
            Moment::Teardown => self.has_step("delete GarageClusters"),
        }
    }

    fn has_step(&self, title: &str) -> bool {
        let steps = self.artifacts.join("latest/steps.jsonl");
        fs::read_to_string(steps).is_ok_and(|text| text.contains(title))
    }

    fn pair(&self) -> Option<PathBuf> {
        let entries = fs::read_dir(&self.state).ok()?;
        let is_pair =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pair-"));
        entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_pair)
    }

    fn supervisor(&self) -> Option<u32> {
        let text = fs::read_to_string(self.pair()?.join("supervisor.json")).ok()?;
        let identity: serde_json::Value = serde_json::from_str(&text).ok()?;
        u32::try_from(identity["pid"].as_u64()?).ok()
    }
}

fn onewriter(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onewriter"));
    command.env("ONEWRITER_STATE_DIR", state).env("CI", "true");
    command
}

fn has_files(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| entries.count() > 0)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LIMIT, "{what} did not come to pass within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success(), "process {pid} was there to be killed");
}

/// Processes whose owner's folder is below `state`.
fn owned_by(state: &Path) -> Vec<String> {
    let wanted = format!(":{}/", state.display());
    let of = |entry: fs::DirEntry| {
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let ours = environment.split(|byte| *byte == 0).any(|line| {
            line.starts_with(b"ONEWRITER_OWNER=") && String::from_utf8_lossy(line).contains(&wanted)
        });
        ours.then(|| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default().replace('\0', " "))
    };
    fs::read_dir("/proc").unwrap().filter_map(|entry| of(entry.ok()?)).collect()
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

    let mut run = Run::start(dir.path());
    until("the moment of the kill", || run.is_at(moment));
    let octet: u8 = run.pair().unwrap().to_string_lossy().rsplit('-').next().unwrap().parse().unwrap();
    if victim == Victim::Both {
        until("the supervisor's own record", || run.supervisor().is_some());
        kill(run.supervisor().unwrap());
    }
    kill(run.client.id());
    let status = run.client.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "the client was killed and did not end by itself: {status}");

    let down = onewriter(&run.state).arg("down").output().unwrap();

    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    assert_eq!(owned_by(&run.state), Vec::<String>::new(), "no process is left");
    assert_eq!(listening_below(octet), 0, "no port is left");
    assert!(!has_files(&run.state), "no folder is left");
    assert_eq!(decoy.try_wait().unwrap(), None, "a foreign process of the same name survives");
    decoy.kill().unwrap();
    decoy.wait().unwrap();
}
