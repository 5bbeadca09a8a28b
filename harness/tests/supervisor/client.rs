//! A client in a process of its own, to be killed.

use std::{
    ffi::OsString,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use harness::supervisor::{Client, Progress, StateRoot, Wanted};
use serde::{Deserialize, Serialize};

use crate::{dummy::Script, runtime};

/// The hidden subcommand.
pub(crate) const COMMAND: &str = "__client";

/// What the client asks for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) root: PathBuf,
    pub(crate) key: Option<String>,
    pub(crate) linger: Duration,
    pub(crate) script: Script,
}

/// What it says, a line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Said {
    Progress(Progress),
    Ready { supervisor: i32 },
    Failed(String),
    Released,
}

pub(crate) fn run(args: &[OsString]) -> u8 {
    let order: Order = serde_json::from_str(args[0].to_str().unwrap()).unwrap();
    runtime().block_on(serve(order));
    0
}

async fn serve(order: Order) {
    let root = StateRoot::at(&order.root).unwrap();
    let options = serde_json::to_value(&order.script).unwrap();
    let wanted = Wanted { key: order.key, linger: order.linger, ..Wanted::private("a client", options) };
    let progress = |progress: &Progress| say(&Said::Progress(progress.clone()));
    let client = match Client::start_or_attach(&root, wanted, progress).await {
        Ok(client) => client,
        Err(error) => return say(&Said::Failed(error.to_string())),
    };
    say(&Said::Ready { supervisor: client.supervisor().pid });
    let command = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
    match command.await.unwrap().unwrap().unwrap().as_str() {
        "release" => client.release(false).await.unwrap(),
        other => panic!("{other} is no command"),
    }
    say(&Said::Released);
}

fn say(said: &Said) {
    println!("{}", serde_json::to_string(said).unwrap());
}

/// The test's end of such a process.
pub(crate) struct Remote {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Remote {
    pub(crate) fn start(order: &Order) -> Self {
        Self::start_as(&harness::entry::executable().unwrap(), order)
    }

    /// Runs the client from another executable.
    pub(crate) fn start_as(executable: &Path, order: &Order) -> Self {
        let mut process = Command::new(executable)
            .arg(COMMAND)
            .arg(serde_json::to_string(order).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = process.stdin.take().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        Self { process, stdin, stdout }
    }

    /// The next thing it says; `None` at its end.
    pub(crate) fn next(&mut self) -> Option<Said> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Reads on until it says something of this kind.
    pub(crate) fn wait_for<T>(&mut self, wanted: impl Fn(&Said) -> Option<T>) -> T {
        while let Some(said) = self.next() {
            if let Some(found) = wanted(&said) {
                return found;
            }
        }
        panic!("the client ended without saying what was awaited");
    }

    /// Waits for a message of progress.
    pub(crate) fn wait_for_step(&mut self, message: &str) {
        self.wait_for(|said| match said {
            Said::Progress(progress) if progress.message == message => Some(()),
            _ => None,
        });
    }

    /// Waits until the pair is ready and returns the supervisor's number.
    pub(crate) fn wait_for_ready(&mut self) -> i32 {
        self.wait_for(|said| match said {
            Said::Ready { supervisor } => Some(*supervisor),
            Said::Failed(error) => panic!("{error}"),
            _ => None,
        })
    }

    pub(crate) fn tell(&mut self, command: &str) {
        writeln!(self.stdin, "{command}").unwrap();
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
