//! Parts that do not start, or die: the run says which, shows the end of its log, and ends.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::run::{Moment, Run, signal};

/// An executable script.
fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn an_operator_that_crashes_at_start_ends_the_set_up() {
    let dir = TempDir::new().unwrap();
    let operator = script(dir.path(), "operator", "echo 'panic: no such flag' >&2; exit 7");
    let ended = Run::start(&["--operator-bin", operator.to_str().unwrap()], &[]).end();
    ended.assert(96);
    assert!(ended.text.contains("operator ended with exit status: 7"), "{}", ended.text);
    assert!(ended.text.contains("panic: no such flag"), "the end of its log is shown: {}", ended.text);
}

#[test]
fn an_operator_that_dies_later_fails_the_run() {
    let run = Run::start(&["--step-timeout", "2m"], &[]);
    run.until(Moment::Scenario);
    signal("KILL", run.pid_in("processes/east-operator.json").unwrap());
    let ended = run.end();
    ended.assert(100);
    assert!(ended.text.contains("east-operator ended: signal: 9"), "{}", ended.text);
    assert!(ended.text.contains("garage-operator is up"), "the end of its log is shown: {}", ended.text);
    assert_eq!(ended.verdict["verdict"], "fail");
}

#[test]
fn a_hub_that_dies_leaves_the_verdict_open() {
    let run = Run::start(&[], &[]);
    run.until(Moment::Scenario);
    signal("KILL", run.pid_in("processes/hub.json").unwrap());
    let ended = run.end();
    ended.assert(98);
    assert_eq!(ended.verdict["verdict"], "unknown");
}

#[test]
fn a_control_plane_that_does_not_come_up_shows_the_end_of_its_log() {
    let dir = TempDir::new().unwrap();
    let text = "[ \"$1\" = --version ] && { echo 'Kubernetes v1.36.3'; exit 0; }\necho 'cannot start: on purpose' >&2; exit 1";
    script(dir.path(), "kube-apiserver", text);
    let ended = Run::start(&[], &[("KUBEBUILDER_ASSETS", dir.path())]).end();
    ended.assert(96);
    assert!(ended.text.contains("kube-apiserver of"), "{}", ended.text);
    assert!(ended.text.contains("cannot start: on purpose"), "{}", ended.text);
}
