//! The operator is killed after each of its writes in turn, and another one takes over: the end is always the same.
//!
//! The writes are those to the Kubernetes API and the POSTs to Garage together (`--crash-after-write N`, a build with
//! the feature `crash-after-write`). A sweep ends with the first N that is never reached; every point before it is a
//! crash point. Points of one sweep run side by side, each in a scene of its own.
//!
//! | module | what it holds |
//! |---|---|
//! | [`procedures`] | what is under way when the operator dies |
//! | [`end_state`] | what is compared in the end |

mod end_state;
mod procedures;

use std::collections::BTreeMap;

use futures::future::join_all;
use harness::site::Site::East;
use libtest_mimic::Trial;

use self::end_state::EndState;
use self::procedures::Procedure;
use crate::stage::trial::trial;
use crate::stage::{LIMIT, Scene};

/// How many points are tried at the same time.
const AT_ONCE: u64 = 4;

/// No procedure takes more writes than this.
const MOST: u64 = 200;

pub fn trials() -> Vec<Trial> {
    let sweep_of = |procedure: Procedure| {
        trial(format!("crash/{}", procedure.name), move |scene| sweep(scene, procedure))
    };
    procedures::all().into_iter().map(sweep_of).collect()
}

/// What became of a point.
enum Point {
    /// The operator died, after this write.
    Crashed(String),
    /// The procedure ended before there were so many writes.
    NeverReached,
}

async fn sweep(scene: Scene, procedure: Procedure) {
    let wanted = reference(&scene, procedure).await;
    let mut crashes = BTreeMap::new();
    for first in (1..MOST).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let points = (first..first + AT_ONCE).map(|number| one(&scene, procedure, number, &wanted));
        let mut ended = false;
        for (number, point) in (first..).zip(join_all(points).await) {
            match point {
                Point::Crashed(write) => drop(crashes.insert(number, write)),
                Point::NeverReached => ended = true,
            }
        }
        if ended {
            break;
        }
    }
    println!("{}: {} crash points", procedure.name, crashes.len());
    for (number, write) in &crashes {
        println!("  {number:3} {write}");
    }
    assert!(crashes.len() >= procedure.fewest, "{crashes:?}");
    assert!(u64::try_from(crashes.len()).unwrap() < MOST - AT_ONCE, "the procedure never ends");
}

/// The end state without any crash.
async fn reference(scene: &Scene, procedure: Procedure) -> EndState {
    let scene = scene.another().await;
    let begin = procedure.prepare(&scene).await;
    let operator = scene.operator(East, &[]).await;
    procedure.complete(&scene).await;
    scene.after_two_more_looks(East, &operator).await;
    let state = EndState::of(&scene, begin).await;
    procedure.check(&scene);
    scene.strike().await;
    state
}

/// Dies after write `number`, starts again, and compares the end.
async fn one(scene: &Scene, procedure: Procedure, number: u64, wanted: &EndState) -> Point {
    let scene = scene.another().await;
    let begin = procedure.prepare(&scene).await;
    let doomed = scene.doomed_operator(East, &[&format!("--crash-after-write={number}")]).await;
    let point = tokio::select! {
        status = doomed.child.exited() => {
            let log = doomed.child.log_tail(1);
            assert_eq!(status.code(), Some(137), "write {number}: {status}: {log}");
            Point::Crashed(log.split("died after write ").last().unwrap_or_default().trim().to_owned())
        }
        () = procedure.complete(&scene) => Point::NeverReached,
    };
    if matches!(point, Point::NeverReached) {
        return close(&scene, point).await;
    }
    scene.operator(East, &[]).await;
    procedure.complete(&scene).await;
    let differs = async {
        let mut last = String::new();
        let same = async {
            loop {
                match EndState::of(&scene, begin).await.difference(wanted) {
                    None => return,
                    Some(difference) => last = difference,
                }
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        };
        let waited = tokio::time::timeout(LIMIT, same).await;
        waited.is_err().then_some(last)
    };
    if let Some(difference) = differs.await {
        let Point::Crashed(write) = &point else { unreachable!("it crashed") };
        panic!(
            "after a crash at write {number} ({write}) the end differs:\n{difference}\n{}",
            scene.epitaph().await
        );
    }
    procedure.check(&scene);
    close(&scene, point).await
}

async fn close(scene: &Scene, point: Point) -> Point {
    scene.strike().await;
    point
}
