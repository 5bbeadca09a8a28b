//! Children of a parent that is killed.

use std::{
    ffi::OsString,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use harness::process::{Launcher, ProcessIdentity, ProcessRecord};
use libtest_mimic::Trial;
use tempfile::TempDir;

use crate::{assert_ends, launcher, runtime, shell, trial};

/// A process that starts children in the folder it is given, says so and waits to be killed.
pub(crate) const COMMAND: &str = "__parent";

const CHILDREN: usize = 3;

pub(crate) fn run(args: &[OsString]) -> u8 {
    let folder = PathBuf::from(&args[0]);
    runtime().block_on(async {
        let launcher = launcher(&folder);
        for number in 0..CHILDREN {
            launcher.launch(shell(&folder, &format!("child-{number}"), "exec sleep 60")).await.unwrap();
        }
        println!("ready");
        std::future::pending::<()>().await;
    });
    0
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("children of a killed parent die, and are on record", killed_parent),
        trial("a trampoline whose parent is another process starts nothing", orphan),
    ]
}

async fn killed_parent(_: Launcher, folder: TempDir) {
    let executable = harness::entry::executable().unwrap();
    let mut parent =
        Command::new(executable).arg(COMMAND).arg(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "ready\n");
    let records = ProcessRecord::read_all(&folder.path().join("processes")).unwrap();
    let children: Vec<ProcessIdentity> = records.into_iter().map(|record| record.unwrap().identity).collect();
    assert_eq!(children.len(), CHILDREN);
    assert!(children.iter().all(ProcessIdentity::is_alive));
    parent.kill().unwrap();
    parent.wait().unwrap();
    for child in &children {
        assert_ends(child).await;
    }
}

async fn orphan(_: Launcher, folder: TempDir) {
    let output = Command::new(harness::entry::executable().unwrap())
        .args(["__launch", "1"])
        .arg(folder.path().join("processes"))
        .arg("orphan")
        .arg(folder.path().join("orphan.log"))
        .args(["sh", "-c", "echo started"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(126));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("the process that started this one has ended"), "{said}");
    assert!(!folder.path().join("orphan.log").exists());
}
