//! State that is torn, half made or half removed.

use std::{fs, path::Path};

use harness::{
    process::ProcessIdentity,
    supervisor::{Client, Outcome, PairState, Progress},
};
use libtest_mimic::Trial;

use crate::{
    dummy::Script,
    scene::{DEADLINE, Scene},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("torn state files hide no process from down", torn_files),
        trial("a half-made folder whose maker is dead is removed", half_made),
        trial("a half-removed folder is removed", half_removed),
        trial("a process that left its group and session ends with its pair", stray_released),
        trial("a process that left its group and session is found after a kill", stray_killed),
        trial("recorded numbers that belong to others by now are left alone", recycled),
    ]
}

/// Starts a pair with a stray process and returns that, too.
async fn with_stray(scene: &Scene) -> (Client, ProcessIdentity) {
    let script = Script { stray: true, ..Script::default() };
    let mut stray = None;
    let progress = |progress: &Progress| {
        if progress.part == "stray" {
            stray = progress.message.parse().ok();
        }
    };
    let client = Client::start_or_attach(&scene.root, Scene::private(&script), progress).await.unwrap();
    (client, ProcessIdentity::of(stray.unwrap()).unwrap().unwrap())
}

async fn torn_files(scene: Scene) {
    let (client, stray) = with_stray(&scene).await;
    let footprint = scene.footprint().await;
    let folder = client.folder().to_owned();
    assert!(client.supervisor().kill().unwrap());
    assert!(client.supervisor().ended(DEADLINE).await.unwrap());
    for file in ["owner.json", "supervisor.json", "options.json", "processes/hub.json"] {
        tear(&folder.join(file));
    }
    let pair = scene.status().await.remove(0);
    assert_eq!((pair.state, pair.owner.is_none()), (PairState::Dead, true));
    let done = scene.down().await;
    let Outcome::Removed { killed } = &done[0].outcome else { panic!("{done:?}") };
    assert!(killed.iter().any(|killed| killed.process == stray), "{killed:?}");
    assert!(!stray.is_alive());
    footprint.assert_gone();
}

fn tear(file: &Path) {
    let text = fs::read(file).unwrap();
    fs::write(file, &text[..text.len() / 2]).unwrap();
}

async fn half_made(scene: Scene) {
    for (name, file) in
        [("pair-30", None), ("pair-31", Some("owner.json")), ("pair-32", Some("supervisor.lock"))]
    {
        let folder = scene.root.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        if let Some(file) = file {
            fs::write(folder.join(file), "").unwrap();
        }
    }
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(scene.root.path(), permissions).unwrap();
    let done = scene.down().await;
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|pair| pair.outcome == Outcome::Removed { killed: Vec::new() }), "{done:?}");
    assert!(scene.entries().is_empty());
}

async fn half_removed(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    let folder = client.folder().to_owned();
    assert!(client.supervisor().kill().unwrap());
    assert!(client.supervisor().ended(DEADLINE).await.unwrap());
    fs::rename(&folder, scene.root.path().join("removing-16-0123456789abcdef")).unwrap();
    assert!(scene.down().await[0].is_gone());
    assert!(scene.entries().is_empty());
    footprint.assert_gone();
}

async fn stray_released(scene: Scene) {
    let (client, stray) = with_stray(&scene).await;
    assert!(stray.is_alive());
    client.release(false).await.unwrap();
    assert!(!stray.is_alive());
}

async fn stray_killed(scene: Scene) {
    let (client, stray) = with_stray(&scene).await;
    assert!(client.supervisor().kill().unwrap());
    let done = scene.down().await;
    assert!(done[0].is_gone(), "{done:?}");
    assert!(!stray.is_alive());
}

async fn recycled(scene: Scene) {
    let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let record = client.folder().join("processes/hub.json");
    assert!(client.supervisor().kill().unwrap());
    assert!(client.supervisor().ended(DEADLINE).await.unwrap());
    let mut text: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    let stranger_start =
        ProcessIdentity::of(i32::try_from(stranger.id()).unwrap()).unwrap().unwrap().start_time;
    text["pid"] = stranger.id().into();
    text["startTime"] = (stranger_start - 1).into();
    fs::write(&record, text.to_string()).unwrap();
    assert!(scene.down().await[0].is_gone());
    assert_eq!(stranger.try_wait().unwrap(), None);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
