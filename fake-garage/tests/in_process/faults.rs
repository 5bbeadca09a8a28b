//! Faults that last: what they do, how they end, and what the history tells.

use fake_garage::mesh::Pacing;
use rstest::rstest;
use serde_json::{Value, json};

use crate::world::*;

fn node_fault(action: &str) -> Value {
    json!({"action": action, "node": NODES[3]})
}

fn link_fault(action: &str) -> Value {
    match action {
        "slow" => {
            json!({"action": "slow", "mesh": "mesh", "from": ["west"], "to": ["east"], "latencyMs": 40})
        }
        _ => json!({"action": "partition", "mesh": "mesh", "between": [["west"], ["east"]], "kind": action}),
    }
}

/// What the table of nodes tells of the fault on the last one.
fn seen(world: &World) -> String {
    let state = world.state(3);
    format!("{} {} {}", state["process"].as_str().unwrap(), state["clockOffsetMs"], state["faults"])
}

const WELL: &str = "running 0 []";

#[rstest]
#[case::killed(node_fault("kill"), "ended 0 []")]
#[case::frozen(node_fault("freeze"), "frozen 0 []")]
#[case::held(node_fault("hold-trackers"), r#"running 0 ["holds ack sync syncAck"]"#)]
#[case::clock(json!({"action": "clock", "node": NODES[3], "offsetMs": -90_000}), "running -90000 []")]
#[case::silent(link_fault("silent"), r#"running 0 ["silent to east/ns/g-0 east/ns/g-1"]"#)]
#[case::reset(link_fault("reset"), r#"running 0 ["reset to east/ns/g-0 east/ns/g-1"]"#)]
#[case::slow(link_fault("slow"), r#"running 0 ["slow to east/ns/g-0 east/ns/g-1"]"#)]
#[tokio::test(start_paused = true)]
async fn a_fault_lasts_until_its_guard_is_dropped_or_its_time_is_over(
    #[case] fault: Value,
    #[case] seen_as: &str,
) {
    let world = World::with_layout().await;
    let guard = world.fault(fault.clone()).await;
    assert_eq!(seen(&world), seen_as);
    drop(guard);
    pass(1).await;
    assert_eq!(seen(&world), WELL, "dropping the guard heals");
    let mut expiring = fault.clone();
    expiring["expiresMs"] = 500.into();
    let guard = world.fault(expiring).await;
    pass(499).await;
    assert_eq!(seen(&world), seen_as);
    pass(2).await;
    assert_eq!(seen(&world), WELL, "its time is over");
    drop(guard);
    let history = world.finish().await;
    let action = fault["action"].as_str().unwrap();
    let told: Vec<_> =
        faults(&history).into_iter().map(|fault| (fault.action, fault.detail.unwrap())).collect();
    let (actions, details): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    assert_eq!(actions, [action, "heal", action, "heal"]);
    assert_eq!(details[1], json!({"fault": 1, "healed": action, "why": "dropped"}));
    assert_eq!(details[3], json!({"fault": 2, "healed": action, "why": "expired"}));
    assert_eq!((&details[2]["fault"], &details[2]["expiresMs"]), (&json!(2), &json!(500)));
}

#[tokio::test(start_paused = true)]
async fn a_node_stays_frozen_until_no_fault_freezes_it() {
    let world = World::with_layout().await;
    let one = world.fault(node_fault("freeze")).await;
    let other = world.fault(node_fault("freeze")).await;
    drop(one);
    assert_eq!(seen(&world), "frozen 0 []");
    drop(other);
    assert_eq!(seen(&world), WELL);
}

