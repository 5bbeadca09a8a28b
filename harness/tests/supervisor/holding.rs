//! Pairs live as long as somebody holds them.

use std::time::Duration;

use harness::supervisor::{ClientError, PairState, Wanted};
use libtest_mimic::Trial;
use serde_json::json;

use crate::{
    client::{Order, Remote, Said},
    dummy::Script,
    scene::{DEADLINE, Footprint, Scene},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a pair is described, answers, and leaves nothing when it is released", whole_life),
        trial("a released pair lingers for those who come soon", lingers),
        trial("a pair ends by itself when its linger time is over", linger_ends),
        trial("a client that vanishes leaves its pair for the linger time", vanished),
        trial("many who ask for one key at once get one pair", many_at_once),
        trial("two private pairs live side by side on addresses of their own", side_by_side),
        trial("a kept pair outlives its clients until it is taken down", kept),
        trial("a pair can be kept after the fact", kept_later),
        trial("who wants to keep a pair keeps it, even if another started it", kept_by_another),
        trial("nobody takes a pair from under another client but by force", not_from_under),
        trial("status tells who holds a pair, what runs and how much memory it takes", status),
        trial("a request of another kind is refused with the pair's reason", refused_request),
        trial("files of a pair are private", private_files),
    ]
}

async fn whole_life(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let footprint = scene.footprint().await;
    assert_eq!(footprint.processes.len(), 3);
    assert!(client.description()["hub"].as_str().unwrap().starts_with("127."));
    assert_eq!(client.request(json!({ "echo": 7 })).await.unwrap(), json!({ "echoed": 7 }));
    client.ping().await.unwrap();
    client.release(false).await.unwrap();
    footprint.assert_gone();
    assert!(scene.entries().is_empty());
}

async fn lingers(scene: Scene) {
    let first = scene.start(Scene::shared(&Script::default())).await.unwrap();
    let supervisor = first.supervisor().clone();
    first.release(true).await.unwrap();
    let second = scene.start(Scene::shared(&Script::default())).await.unwrap();
    assert_eq!(second.supervisor(), &supervisor);
    second.release(false).await.unwrap();
    assert!(scene.entries().is_empty());
}

async fn linger_ends(scene: Scene) {
    let wanted = Wanted { linger: Duration::from_millis(50), ..Scene::private(&Script::default()) };
    let client = scene.start(wanted).await.unwrap();
    let footprint = scene.footprint().await;
    client.release(true).await.unwrap();
    footprint.wait_for_end().await;
    footprint.assert_gone();
}

async fn vanished(scene: Scene) {
    let wanted = Wanted { linger: Duration::from_millis(50), ..Scene::private(&Script::default()) };
    let client = scene.start(wanted).await.unwrap();
    let footprint = scene.footprint().await;
    drop(client);
    footprint.wait_for_end().await;
    footprint.assert_gone();
}

async fn many_at_once(scene: Scene) {
    let order = Order {
        root: scene.root.path().into(),
        key: Some("shared".into()),
        linger: DEADLINE,
        script: Script::default(),
    };
    let mut clients: Vec<Remote> = (0..6).map(|_| Remote::start(&order)).collect();
    let mut supervisors = Vec::new();
    for client in &mut clients {
        let first = client.next().unwrap();
        assert!(matches!(&first, Said::Progress(step) if step.part == "hub"), "{first:?}");
        supervisors.push(client.wait_for_ready());
    }
    supervisors.dedup();
    assert_eq!(supervisors.len(), 1);
    let pairs = scene.status().await;
    assert_eq!((pairs.len(), pairs[0].holders.len()), (1, 6));
    let footprint = Footprint::of(&pairs[0]);
    for client in &mut clients {
        client.tell("release");
    }
    for client in &mut clients {
        assert_eq!(client.next(), Some(Said::Released));
    }
    footprint.wait_for_end().await;
    footprint.assert_gone();
}

