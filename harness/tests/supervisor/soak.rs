//! `kill -9` at moments that no event announces. Slow, so only on demand: `cargo test -- --ignored`.

use std::{ffi::OsString, fs, process::Command, thread::sleep, time::Duration};

use harness::{
    process::ProcessIdentity,
    supervisor::{DownOptions, PairDown, StateRoot, down::down},
};
use libtest_mimic::Trial;

use crate::{
    client::{Order, Remote},
    dummy::Script,
    runtime,
    scene::{DEADLINE, Scene},
    trial,
};

/// The hidden subcommand that takes everything down below a root.
pub(crate) const COMMAND: &str = "__down";

const ROUNDS: u32 = 150;
/// From one round to the next the kill comes this much later; a start takes about 60 ms.
const STEP: Duration = Duration::from_micros(800);

pub(crate) fn run(args: &[OsString]) -> u8 {
    let root = StateRoot::at(&args[0]).unwrap();
    runtime().block_on(async { down(&root, &forced()).await.unwrap() });
    0
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("kills at any moment, then down, leave nothing", any_moment).with_ignored_flag(true)]
}

async fn any_moment(scene: Scene) {
    for round in 0..ROUNDS {
        let mut client = Remote::start(&order(&scene));
        sleep(STEP * round);
        if round % 3 != 0 {
            for supervisor in supervisors(&scene) {
                supervisor.kill().unwrap();
            }
        }
        if round % 3 != 1 {
            client.kill();
        }
        kill_a_down(&scene, STEP * (round % 40));
        drop(client);
        let done = down(&scene.root, &forced()).await.unwrap();
        assert!(done.iter().all(PairDown::is_gone), "round {round}: {done:?}");
        assert_eq!(scene.entries(), Vec::<String>::new(), "round {round}");
        assert_eq!(supervisors(&scene), [], "round {round}");
        assert_eq!(parts(&scene), [], "round {round}");
    }
}

fn order(scene: &Scene) -> Order {
    let script = Script { stray: true, ..Script::default() };
    Order { root: scene.root.path().into(), key: None, linger: DEADLINE * 10, script }
}

fn forced() -> DownOptions {
    DownOptions { force: true, ..DownOptions::default() }
}

/// A `down` that is killed half-way must not stand in the way of the next.
fn kill_a_down(scene: &Scene, after: Duration) {
    let executable = harness::entry::executable().unwrap();
    let mut down = Command::new(executable).arg(COMMAND).arg(scene.root.path()).spawn().unwrap();
    sleep(after);
    down.kill().unwrap();
    down.wait().unwrap();
}

/// Everything that was started for a pair of this root, found without any record.
fn parts(scene: &Scene) -> Vec<ProcessIdentity> {
    let root = scene.root.path().join("pair-").into_os_string().into_string().unwrap();
    running(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&root)
    })
}

/// Every supervisor of this root, found without any record.
fn supervisors(scene: &Scene) -> Vec<ProcessIdentity> {
    let root = scene.root.path().to_str().unwrap();
    running(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains("__supervise") && line.contains(root)
    })
}

fn running(wanted: impl Fn(i32) -> bool) -> Vec<ProcessIdentity> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let found = numbers.filter(|pid| wanted(*pid)).filter_map(|pid| ProcessIdentity::of(pid).unwrap());
    found.filter(ProcessIdentity::is_alive).collect()
}
