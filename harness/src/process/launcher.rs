//! Starting children.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{fs::DirBuilderExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{io::AsyncReadExt as _, runtime::Handle, sync::oneshot};

use super::{
    child::Child,
    marker::{self, Marker},
    spawner,
    trampoline::{Refusal, Stage, Task},
};
use crate::entry::{self, ExecutableError};

/// What to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Name of the part, unique among the running children of a launcher: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments. Any user of the machine can read them: no secret belongs here.
    pub args: Vec<OsString>,
    /// Its environment, on top of `PATH`, `HOME` and `TMPDIR`; nothing else is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Where its standard output and error are appended (created with mode 0600).
    pub log: PathBuf,
}

/// Why a child was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The name cannot be a file name.
    #[error(
        "{name:?} cannot name a process: use letters, digits, '-', '_' and '.', and start with none of them"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A child of that name runs.
    #[error("{name} runs already as process {pid}")]
    Running {
        /// The name.
        name: String,
        /// Its process number.
        pid: i32,
    },
    /// The launcher has been closed.
    #[error("{name} was not started because everything is being stopped")]
    Closed {
        /// The name.
        name: String,
    },
    /// The harness' own executable cannot be found.
    #[error("cannot start {name}")]
    Executable {
        /// The name.
        name: String,
        /// Why.
        source: ExecutableError,
    },
    /// The trampoline could not be started or watched.
    #[error("cannot start the launcher of {name}")]
    Spawn {
        /// The name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The program is not there, or the kernel refuses to run it.
    #[error("cannot run {} as {name}", program.display())]
    Program {
        /// The name.
        name: String,
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The log could not be opened.
    #[error("cannot open the log {} of {name}", log.display())]
    Log {
        /// The name.
        name: String,
        /// The log.
        log: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The trampoline gave up before it became the program.
    #[error("the launcher of {name} gave up")]
    Prepare {
        /// The name.
        name: String,
        /// Why.
        source: io::Error,
    },
}

/// Starts children and keeps track of them. Clones share the children.
///
/// Every child dies with this process, whatever kills it, and can be found by its record afterwards. Launching
/// needs a Tokio runtime and a `main` that calls [`crate::entry::intercept`] first.
#[derive(Debug, Clone)]
pub struct Launcher {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    records: PathBuf,
    marker: Marker,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    children: Vec<Child>,
}

impl Launcher {
    /// A launcher that writes its records to the folder `records` (made if it is not there) and marks every
    /// child as `marker`'s.
    pub fn new(records: PathBuf, marker: Marker) -> io::Result<Self> {
        match fs::DirBuilder::new().mode(0o700).create(&records) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        let records = std::path::absolute(records)?;
        Ok(Self { shared: Arc::new(Shared { records, marker, state: Mutex::default() }) })
    }

    /// Starts a child, in `/`, with the null device as standard input.
    ///
    /// When this returns, the program runs in its own process group and its record is written. A call that is
    /// dropped half-way leaves a child that [`Launcher::stop_all`] stops.
    pub async fn launch(&self, launch: Launch) -> Result<Child, LaunchError> {
        check_name(&launch.name)?;
        let failed = |source| LaunchError::Spawn { name: launch.name.clone(), source };
        let command = self.command(&launch)?;
        let (answer, started) = oneshot::channel();
        let (shared, wanted, runtime) = (Arc::clone(&self.shared), launch.clone(), Handle::current());
        spawner::run(move || {
            // Nobody is left to answer when the call was dropped; the child is known all the same.
            drop(answer.send(shared.spawn(command, &wanted, &runtime)));
        })
        .map_err(failed)?;
        let (child, report) =
            started.await.map_err(|_| failed(io::Error::other("no answer from the spawner")))??;
        confirm(&launch, report).await?;
        Ok(child)
    }

    /// The running children, oldest first.
    pub fn children(&self) -> Vec<Child> {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.children.retain(|child| child.status().is_none());
        state.children.clone()
    }

    /// Starts nothing any more and stops all children at once, those too whose launch is under way.
    pub async fn stop_all(&self, grace: Duration) {
        let children = {
            let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.closed = true;
            std::mem::take(&mut state.children)
        };
        futures::future::join_all(children.iter().map(|child| child.stop(grace))).await;
    }

    fn command(&self, launch: &Launch) -> Result<Command, LaunchError> {
        let name = &launch.name;
        let executable =
            entry::executable().map_err(|source| LaunchError::Executable { name: name.clone(), source })?;
        let log = std::path::absolute(&launch.log).map_err(|source| LaunchError::Log {
            name: name.clone(),
            log: launch.log.clone(),
            source,
        })?;
        let task = Task {
            parent: rustix::process::getpid().as_raw_pid(),
            records: self.shared.records.clone(),
            name: name.clone(),
            log,
            program: absolute_program(&launch.program),
            args: launch.args.clone(),
        };
        let mut command = Command::new(executable);
        command.arg0(entry::shown_name()).args(task.to_args()).env_clear().envs(inherited());
        command.env(marker::VARIABLE, self.shared.marker.value());
        command.envs(launch.env.iter().map(|(name, value)| (name, value)));
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(command)
    }
}

impl Shared {
    /// Forks, on the spawner's thread. Under the lock, so that closing sees either no child or a known one.
    fn spawn(
        &self,
        mut command: Command,
        launch: &Launch,
        runtime: &Handle,
    ) -> Result<(Child, Option<ChildStdout>), LaunchError> {
        let name = launch.name.clone();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Err(LaunchError::Closed { name });
        }
        state.children.retain(|child| child.status().is_none());
        if let Some(child) = state.children.iter().find(|child| child.name() == name) {
            return Err(LaunchError::Running { name, pid: child.pid() });
        }
        let failed = |source| LaunchError::Spawn { name: launch.name.clone(), source };
        let mut process = command.spawn().map_err(failed)?;
        let report = process.stdout.take();
        let child = Child::watch(name, launch.log.clone(), process, runtime).map_err(failed)?;
        state.children.push(child.clone());
        Ok((child, report))
    }
}

/// Waits until the trampoline has become the program, or says why it has not.
async fn confirm(launch: &Launch, report: Option<ChildStdout>) -> Result<(), LaunchError> {
    let prepare = |source| LaunchError::Prepare { name: launch.name.clone(), source };
    let report = report.ok_or_else(|| prepare(io::Error::other("no pipe to the launcher")))?;
    let mut report = tokio::process::ChildStdout::from_std(report).map_err(prepare)?;
    let mut text = Vec::new();
    report.read_to_end(&mut text).await.map_err(prepare)?;
    if text.is_empty() {
        return Ok(());
    }
    let refusal: Refusal = serde_json::from_slice(&text).map_err(|error| prepare(error.into()))?;
    let source =
        refusal.os_error.map_or_else(|| io::Error::other(refusal.text), io::Error::from_raw_os_error);
    let name = launch.name.clone();
    Err(match refusal.stage {
        Stage::Exec => LaunchError::Program { name, program: launch.program.clone(), source },
        Stage::Log => LaunchError::Log { name, log: launch.log.clone(), source },
        Stage::Arguments | Stage::Bind | Stage::Record => LaunchError::Prepare { name, source },
    })
}

fn check_name(name: &str) -> Result<(), LaunchError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let valid = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(allowed);
    if valid { Ok(()) } else { Err(LaunchError::Name { name: name.into() }) }
}

