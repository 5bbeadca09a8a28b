//! `down` removes what is ours and nobody uses, and nothing else.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    process::Command,
    time::Duration,
};

use harness::{
    process::ProcessIdentity,
    supervisor::{DownOptions, Outcome, PairState, Wanted, down::down},
};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixListener,
};

use crate::{
    dummy::{self, Script},
    scene::{Footprint, Scene},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("down leaves a pair in use alone and says who uses it", in_use),
        trial("down by force takes a pair in use", by_force),
        trial("down waits for a teardown that is under way", under_way),
        trial("down kills a supervisor that does not answer", frozen),
        trial("a supervisor of another version is left alone unless by force", incompatible),
        trial("a stranger of the same program and arguments survives", decoy),
        trial("what is not ours in the state folder survives and is reported", foreign),
        trial("an unsafe state folder is refused", unsafe_root),
        trial("down without any pair does nothing, twice", nothing),
    ]
}

async fn in_use(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let done = scene.down().await;
    let Outcome::InUse { holders } = &done[0].outcome else { panic!("{done:?}") };
    assert_eq!(holders[0].purpose, "a test");
    client.ping().await.unwrap();
    client.release(false).await.unwrap();
}

async fn by_force(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    let done = down(&scene.root, &DownOptions { force: true, ..DownOptions::default() }).await.unwrap();
    assert_eq!(done[0].outcome, Outcome::TornDown);
    assert_eq!(client.died().await.part, "supervisor");
    footprint.assert_gone();
}

async fn under_way(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    let (released, done) = tokio::join!(client.release(false), scene.down());
    released.unwrap();
    // Down came before the release, found the teardown, or found nothing.
    let expected = |outcome: &Outcome| matches!(outcome, Outcome::TornDown | Outcome::InUse { .. });
    assert!(done.iter().all(|pair| expected(&pair.outcome)), "{done:?}");
    footprint.assert_gone();
}

async fn frozen(scene: Scene) {
    let wanted = Wanted { kept: true, ..Scene::private(&Script::default()) };
    let client = scene.start(wanted).await.unwrap();
    let footprint = scene.footprint().await;
    client.release(false).await.unwrap();
    rustix::process::kill_process(Pid::from_raw(footprint.processes[0].pid).unwrap(), Signal::STOP).unwrap();
    let options = DownOptions { answer_deadline: Duration::from_millis(300), ..DownOptions::default() };
    let done = down(&scene.root, &options).await.unwrap();
    let Outcome::Killed { reason, .. } = &done[0].outcome else { panic!("{done:?}") };
    assert!(reason.contains("has not answered within 300ms"), "{reason}");
    footprint.assert_gone();
}

/// What stands in for a supervisor of another version: a socket that refuses, and a lock that is held as long as
/// the recorded process lives.
async fn incompatible(scene: Scene) {
    let folder = scene.root.path().join("pair-77");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(scene.root.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let lock = fs::File::create(folder.join("supervisor.lock")).unwrap();
    lock.lock().unwrap();
    let mut other = Command::new("sleep").arg("60").stdin(lock).spawn().unwrap();
    let identity = ProcessIdentity::of(i32::try_from(other.id()).unwrap()).unwrap().unwrap();
    fs::write(folder.join("supervisor.json"), serde_json::to_string(&identity).unwrap()).unwrap();
    let socket = UnixListener::bind(folder.join("supervisor.sock")).unwrap();
    let refuse = tokio::spawn(async move {
        loop {
            let (mut stream, _) = socket.accept().await.unwrap();
            let hello = stream.read(&mut [0; 4096]).await.unwrap();
            assert!(hello > 0);
            stream
                .write_all(b"{\"type\":\"mismatch\",\"problem\":\"it speaks protocol 9\"}\n")
                .await
                .unwrap();
        }
    });
    let done = scene.down().await;
    assert_eq!(done[0].outcome, Outcome::Incompatible { problem: "it speaks protocol 9".into() });
    assert!(identity.is_alive());
    let done = down(&scene.root, &DownOptions { force: true, ..DownOptions::default() }).await.unwrap();
    assert!(done[0].is_gone(), "{done:?}");
    assert!(!identity.is_alive());
    assert!(scene.entries().is_empty());
    refuse.abort();
    other.wait().unwrap();
}

async fn decoy(scene: Scene) {
    let executable = harness::entry::executable().unwrap();
    let mut decoy = Command::new(executable).args([dummy::PART, "127.0.0.1:0"]).spawn().unwrap();
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    assert!(client.supervisor().kill().unwrap());
    assert!(scene.down().await[0].is_gone());
    footprint.assert_gone();
    assert_eq!(decoy.try_wait().unwrap(), None);
    decoy.kill().unwrap();
    decoy.wait().unwrap();
}

async fn foreign(scene: Scene) {
    let precious = scene.elsewhere("precious");
    fs::create_dir(&precious).unwrap();
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    symlink(&precious, scene.root.path().join("pair-200")).unwrap();
    fs::create_dir(scene.root.path().join("pair-of-shoes")).unwrap();
    fs::create_dir(scene.root.path().join("unrelated")).unwrap();
    client.release(false).await.unwrap();
    let done = scene.down().await;
    assert!(done.iter().all(|pair| matches!(pair.outcome, Outcome::NotOurs { .. })), "{done:?}");
    assert_eq!(done.len(), 2);
    assert_eq!(scene.entries(), ["pair-200", "pair-of-shoes", "unrelated"]);
    assert!(precious.exists());
}

async fn unsafe_root(scene: Scene) {
    fs::create_dir(scene.root.path()).unwrap();
    fs::set_permissions(scene.root.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = scene.start(Scene::private(&Script::default())).await.unwrap_err();
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("can be written to by others (mode 777)"), "{reason}");
    assert!(down(&scene.root, &DownOptions::default()).await.is_err());
}

async fn nothing(scene: Scene) {
    assert!(scene.down().await.is_empty());
    let wanted = Wanted { kept: true, ..Scene::private(&Script::default()) };
    let client = scene.start(wanted).await.unwrap();
    let footprint: Footprint = scene.footprint().await;
    assert_eq!(scene.status().await[0].state, PairState::Running);
    client.release(true).await.unwrap();
    assert_eq!(scene.down().await.len(), 1);
    assert!(scene.down().await.is_empty());
    footprint.assert_gone();
}
