//! How children end when they are told to.

use std::{os::unix::process::ExitStatusExt as _, time::Duration};

use harness::process::{Child, Launcher, Marker, ProcessIdentity};
use libtest_mimic::Trial;
use rustix::process::{Pid, WaitId, WaitIdOptions};
use tempfile::TempDir;

use crate::{DEADLINE, assert_ends, shell, trial};

const TERM: i32 = 15;
const KILL: i32 = 9;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a polite child ends at the first signal", polite),
        trial("a stubborn child is killed after the grace", stubborn),
        trial("a frozen child is killed after the grace", frozen),
        trial("what a child started ends with it", grandchildren),
        trial("stopping all ends children that nobody holds", stop_all),
        trial("a launch that was dropped half-way leaves a child that can be stopped", dropped_launch),
        trial("a child is found by its marker", marked),
    ]
}

/// Starts a script and returns what it wrote to the named pipe `$READY`.
async fn started(launcher: &Launcher, folder: &TempDir, name: &str, script: &str) -> (Child, String) {
    let pipe = folder.path().join(format!("{name}.ready"));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let mut launch = shell(folder.path(), name, script);
    launch.env.push(("READY".into(), pipe.clone().into()));
    let child = launcher.launch(launch).await.unwrap();
    let said = tokio::time::timeout(DEADLINE, tokio::fs::read_to_string(pipe)).await.unwrap().unwrap();
    (child, said.trim().to_owned())
}

async fn polite(launcher: Launcher, folder: TempDir) {
    let child = launcher.launch(shell(folder.path(), "polite", "exec sleep 60")).await.unwrap();
    assert_eq!(child.stop(DEADLINE).await.signal(), Some(TERM));
}

async fn stubborn(launcher: Launcher, folder: TempDir) {
    let script = "trap '' TERM; echo ready > $READY; while :; do sleep 60; done";
    let (child, _) = started(&launcher, &folder, "stubborn", script).await;
    assert_eq!(child.stop(Duration::from_millis(50)).await.signal(), Some(KILL));
}

async fn frozen(launcher: Launcher, folder: TempDir) {
    let child = launcher.launch(shell(folder.path(), "frozen", "kill -STOP $$")).await.unwrap();
    let pid = WaitId::Pid(Pid::from_raw(child.pid()).unwrap());
    rustix::process::waitid(pid, WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).unwrap();
    assert_eq!(child.stop(Duration::from_millis(50)).await.signal(), Some(KILL));
}

async fn grandchildren(launcher: Launcher, folder: TempDir) {
    let script = "trap '' TERM; sleep 60 & echo $! > $READY; exit 0";
    let (child, grandchild) = started(&launcher, &folder, "fork", script).await;
    let grandchild = ProcessIdentity::of(grandchild.parse().unwrap()).unwrap();
    assert!(child.exited().await.success());
    if let Some(grandchild) = grandchild {
        assert_ends(&grandchild).await;
    }
}

async fn stop_all(launcher: Launcher, folder: TempDir) {
    let mut ours = Vec::new();
    for name in ["one", "two"] {
        let child = launcher.launch(shell(folder.path(), name, "exec sleep 60")).await.unwrap();
        ours.push(ProcessIdentity::of(child.pid()).unwrap().unwrap());
    }
    assert_eq!(launcher.children().len(), 2);
    launcher.stop_all(DEADLINE).await;
    assert!(ours.iter().all(|child| !child.is_alive()));
    assert!(launcher.children().is_empty());
}

async fn dropped_launch(launcher: Launcher, folder: TempDir) {
    let launch = launcher.launch(shell(folder.path(), "dropped", "exec sleep 60"));
    // One poll hands the order to the spawner, then nobody is interested any more.
    tokio::select! { biased; _ = launch => (), () = std::future::ready(()) => () }
    let marker = Marker { id: "process-test".into(), folder: folder.path().into() };
    launcher.stop_all(DEADLINE).await;
    assert_eq!(marker.carriers().unwrap(), []);
}

async fn marked(launcher: Launcher, folder: TempDir) {
    let child = launcher.launch(shell(folder.path(), "marked", "exec sleep 60")).await.unwrap();
    // While a process becomes another program it has no environment.
    let comm = format!("/proc/{}/comm", child.pid());
    while std::fs::read_to_string(&comm).unwrap().trim() != "sleep" {
        tokio::task::yield_now().await;
    }
    let marker = Marker { id: "process-test".into(), folder: folder.path().into() };
    let pids: Vec<i32> = marker.carriers().unwrap().iter().map(|process| process.pid).collect();
    assert_eq!(pids, [child.pid()]);
    assert_eq!(Marker::carriers_of(folder.path()).unwrap().len(), 1);
    launcher.stop_all(DEADLINE).await;
}
