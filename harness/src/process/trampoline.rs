//! The hidden subcommand that a child is before it becomes its program.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::{
        fd::AsFd as _,
        unix::{fs::OpenOptionsExt as _, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::{
    identity::ProcessIdentity,
    record::{ProcessRecord, RecordError},
};
use crate::entry;

/// The hidden subcommand's name.
pub(crate) const COMMAND: &str = "__launch";

/// What the trampoline tells its parent about a start that failed; nothing at all means that it succeeded.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// Which step failed.
    pub(super) stage: Stage,
    /// The kernel's error number, if the error came from there.
    pub(super) os_error: Option<i32>,
    /// The error in words.
    pub(super) text: String,
}

/// The steps of the trampoline, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stage {
    /// Understanding its arguments.
    Arguments,
    /// Binding its life to its parent.
    Bind,
    /// Writing down who it is.
    Record,
    /// Opening the log.
    Log,
    /// Becoming the program.
    Exec,
}

/// What is launched, as the trampoline's arguments.
pub(super) struct Task {
    pub(super) parent: i32,
    pub(super) records: PathBuf,
    pub(super) name: String,
    pub(super) log: PathBuf,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
}

impl Task {
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec![
            COMMAND.into(),
            self.parent.to_string().into(),
            self.records.clone().into(),
            self.name.clone().into(),
            self.log.clone().into(),
            self.program.clone().into(),
        ];
        args.extend(self.args.iter().cloned());
        args
    }

    /// Reads back what [`Task::to_args`] wrote, without the subcommand's name.
    fn from_args(args: &[OsString]) -> Option<Self> {
        let mut args = args.iter();
        Some(Self {
            parent: args.next()?.to_str()?.parse().ok()?,
            records: args.next()?.into(),
            name: args.next()?.to_str()?.to_owned(),
            log: args.next()?.into(),
            program: args.next()?.into(),
            args: args.cloned().collect(),
        })
    }
}

/// Runs the trampoline. Comes back only if the program could not be started.
pub(crate) fn run(args: &[OsString]) -> u8 {
    // The pipe to the parent is standard output until the program takes over. This copy closes itself then
    // (close-on-exec), and that end of file is how the parent learns of the success.
    let report = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let Err(refusal) = become_program(args);
    let sent = serde_json::to_vec(&refusal).map_err(io::Error::from);
    let sent = sent.and_then(|text| report.and_then(|mut report| report.write_all(&text)));
    match sent {
        Ok(()) => 126,
        Err(_) => 127,
    }
}

fn become_program(args: &[OsString]) -> Result<Infallible, Refusal> {
    let usage = || Refusal {
        stage: Stage::Arguments,
        os_error: None,
        text: format!("{COMMAND} is internal and takes PARENT RECORDS NAME LOG PROGRAM ARGUMENTS"),
    };
    let task = Task::from_args(args).ok_or_else(usage)?;
    bind_to_parent(task.parent).map_err(|error| refusal(Stage::Bind, &error))?;
    record(&task)?;
    let log = open_log(&task.log).map_err(|error| refusal(Stage::Log, &error))?;
    let copy = log.try_clone().map_err(|error| refusal(Stage::Log, &error))?;
    let mut program = Command::new(&task.program);
    program.args(&task.args).stdin(Stdio::null()).stdout(log).stderr(copy);
    if task.program == Path::new(entry::OWN_EXECUTABLE) {
        program.arg0(entry::shown_name());
    }
    Err(refusal(Stage::Exec, &program.exec()))
}

/// From here on this process dies with its parent. The signal is not sent for a parent that died before it was
/// asked for, hence the second look.
fn bind_to_parent(parent: i32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if Pid::as_raw(rustix::process::getppid()) == parent {
        return Ok(());
    }
    Err(io::Error::other("the process that started this one has ended"))
}

fn record(task: &Task) -> Result<(), Refusal> {
    let identity = ProcessIdentity::current().map_err(|error| Refusal {
        stage: Stage::Record,
        os_error: None,
        text: error.to_string(),
    })?;
    let record = ProcessRecord { name: task.name.clone(), program: task.program.clone(), identity };
    record.write(&task.records).map_err(|error| match error {
        RecordError::Write { source, .. } => refusal(Stage::Record, &source),
        other => Refusal { stage: Stage::Record, os_error: None, text: other.to_string() },
    })
}

fn open_log(path: &PathBuf) -> io::Result<File> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_follow).open(path)
}

fn refusal(stage: Stage, error: &io::Error) -> Refusal {
    Refusal { stage, os_error: error.raw_os_error(), text: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn arguments_come_back_as_they_went_in_even_if_they_are_not_text() {
        let odd = OsString::from_vec(vec![0xff, b' ', b'-']);
        let task = Task {
            parent: 7,
            records: "/r".into(),
            name: "etcd".into(),
            log: "/l".into(),
            program: "/p".into(),
            args: vec![odd.clone(), "--".into()],
        };
        let read = Task::from_args(&task.to_args()[1..]).unwrap();
        assert_eq!((read.parent, read.name.as_str()), (7, "etcd"));
        assert_eq!(read.args, [odd, "--".into()]);
    }

    #[test]
    fn too_few_arguments_are_refused() {
        assert!(Task::from_args(&["7".into(), "/r".into()]).is_none());
    }
}
