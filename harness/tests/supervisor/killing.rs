//! `kill -9` of client, supervisor or both, at every stage, then `down`: nothing is left.

use std::time::Duration;

use harness::{
    process::ProcessIdentity,
    supervisor::{DownOptions, Outcome, PairDown, down::down},
};
use libtest_mimic::Trial;

use crate::{
    client::{Order, Remote},
    dummy::{HANGING, Script, Start},
    scene::{DEADLINE, Footprint, Scene},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for stage in [Stage::FirstPart, Stage::Starting, Stage::Running, Stage::Stopping] {
        for victim in [Victim::Client, Victim::Supervisor, Victim::Both] {
            let name = format!("killing {victim:?} while {stage:?}, then down, leaves nothing");
            trials.push(Trial::test(name, move || {
                let scene = Scene::new().map_err(libtest_mimic::Failed::from)?;
                crate::runtime().block_on(kill(scene, stage, victim));
                Ok(())
            }));
        }
    }
    trials.push(trial("a supervisor and its parts die together, before any down", parts_die_with_supervisor));
    trials.push(trial("a dead pair does not keep its key", dead_key));
    trials
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The first part is about to be started.
    FirstPart,
    /// All parts run, but the start is not over.
    Starting,
    /// The pair is ready.
    Running,
    /// The pair is being torn down.
    Stopping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Client,
    Supervisor,
    Both,
}

async fn kill(scene: Scene, stage: Stage, victim: Victim) {
    let mut client = Remote::start(&order(&scene, stage));
    let footprint = reach(&scene, &mut client, stage).await;
    if victim != Victim::Client {
        assert!(footprint.processes[0].kill().unwrap());
    }
    if victim != Victim::Supervisor {
        client.kill();
    }
    let options =
        DownOptions { force: true, teardown_deadline: Duration::from_millis(500), ..DownOptions::default() };
    let done = down(&scene.root, &options).await.unwrap();
    assert!(done.iter().all(PairDown::is_gone), "{done:?}");
    let expected = match (victim, stage) {
        (Victim::Client, Stage::Stopping) => matches!(done[0].outcome, Outcome::Killed { .. }),
        (Victim::Client, _) => done[0].outcome == Outcome::TornDown,
        _ => matches!(done[0].outcome, Outcome::Removed { .. }),
    };
    assert!(expected, "{done:?}");
    footprint.assert_gone();
    assert!(scene.entries().is_empty(), "{:?}", scene.entries());
    assert!(scene.down().await.is_empty());
}

fn order(scene: &Scene, stage: Stage) -> Order {
    let script = Script {
        start: if stage == Stage::Starting { Start::Hang } else { Start::Ready },
        hang_stop: stage == Stage::Stopping,
        stray: true,
    };
    Order { root: scene.root.path().into(), key: Some("shared".into()), linger: DEADLINE * 10, script }
}

/// Waits for a stage and returns what the pair is made of by then.
async fn reach(scene: &Scene, client: &mut Remote, stage: Stage) -> Footprint {
    match stage {
        Stage::FirstPart => client.wait_for_step("starts"),
        Stage::Starting => client.wait_for_step(HANGING),
        Stage::Running => drop(client.wait_for_ready()),
        Stage::Stopping => return stopping(scene, client).await,
    }
    scene.footprint().await
}

/// A teardown is under way once a client hears of it.
async fn stopping(scene: &Scene, client: &mut Remote) -> Footprint {
    client.wait_for_ready();
    let observer = scene.start(Scene::shared(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    assert!(footprint.processes[0].terminate().unwrap());
    assert_eq!(observer.died().await.status, "the supervisor got SIGTERM");
    footprint
}

async fn parts_die_with_supervisor(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    assert!(footprint.processes[0].kill().unwrap());
    for process in &footprint.processes {
        assert!(process.ended(DEADLINE).await.unwrap());
    }
    drop(client);
    assert!(scene.down().await[0].is_gone());
    footprint.assert_gone();
}

async fn dead_key(scene: Scene) {
    let first = scene.start(Scene::shared(&Script::default())).await.unwrap();
    let supervisor: ProcessIdentity = first.supervisor().clone();
    let footprint = scene.footprint().await;
    assert!(supervisor.kill().unwrap());
    let second = scene.start(Scene::shared(&Script::default())).await.unwrap();
    assert_ne!(second.supervisor(), &supervisor);
    assert!(footprint.processes.iter().all(|process| !process.is_alive()));
    assert_eq!(scene.entries().len(), 1);
    second.release(false).await.unwrap();
}