async fn side_by_side(scene: Scene) {
    let (one, two) = tokio::join!(
        scene.start(Scene::private(&Script::default())),
        scene.start(Scene::private(&Script::default()))
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.description()["hub"], two.description()["hub"]);
    one.release(false).await.unwrap();
    two.ping().await.unwrap();
    assert_eq!(scene.entries().len(), 1);
    two.release(false).await.unwrap();
    assert!(scene.entries().is_empty());
}

async fn kept(scene: Scene) {
    let wanted = Wanted { kept: true, linger: Duration::ZERO, ..Scene::shared(&Script::default()) };
    let client = scene.start(wanted).await.unwrap();
    let footprint = scene.footprint().await;
    client.release(false).await.unwrap();
    let pairs = scene.status().await;
    assert_eq!((pairs[0].state, pairs[0].kept, pairs[0].holders.len()), (PairState::Running, true, 0));
    assert!(scene.down().await[0].is_gone());
    footprint.assert_gone();
}

async fn kept_later(scene: Scene) {
    let wanted = Wanted { linger: Duration::ZERO, ..Scene::private(&Script::default()) };
    let client = scene.start(wanted).await.unwrap();
    client.keep().await.unwrap();
    client.release(false).await.unwrap();
    let footprint = scene.footprint().await;
    assert!(footprint.processes.iter().all(harness::process::ProcessIdentity::is_alive));
    assert!(scene.down().await[0].is_gone());
    footprint.assert_gone();
}

async fn kept_by_another(scene: Scene) {
    let starter = scene.start(Scene::shared(&Script::default())).await.unwrap();
    let keeper = scene.start(Wanted { kept: true, ..Scene::shared(&Script::default()) }).await.unwrap();
    starter.release(false).await.unwrap();
    keeper.release(false).await.unwrap();
    assert!(scene.status().await[0].kept);
    assert!(scene.down().await[0].is_gone());
}

async fn not_from_under(scene: Scene) {
    let mine = scene.start(Scene::shared(&Script::default())).await.unwrap();
    let theirs = scene.start(Scene::shared(&Script::default())).await.unwrap();
    let refused = mine.down(false).await.unwrap_err();
    assert!(matches!(&refused, ClientError::Busy { holders } if holders.len() == 1), "{refused:?}");
    let mine = scene.start(Scene::shared(&Script::default())).await.unwrap();
    mine.down(true).await.unwrap();
    let death = theirs.died().await;
    assert_eq!((death.part.as_str(), death.status.as_str()), ("supervisor", "the pair was taken down"));
    assert!(scene.entries().is_empty());
}

async fn status(scene: Scene) {
    assert!(scene.status().await.is_empty());
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let pair = scene.status().await.remove(0);
    assert_eq!(pair.holders[0].purpose, "a test");
    assert_eq!(pair.holders[0].process.pid, i32::try_from(std::process::id()).unwrap());
    let parts: Vec<&str> = pair.processes.iter().map(|process| process.part.as_str()).collect();
    assert_eq!(parts, ["supervisor", "hub", "node"]);
    assert!(pair.processes.iter().all(|process| process.alive && process.memory_bytes > 0));
    assert_eq!(pair.memory_bytes, pair.processes.iter().map(|process| process.memory_bytes).sum::<u64>());
    assert!(pair.age.unwrap() < DEADLINE);
    client.release(false).await.unwrap();
}

async fn refused_request(scene: Scene) {
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let refused = client.request(json!({})).await.unwrap_err();
    let reason = std::error::Error::source(&refused).unwrap().to_string();
    assert_eq!(reason, "only echo is understood");
    client.release(false).await.unwrap();
}

async fn private_files(scene: Scene) {
    use std::os::unix::fs::PermissionsExt as _;
    let client = scene.start(Scene::private(&Script::default())).await.unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(scene.root.path()) & 0o777, 0o700);
    assert_eq!(mode(client.folder()) & 0o777, 0o700);
    for entry in std::fs::read_dir(client.folder()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    client.release(false).await.unwrap();
}