#[tokio::test(start_paused = true)]
async fn trackers_are_held_as_far_as_any_fault_holds_them() {
    let world = World::with_layout().await;
    let hold = |trackers: Value| json!({"action": "hold-trackers", "node": NODES[3], "trackers": trackers});
    let one = world.fault(hold(json!(["ack", "sync"]))).await;
    let other = world.fault(hold(json!(["sync"]))).await;
    drop(one);
    assert_eq!(seen(&world), r#"running 0 ["holds sync"]"#);
    drop(other);
    assert_eq!(seen(&world), WELL);
}

#[tokio::test(start_paused = true)]
async fn a_clock_shows_what_the_latest_fault_says() {
    let world = World::with_layout().await;
    let clock = |offset: i64| json!({"action": "clock", "node": NODES[3], "offsetMs": offset});
    let one = world.fault(clock(1_000)).await;
    let other = world.fault(clock(2_000)).await;
    drop(one);
    assert_eq!(seen(&world), "running 2000 []");
    drop(other);
    assert_eq!(seen(&world), WELL);
}

#[tokio::test(start_paused = true)]
async fn resuming_and_healing_end_the_faults_they_are_about() {
    let world = World::with_layout().await;
    let frozen = world.fault(node_fault("freeze")).await;
    let cut = world.fault(link_fault("silent")).await;
    let slow = world.fault(link_fault("slow")).await;
    let clock = world.fault(json!({"action": "clock", "node": NODES[3], "offsetMs": 5})).await;
    world.fault(node_fault("resume")).await.keep();
    world.fault(json!({"action": "heal", "mesh": "mesh"})).await.keep();
    assert_eq!(seen(&world), "running 5 []", "a clock is not a link");
    for healed in [frozen, cut, slow] {
        let error = healed.heal().await.unwrap_err();
        assert!(error.to_string().contains("may have been healed"), "{error}");
    }
    drop(clock);
}

#[tokio::test(start_paused = true)]
async fn a_kill_is_over_when_its_node_was_started_meanwhile() {
    let world = World::with_layout().await;
    let killed = world.fault(node_fault("kill")).await;
    world.fault(node_fault("restart")).await.keep();
    let before = world.state(3);
    let error = killed.heal().await.unwrap_err();
    assert!(error.to_string().contains("may have been healed"), "{error}");
    assert_eq!(world.state(3), before);
}

#[rstest]
#[case::nothing("nothing", 1, 0)]
#[case::layout("layout-file", 0, 1)]
#[case::everything("all-metadata", 0, 1)]
#[tokio::test(start_paused = true)]
async fn a_killed_node_comes_back_with_the_files_that_are_left(
    #[case] lose: &str,
    #[case] version: u64,
    #[case] incarnation: u64,
) {
    let world = World::with_layout().await;
    let id = world.state(3)["nodeId"].clone();
    let mut kill = node_fault("kill");
    kill["lose"] = lose.into();
    world.fault(kill).await.heal().await.unwrap();
    let state = world.state(3);
    assert_eq!((&state["layoutVersion"], &state["incarnation"]), (&json!(version), &json!(incarnation)));
    assert_eq!(state["nodeId"] == id, lose != "all-metadata");
}

#[tokio::test(start_paused = true)]
async fn capture_18_a_call_that_waits_for_a_frozen_node_fails_once_its_connection_is_given_up() {
    let world = World::of(Addresses::new(), Pacing::observed(), 1).await;
    let frozen = world.fault(node_fault("freeze")).await;
    let began = tokio::time::Instant::now();
    let answer = world.get(0, "/v2/GetNodeStatistics?node=*").await;
    let took = began.elapsed().as_millis();
    assert!((60_000..90_000).contains(&took), "{took} ms");
    assert_eq!(answer["success"].as_object().unwrap().len(), 3);
    assert_eq!(answer["error"].as_object().unwrap().len(), 1);
    drop(frozen);
}

#[tokio::test(start_paused = true)]
async fn section_10_a_call_on_another_node_fails_after_the_rpc_timeout() {
    assert_eq!(Pacing::observed().rpc_timeout.as_secs(), 300);
    // Shorter than it takes to notice that the node is frozen.
    let pacing = Pacing { rpc_timeout: std::time::Duration::from_secs(5), ..Pacing::observed() };
    let world = World::of(Addresses::new(), pacing, 1).await;
    let frozen = world.fault(node_fault("freeze")).await;
    let began = tokio::time::Instant::now();
    let answer = world.get(0, "/v2/GetNodeStatistics?node=*").await;
    assert_eq!(began.elapsed().as_millis(), 5_000);
    let id = world.state(3)["nodeId"].as_str().unwrap().to_owned();
    assert_eq!(answer["error"], json!({id: "Timeout"}));
    let (status, _) = world.call(0, "POST", "/v2/CreateBucket", json!({})).await;
    assert_eq!(status, 200, "three of four are enough");
    drop(frozen);
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_a_slow_link_takes_its_round_trip() {
    let world = World::with_layout().await;
    let mut slow = link_fault("slow");
    slow["latencyMs"] = 250.into();
    let slow = world.fault(slow).await;
    let began = tokio::time::Instant::now();
    world.get(0, "/v2/GetNodeStatistics?node=*").await;
    assert_eq!(began.elapsed().as_millis(), 250, "the way back is slow");
    drop(slow);
}

#[tokio::test(start_paused = true)]
async fn rules_are_told_as_they_come_act_and_go() {
    let world = World::with_layout().await;
    let rule = |effect: Value, expires: Value| {
        let path = json!({"path": "/v2/GetClusterStatus"});
        world.hub().rule(read(json!({"match": path, "count": 0, "effect": effect, "expiresMs": expires})))
    };
    let expiring = rule(json!({"kind": "answer", "status": 503}), json!(100));
    assert_eq!(world.call(0, "GET", "/v2/GetClusterStatus", Value::Null).await.0, 503);
    pass(101).await;
    assert_eq!(world.call(0, "GET", "/v2/GetClusterStatus", Value::Null).await.0, 200);
    let held = rule(json!({"kind": "hold"}), Value::Null);
    held.release();
    drop((expiring, held));
    let history = world.finish().await;
    let told: Vec<_> = faults(&history)
        .into_iter()
        .map(|fault| {
            let detail = fault.detail.unwrap();
            (fault.action, detail["rule"].as_u64().unwrap(), detail["why"].as_str().unwrap_or("-").to_owned())
        })
        .collect();
    let expected = [
        ("rule", 1, "-"),
        ("call", 1, "-"),
        ("rule-removed", 1, "expired"),
        ("rule", 2, "-"),
        ("rule-released", 2, "-"),
        ("rule-removed", 2, "dropped"),
    ];
    let expected: Vec<_> =
        expected.into_iter().map(|(action, rule, why)| (action.to_owned(), rule, why.to_owned())).collect();
    assert_eq!(told, expected);
}

#[rstest]
#[case::no_node(json!({"action": "freeze", "node": "east/ns/g-9"}), "no node `east/ns/g-9` is known")]
#[case::no_mesh(json!({"action": "heal", "mesh": "other"}), "no mesh `other` is registered")]
#[case::an_empty_side(json!({"action": "partition", "mesh": "mesh", "between": [["east"], ["north"]], "kind": "reset"}), "[\"north\"] has no node in mesh `mesh`")]
#[case::nothing_slow(json!({"action": "slow", "mesh": "mesh", "from": ["east"], "to": ["west"]}), "nothing is slow")]
#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_is_told_and_leaves_no_trace(#[case] fault: Value, #[case] message: &str) {
    let world = World::with_layout().await;
    let error = world.hub().fault(read(fault)).await.unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
    assert!(faults(&world.finish().await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_when_the_process_has_just_ended_is_read_by_nobody_and_not_recorded() {
    let world = World::with_layout().await;
    let _killed = world.fault(node_fault("kill")).await;
    let (status, _) = world.call(3, "GET", "/v2/GetClusterHealth", Value::Null).await;
    assert_eq!(status, 0, "there is no answer");
    let history = world.finish().await;
    let health = |record: &onewriter_history::Record| matches!(&record.event, onewriter_history::Event::CallBegin(begin) if begin.path.contains("GetClusterHealth"));
    assert!(!records(&history).iter().any(health), "and no call");
}
