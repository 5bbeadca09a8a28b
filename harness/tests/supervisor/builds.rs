//! Pairs of another build, and executables that change while they run.

use std::{fs, path::PathBuf, time::Duration};

use libtest_mimic::Trial;

use crate::{
    client::{Order, Remote, Said},
    dummy::Script,
    scene::{DEADLINE, Scene},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a rebuilt executable does not use an old pair that others use", in_use),
        trial("a rebuilt executable replaces an old pair that nobody uses", replaced),
        trial("another executable of the same version shares the pair", shared),
        trial("a pair goes on when its executable is removed", removed),
        trial("the hidden subcommand says that it is not for people", by_hand),
    ]
}

/// A copy of this executable, and a new one in the same place when called again.
fn install(scene: &Scene) -> PathBuf {
    let (path, new) = (scene.elsewhere("program"), scene.elsewhere("program.new"));
    // Not by this process: what it forks meanwhile would hold the file open for writing, so it could not be run.
    let this = std::env::current_exe().unwrap();
    assert!(std::process::Command::new("cp").args([&this, &new]).status().unwrap().success());
    fs::rename(&new, &path).unwrap();
    path
}

fn order(scene: &Scene, linger: Duration) -> Order {
    let root = scene.root.path().into();
    Order { root, key: Some("shared".into()), linger, script: Script::default() }
}

async fn in_use(scene: Scene) {
    let mut old = Remote::start_as(&install(&scene), &order(&scene, DEADLINE));
    old.wait_for_ready();
    let mut new = Remote::start_as(&install(&scene), &order(&scene, DEADLINE));
    let Some(Said::Failed(error)) = new.next() else { panic!("it must fail") };
    assert!(error.contains("was rebuilt after the pair was started; it is in use by process"), "{error}");
    old.tell("release");
    assert_eq!(old.next(), Some(Said::Released));
    assert!(scene.entries().is_empty());
}

async fn replaced(scene: Scene) {
    let mut old = Remote::start_as(&install(&scene), &order(&scene, DEADLINE * 10));
    let first = old.wait_for_ready();
    let footprint = scene.footprint().await;
    old.kill();
    let mut new = Remote::start_as(&install(&scene), &order(&scene, DEADLINE));
    assert_ne!(new.wait_for_ready(), first);
    assert!(footprint.processes.iter().all(|process| !process.is_alive()));
    new.tell("release");
    assert_eq!(new.next(), Some(Said::Released));
}

async fn shared(scene: Scene) {
    let mut one = Remote::start_as(&install(&scene), &order(&scene, DEADLINE));
    let two = scene.start(Scene::shared(&Script::default())).await.unwrap();
    assert_eq!(one.wait_for_ready(), two.supervisor().pid);
    one.tell("release");
    assert_eq!(one.next(), Some(Said::Released));
    two.release(false).await.unwrap();
}

async fn removed(scene: Scene) {
    let program = install(&scene);
    let mut client = Remote::start_as(&program, &order(&scene, DEADLINE));
    client.wait_for_step("starts");
    fs::remove_file(&program).unwrap();
    client.wait_for_ready();
    client.tell("release");
    assert_eq!(client.next(), Some(Said::Released));
    assert!(scene.entries().is_empty());
}

async fn by_hand(scene: Scene) {
    let output = std::process::Command::new(harness::entry::executable().unwrap())
        .arg("__supervise")
        .arg(scene.root.path().join("pair-16"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "supervisor: __supervise is internal: standard input is not the pair's socket\n");
}
