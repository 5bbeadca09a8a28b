//! What is true once a child was started, and what is said when it was not.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use harness::process::{Child, LaunchError, Launcher, ProcessIdentity, ProcessRecord};
use libtest_mimic::Trial;
use tempfile::TempDir;

use crate::{shell, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a started child is the program, in a group of its own, and on record", records),
        trial("the log gets both streams, is appended to and is private", logs),
        trial("a child inherits nothing but path, home, temporary folder and its own variables", clears_env),
        trial("a missing program is said to be missing", missing_program),
        trial("a log that cannot be opened is named", unwritable_log),
        trial("a log that is a symbolic link is not followed", linked_log),
        trial("a name in use is refused until its child has ended", name_in_use),
        trial("a closed launcher starts nothing", closed),
        trial("every waiter learns how a child ended, also afterwards", many_waiters),
    ]
}

async fn run(launcher: &Launcher, folder: &TempDir, name: &str, script: &str) -> Child {
    launcher.launch(shell(folder.path(), name, script)).await.unwrap()
}

async fn records(launcher: Launcher, folder: TempDir) {
    let child = run(&launcher, &folder, "sleeper", "exec sleep 60").await;
    let records = ProcessRecord::read_all(&folder.path().join("processes")).unwrap();
    let record = records[0].as_ref().unwrap();
    assert_eq!((record.name.as_str(), record.program.as_path()), ("sleeper", Path::new("sh")));
    assert_eq!(Some(&record.identity), ProcessIdentity::of(child.pid()).unwrap().as_ref());
    assert!(record.identity.is_alive());
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.pid())).unwrap();
    let group = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(2).unwrap().to_owned();
    assert_eq!(group, child.pid().to_string());
    launcher.stop_all(crate::DEADLINE).await;
}

async fn logs(launcher: Launcher, folder: TempDir) {
    for _ in 0..2 {
        let child = run(&launcher, &folder, "talker", "echo out; echo err >&2").await;
        assert!(child.exited().await.success());
    }
    let log = folder.path().join("talker.log");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "out\nerr\nout\nerr\n");
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
}

async fn clears_env(launcher: Launcher, folder: TempDir) {
    let mut launch = shell(folder.path(), "env", "env");
    launch.env = vec![("RUST_LOG".into(), "debug".into())];
    let child = launcher.launch(launch).await.unwrap();
    child.exited().await;
    let log = child.log_tail(100);
    let mut names: Vec<&str> = log.lines().filter_map(|line| line.split_once('=')).map(|(n, _)| n).collect();
    names.sort_unstable();
    // The shell adds PWD, SHLVL, OLDPWD and _ by itself.
    names.retain(|name| !["PWD", "SHLVL", "OLDPWD", "_", "TMPDIR", "HOME"].contains(name));
    assert_eq!(names, ["ONEWRITER_OWNER", "PATH", "RUST_LOG"]);
}

async fn missing_program(launcher: Launcher, folder: TempDir) {
    let mut launch = shell(folder.path(), "etcd", "");
    launch.program = "/nonexistent/etcd".into();
    let error = launcher.launch(launch).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot run /nonexistent/etcd as etcd");
    assert!(
        matches!(error, LaunchError::Program { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    );
}

async fn unwritable_log(launcher: Launcher, folder: TempDir) {
    let mut launch = shell(folder.path(), "etcd", "exit 0");
    launch.log = folder.path().join("none/etcd.log");
    let error = launcher.launch(launch).await.unwrap_err();
    assert!(matches!(&error, LaunchError::Log { log, .. } if log.ends_with("none/etcd.log")), "{error:?}");
}

async fn linked_log(launcher: Launcher, folder: TempDir) {
    let target = folder.path().join("victim");
    std::os::unix::fs::symlink(&target, folder.path().join("etcd.log")).unwrap();
    let error = launcher.launch(shell(folder.path(), "etcd", "echo overwritten")).await.unwrap_err();
    assert!(matches!(error, LaunchError::Log { .. }), "{error:?}");
    assert!(!target.exists());
}

async fn name_in_use(launcher: Launcher, folder: TempDir) {
    let first = run(&launcher, &folder, "hub", "exec sleep 60").await;
    let refused = launcher.launch(shell(folder.path(), "hub", "exit 0")).await.unwrap_err();
    assert!(matches!(refused, LaunchError::Running { pid, .. } if pid == first.pid()), "{refused:?}");
    first.stop(crate::DEADLINE).await;
    assert!(run(&launcher, &folder, "hub", "exit 0").await.exited().await.success());
}

async fn closed(launcher: Launcher, folder: TempDir) {
    launcher.stop_all(crate::DEADLINE).await;
    let refused = launcher.launch(shell(folder.path(), "late", "exit 0")).await.unwrap_err();
    assert!(matches!(refused, LaunchError::Closed { .. }), "{refused:?}");
}

async fn many_waiters(launcher: Launcher, folder: TempDir) {
    let child = run(&launcher, &folder, "seven", "exit 7").await;
    let waiters = futures::future::join_all((0..5).map(|_| child.exited())).await;
    assert!(waiters.iter().all(|status| status.code() == Some(7)));
    assert_eq!(child.exited().await.code(), Some(7));
}
