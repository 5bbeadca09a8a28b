//! A run of the program, seen from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take; generous, because a first run builds Kubernetes.
const LIMIT: Duration = Duration::from_mins(15);

/// A run with state and artifacts of its own.
pub(crate) struct Run {
    dir: TempDir,
    pub(crate) client: Child,
}

/// A moment in a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// A process of the pair has just been started.
    Start,
    /// A scenario has created its cluster.
    Scenario,
    /// The cells are being closed.
    Teardown,
}

impl Run {
    /// Starts `onewriter run bootstrap` with further arguments and variables.
    pub(crate) fn start(args: &[&str], env: &[(&str, &Path)]) -> Self {
        let dir = TempDir::new().unwrap();
        let mut command = onewriter(&dir.path().join("state"));
        command.args(["run", "bootstrap", "--artifacts-dir"]).arg(dir.path().join("artifacts")).args(args);
        for (name, value) in env {
            command.env(name, value);
        }
        let client = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        Self { dir, client }
    }

    /// The folder in which the run's pair lies.
    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Waits until the run has got to `moment`.
    pub(crate) fn until(&self, moment: Moment) {
        until(&format!("{moment:?}"), || match moment {
            Moment::Start => self.pair().is_some_and(|pair| has_files(&pair.join("processes"))),
            Moment::Scenario => self.has_step("create GarageCluster"),
            Moment::Teardown => self.has_step("delete GarageClusters"),
        });
    }

    /// The pair's folder, once there is one.
    pub(crate) fn pair(&self) -> Option<PathBuf> {
        pair_in(&self.state())
    }

    /// The number of the process that `file` in the pair's folder records, once it does.
    pub(crate) fn pid_in(&self, file: &str) -> Option<u32> {
        let text = fs::read_to_string(self.pair()?.join(file)).ok()?;
        let record: Value = serde_json::from_str(&text).ok()?;
        let identity = record.get("identity").or(record.get("process")).unwrap_or(&record);
        u32::try_from(identity["pid"].as_u64()?).ok()
    }

    /// Waits for the end of the client, and looks at what is left.
    pub(crate) fn end(self) -> Ended {
        let state = self.state();
        let output = self.client.wait_with_output().unwrap();
        let verdict = fs::read(self.dir.path().join("artifacts/latest/verdict.json"));
        let verdict = verdict.ok().and_then(|text| serde_json::from_slice(&text).ok());
        Ended {
            code: output.status.code(),
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            verdict: verdict.unwrap_or_default(),
            left: owned_by(&state),
            pair: pair_in(&state),
            state,
            dir: self.dir,
        }
    }

    fn has_step(&self, title: &str) -> bool {
        let steps = self.dir.path().join("artifacts/latest/steps.jsonl");
        fs::read_to_string(steps).is_ok_and(|text| text.contains(title))
    }
}

/// A run that has ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// What it printed on stdout.
    pub(crate) text: String,
    pub(crate) verdict: Value,
    /// Command lines of processes that are left.
    left: Vec<String>,
    /// The pair's folder, if it is left.
    pub(crate) pair: Option<PathBuf>,
    pub(crate) state: PathBuf,
    dir: TempDir,
}

impl Ended {
    /// Asserts the exit code, and that nothing is left behind.
    pub(crate) fn assert(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{}", self.text);
        assert_eq!(self.left, Vec::<String>::new(), "no process is left");
        assert!(!has_files(&self.state), "no folder is left");
    }

    /// The folder of all artifacts.
    pub(crate) fn artifacts(&self) -> PathBuf {
        self.dir.path().join("artifacts")
    }
}

/// The folder of the pair below `state`, if there is one.
fn pair_in(state: &Path) -> Option<PathBuf> {
    let is_pair =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pair-"));
    fs::read_dir(state).ok()?.filter_map(|entry| Some(entry.ok()?.path())).find(is_pair)
}

/// The program, with a state folder of its own.
pub(crate) fn onewriter(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onewriter"));
    command.env("ONEWRITER_STATE_DIR", state).env("CI", "true");
    command
}

/// Waits for something that another process brings about.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LIMIT, "{what} did not come to pass within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal, which must find its process.
pub(crate) fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "process {pid} was there to be sent {name}");
}

pub(crate) fn has_files(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| entries.count() > 0)
}

/// Command lines of the processes whose owner's folder is below `state`.
pub(crate) fn owned_by(state: &Path) -> Vec<String> {
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