/// A relative path is meant from here, not from the child's `/`; a bare name is looked up in `PATH`.
fn absolute_program(program: &Path) -> PathBuf {
    let bare = program.components().count() == 1 && program.parent() == Some(Path::new(""));
    if bare {
        return program.into();
    }
    std::path::absolute(program).unwrap_or_else(|_| program.into())
}

fn inherited() -> impl Iterator<Item = (&'static OsStr, OsString)> {
    ["PATH", "HOME", "TMPDIR"]
        .into_iter()
        .filter_map(|name| std::env::var_os(name).map(|value| (OsStr::new(name), value)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("etcd-east", true)]
    #[case("west.operator_1", true)]
    #[case("", false)]
    #[case("../etcd", false)]
    #[case(".hidden", false)]
    #[case("a b", false)]
    fn names_are_plain_file_names(#[case] name: &str, #[case] valid: bool) {
        assert_eq!(check_name(name).is_ok(), valid);
    }

    #[rstest]
    #[case("sleep", "sleep")]
    #[case("/bin/sleep", "/bin/sleep")]
    fn programs_keep_their_meaning(#[case] given: &str, #[case] meant: &str) {
        assert_eq!(absolute_program(Path::new(given)), Path::new(meant));
    }

    #[test]
    fn a_relative_program_is_meant_from_here() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(absolute_program(Path::new("./tool")), here.join("tool"));
        assert_eq!(absolute_program(Path::new("bin/tool")), here.join("bin/tool"));
    }
}
