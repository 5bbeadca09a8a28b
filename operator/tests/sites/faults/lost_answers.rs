//! Writes whose answer is lost, refused, or overtaken: nothing is written twice.

use harness::site::Site::East;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stage::calls::{Call, staged_ids};
use crate::stage::cases::{FIRST, SECOND, THIRD};
use crate::stage::trial::trial;
use crate::stage::{Role, Scene};

/// A fault of one write of the first layout, and how often what it carried is written in the end.
struct Case {
    name: &'static str,
    path: &'static str,
    effect: Value,
    times: usize,
}

const UPDATE: &str = "UpdateClusterLayout";
const APPLY: &str = "ApplyClusterLayout";

fn cases() -> Vec<Case> {
    let wrong = json!({"code": "InternalError", "message": "Internal error: Invalid new layout version: this is not the next one"});
    let answer = |body: &Value, perform: bool| json!({"kind": "answer", "status": 500, "body": body, "perform": perform});
    let broken = json!({"code": "InternalError", "message": "broken"});
    let case = |name, path, effect, times| Case { name, path, effect, times };
    vec![
        case("update-never-arrived", UPDATE, json!({"kind": "drop"}), 2),
        case("update-answered-into-the-void", UPDATE, json!({"kind": "drop", "perform": true}), 1),
        case("update-performed-and-500", UPDATE, answer(&broken, true), 1),
        case("apply-never-arrived", APPLY, json!({"kind": "drop"}), 2),
        case("apply-answered-into-the-void", APPLY, json!({"kind": "drop", "perform": true}), 1),
        case("apply-performed-and-500", APPLY, answer(&broken, true), 1),
        case("apply-of-a-wrong-version", APPLY, answer(&wrong, false), 2),
    ]
}

pub fn trials() -> Vec<Trial> {
    let case =
        |case: Case| trial(format!("faults/lost-answers/{}", case.name), move |scene| one(scene, case));
    let mut trials: Vec<Trial> = cases().into_iter().map(case).collect();
    trials.push(trial("faults/lost-answers/apply-that-lost-the-race", lost_race));
    trials
}

async fn one(scene: Scene, case: Case) {
    let operator = scene.operator(East, &[]).await;
    let rule = scene.rule(case.path, 1, case.effect).await;
    scene.create_cluster(East, scene.cluster(East, Role::Writer)).await;

    scene.until_running(East, &[FIRST, SECOND]).await;

    scene.after_two_more_looks(East, &operator).await;
    let (updates, applies): (Vec<Call>, Vec<Call>) =
        scene.writes(East).into_iter().partition(|call| call.path == UPDATE);
    let (of_updates, of_applies) = if case.path == UPDATE { (case.times, 1) } else { (1, case.times) };
    assert_eq!(applies.len(), of_applies, "{applies:#?}");
    // Which roles the first of them carries depends on when the pods start.
    let faulty = staged_ids(&updates[0]);
    for id in [scene.node_id(East, FIRST).await, scene.node_id(East, SECOND).await] {
        let times = updates.iter().flat_map(staged_ids).filter(|staged| *staged == id).count();
        let wanted = if faulty.contains(&id) { of_updates } else { 1 };
        assert_eq!(times, wanted, "{id} in {updates:#?}");
    }
    assert_eq!(rule.acted().await, 1);
    let layout = scene.layout(East, FIRST).await;
    assert_eq!((&layout["version"], &layout["stagedRoleChanges"]), (&json!(1), &json!([])));
    rule.remove().await;
}

/// An apply is answered 200, and another version of that number is what counts: the role is missing, and is staged
/// and applied again, under the next number.
async fn lost_race(scene: Scene) {
    let operator = scene.with_layout(East, Role::Writer, &[]).await;
    let rule = scene.rule(APPLY, 1, json!({"kind": "lose-race"})).await;

    scene.scale(East, 3).await;

    scene.until_running(East, &[FIRST, SECOND, THIRD]).await;
    scene.after_two_more_looks(East, &operator).await;
    assert_eq!(rule.acted().await, 1);
    assert_eq!(scene.layout(East, FIRST).await["version"], 3);
    rule.remove().await;
}
