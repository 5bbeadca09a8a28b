//! Pairs that do not come up, or do not stay up.

use std::{error::Error as _, time::Duration};

use harness::supervisor::{ClientError, PairState, Wanted};
use libtest_mimic::Trial;
use tokio_util::sync::CancellationToken;

use crate::{
    dummy::{HANGING, Script, Start},
    scene::{Footprint, Scene},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a failed start says why, shows logs, keeps them, and leaves nothing", failed),
        trial("a start that panics is a failed start", panicked),
        trial("options that the pair does not understand are a failed start", bad_options),
        trial("a cancelled start leaves nothing", cancelled),
        trial("a start that takes too long says what it did last, and leaves nothing", too_slow),
        trial("a start whose client vanishes is given up after the linger time", vanished_starter),
        trial("a part that dies is announced with its status and log", part_dies),
        trial("a broken pair ends with its last client", broken_ends),
        trial("a killed supervisor is announced to its clients", supervisor_dies),
        trial("a supervisor that is told to terminate tears down", terminated),
    ]
}

async fn failed(scene: Scene) {
    let target = scene.elsewhere("kept");
    let script = Script { start: Start::Fail, ..Script::default() };
    let wanted = Wanted { keep_logs: Some(target.clone()), ..Scene::private(&script) };
    let error = scene.start(wanted).await.unwrap_err();
    let ClientError::Failed { source, logs } = &error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "the pair did not start");
    assert_eq!(source.source().unwrap().to_string(), "told to fail");
    assert!(logs[0].tail.contains("listening on 127."), "{logs:?}");
    assert!(std::fs::read_to_string(target.join("hub.log")).unwrap().contains("listening"));
    assert!(target.join("supervisor.log").exists());
    assert!(scene.entries().is_empty());
}

async fn panicked(scene: Scene) {
    let script = Script { start: Start::Panic, ..Script::default() };
    let error = scene.start(Scene::private(&script)).await.unwrap_err();
    let ClientError::Failed { source, .. } = &error else { panic!("{error:?}") };
    assert!(source.source().unwrap().to_string().contains("told to panic"), "{source:?}");
    assert!(scene.entries().is_empty());
}

async fn bad_options(scene: Scene) {
    let wanted = Wanted { options: serde_json::json!({ "start": 3 }), ..Scene::private(&Script::default()) };
    let error = scene.start(wanted).await.unwrap_err();
    assert!(matches!(error, ClientError::Failed { .. }), "{error:?}");
    assert!(scene.entries().is_empty());
}

async fn cancelled(scene: Scene) {
    let cancel = CancellationToken::new();
    let script = Script { start: Start::Hang, ..Script::default() };
    let wanted = Wanted { cancel: cancel.clone(), kept: true, ..Scene::private(&script) };
    let (hanging, hangs) = tokio::sync::oneshot::channel();
    let mut hanging = Some(hanging);
    let start = harness::supervisor::Client::start_or_attach(&scene.root, wanted, |progress| {
        if progress.message == HANGING {
            hanging.take().unwrap().send(()).unwrap();
        }
    });
    let watch = async {
        hangs.await.unwrap();
        let footprint = scene.footprint().await;
        cancel.cancel();
        footprint
    };
    let (error, footprint) = tokio::join!(start, watch);
    assert!(matches!(error.unwrap_err(), ClientError::Cancelled));
    footprint.assert_gone();
}

async fn too_slow(scene: Scene) {
    let script = Script { start: Start::Hang, ..Script::default() };
    let wanted = Wanted { deadline: Duration::from_secs(1), ..Scene::private(&script) };
    let error = scene.start(wanted).await.unwrap_err().to_string();
    assert_eq!(error, "the pair was not ready within 1s; its last step was pair: hangs");
    assert!(scene.entries().is_empty());
}

async fn vanished_starter(scene: Scene) {
    let script = Script { start: Start::Hang, ..Script::default() };
    let wanted = Wanted { linger: Duration::from_millis(50), kept: true, ..Scene::private(&script) };
    let (hanging, hangs) = tokio::sync::oneshot::channel();
    let mut hanging = Some(hanging);
    let footprint = {
        let start = harness::supervisor::Client::start_or_attach(&scene.root, wanted, |progress| {
            if progress.message == HANGING {
                hanging.take().unwrap().send(()).unwrap();
            }
        });
        tokio::select! {
            _ = start => panic!("it hangs"),
            footprint = async { hangs.await.unwrap(); scene.footprint().await } => footprint,
        }
    };
    footprint.wait_for_end().await;
    footprint.assert_gone();
}

async fn part_dies(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    assert!(footprint.processes[1].kill().unwrap());
    let (one, two) = tokio::join!(client.died(), client.died());
    assert_eq!(one, two);
    assert_eq!((one.part.as_str(), one.status.as_str()), ("hub", "signal: 9 (SIGKILL)"));
    assert!(one.log.tail.contains("listening on"), "{one:?}");
    let pair = scene.status().await.remove(0);
    assert_eq!((pair.state, pair.died.as_slice()), (PairState::Broken, ["hub".to_owned()].as_slice()));
    client.release(false).await.unwrap();
    footprint.assert_gone();
}

async fn broken_ends(scene: Scene) {
    let client = scene.start(Scene::shared(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    assert!(footprint.processes[2].kill().unwrap());
    client.died().await;
    // The scene's linger time is a minute: only its being broken ends the pair in time.
    client.release(true).await.unwrap();
    footprint.wait_for_end().await;
    footprint.assert_gone();
}

async fn supervisor_dies(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    assert!(footprint.processes[0].kill().unwrap());
    let death = client.died().await;
    assert_eq!(
        (death.part.as_str(), death.status.as_str()),
        ("supervisor", "the supervisor ended without a word")
    );
    assert!(matches!(client.ping().await.unwrap_err(), ClientError::Stopping { .. }));
    let pairs = scene.status().await;
    assert_eq!(pairs[0].state, PairState::Dead);
    assert!(scene.down().await[0].is_gone());
    footprint.assert_gone();
}

async fn terminated(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let footprint: Footprint = scene.footprint().await;
    assert!(footprint.processes[0].terminate().unwrap());
    assert_eq!(client.died().await.status, "the supervisor got SIGTERM");
    footprint.wait_for_end().await;
    footprint.assert_gone();
}
