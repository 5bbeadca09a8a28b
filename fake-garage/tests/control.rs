//! What the control API says of requests that it cannot do, and of what is over.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "shared with other tests")]
mod support;

use onewriter_history::{Event, History};
use rstest::rstest;
use serde_json::{Value, json};
use support::{CONTROL, SECRET, TestHub, events, eventually};

fn node(secret: &str) -> Value {
    json!({"rpcSecret": secret, "replicationFactor": 2, "hostname": "garage-0"})
}

#[rstest]
#[case::no_secret(
    "PUT",
    "/nodes/east/ns/garage-0",
    node("abc"),
    400,
    "rpcSecret: Invalid RPC secret key: expected 32 bytes of random hex"
)]
#[case::slash(
    "PUT",
    "/nodes/east/a%2Fb/garage-0",
    node(SECRET),
    400,
    "the node \"east/a/b/garage-0\" is not SITE/NAMESPACE/POD"
)]
#[case::empty_part("PUT", "/nodes/east//garage-0", node(SECRET), 400, "the namespace \"\" is empty")]
#[case::control_character(
    "PUT",
    "/nodes/east/ns/a%0Ab",
    node(SECRET),
    400,
    "the pod \"a\\nb\" may have letters"
)]
#[case::mesh_name("PUT", "/meshes/a%2Fb", json!({"rpcSecretSha256": "00".repeat(32)}), 400, "the mesh \"a/b\" may have letters")]
#[case::site_name("PUT", "/routes/%20", json!({"names": {}}), 400, "the site \" \" may have letters")]
#[case::no_number("DELETE", "/faults/one", Value::Null, 400, "Invalid URL: Cannot parse `one`")]
#[case::no_rule_number("DELETE", "/rules/-1", Value::Null, 400, "Invalid URL: Cannot parse `-1`")]
#[case::method("DELETE", "/state", Value::Null, 405, "this path takes other methods, see the header Allow")]
#[case::no_text("PUT", "/meshes/%ff", Value::Null, 400, "Invalid URL: Invalid UTF-8 in `mesh`")]
#[tokio::test]
async fn a_request_that_cannot_be_done_gets_an_error_in_json(
    #[case] method: &str,
    #[case] path: &str,
    #[case] body: Value,
    #[case] status: u16,
    #[case] message: &str,
) {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    let (answered, error) = hub.control(method, path, body).await;
    let said = error["error"].as_str().unwrap_or_default();
    assert!(answered == status && said.starts_with(message), "{answered} {error}");
    hub.finish().await;
}

#[tokio::test]
async fn a_body_without_bounds_is_refused_in_json() {
    let hub = TestHub::start().await;
    let (status, error) = hub.control("PUT", "/meshes/mesh", json!("x".repeat(3 << 20))).await;
    assert_eq!(
        (status, error["error"].as_str()),
        (413, Some("the body is longer than the 2097152 bytes that are taken"))
    );
    hub.finish().await;
}

#[tokio::test]
async fn a_start_that_never_was_cannot_be_followed() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    hub.node("east", "garage-0", SECRET).await;
    for boot in [0, 2, 99] {
        let path = format!("/nodes/east/ns/garage-0/process?boot={boot}");
        let (status, error) = hub.control("GET", &path, Value::Null).await;
        let expected = format!("node `east/ns/garage-0` has no start number {boot}: it was started 1 times");
        assert!(status == 404 && error["error"].as_str().unwrap().starts_with(&expected), "{error}");
    }
    hub.finish().await;
}

#[tokio::test]
async fn a_kill_is_over_when_its_node_is_started_by_other_means() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    hub.node("east", "garage-0", SECRET).await;
    let kill = json!({"action": "kill", "node": "east/ns/garage-0"});
    for restart in [false, true] {
        assert_eq!(hub.control("POST", "/faults", kill.clone()).await.0, 200);
        assert_eq!(hub.control("GET", "/faults", Value::Null).await.1.as_array().unwrap().len(), 1);
        if restart {
            let restart = json!({"action": "restart", "node": "east/ns/garage-0"});
            assert_eq!(hub.control("POST", "/faults", restart).await.0, 200);
        } else {
            hub.node("east", "garage-0", SECRET).await;
        }
        assert_eq!(hub.control("GET", "/faults", Value::Null).await.1, json!([]));
    }
    let history = hub.finish().await;
    let healed = events(&history, |event| match event {
        Event::Fault(fault) if fault.action == "heal" => Some(fault.detail.clone().unwrap()["why"].clone()),
        _ => None,
    });
    assert_eq!(healed, ["started", "started"]);
}

#[tokio::test]
async fn an_error_answer_repeats_the_region_of_the_node() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    let spec = json!({"rpcSecret": SECRET, "replicationFactor": 1, "hostname": "garage-0", "region": "mars"});
    assert_eq!(hub.control("PUT", "/nodes/east/ns/garage-0", spec).await.0, 200);
    let node = hub.node("east", "garage-0", SECRET).await;
    let (status, error) = hub.admin(&node, "east", "GET", "/v2/GetKeyInfo", None).await;
    assert!(status == 500 && error["region"] == "mars", "{status} {error}");
    hub.finish().await;
}

#[tokio::test]
async fn a_rule_that_holds_nothing_has_nothing_to_release() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    let (_, rule) = hub.control("POST", "/rules", json!({"match": {}, "effect": {"kind": "drop"}})).await;
    let path = format!("/rules/{}/release", rule["id"]);
    let (status, error) = hub.control("POST", &path, Value::Null).await;
    assert!(status == 422 && error.to_string().contains("holds no calls"), "{status} {error}");
    hub.finish().await;
}

#[tokio::test]
async fn a_node_cannot_be_cut_off_from_itself() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    hub.control("PUT", "/nodes/east/ns/garage-0", node(SECRET)).await;
    let itself =
        json!({"action": "partition", "mesh": "mesh", "between": [["east"], ["east"]], "kind": "silent"});
    let (status, error) = hub.control("POST", "/faults", itself).await;
    assert!(status == 422 && error.to_string().contains("the same node"), "{status} {error}");
    hub.finish().await;
}

#[tokio::test]
async fn a_rule_that_has_acted_as_often_as_it_may_is_listed_as_used_up() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    let node = hub.node("east", "garage-0", SECRET).await;
    let rule = json!({"match": {}, "effect": {"kind": "answer", "status": 503, "body": {}}});
    assert_eq!(hub.control("POST", "/rules", rule).await.0, 200);
    let used_up = async || hub.control("GET", "/rules", Value::Null).await.1[0]["usedUp"].clone();
    assert_eq!(used_up().await, false);
    assert_eq!(hub.admin(&node, "east", "GET", "/v2/GetClusterStatus", None).await.0, 503);
    assert_eq!(used_up().await, true);
    assert_eq!(hub.admin(&node, "east", "GET", "/v2/GetClusterStatus", None).await.0, 200);
    hub.finish().await;
}

#[tokio::test]
async fn a_hub_that_ends_says_how_many_events_there_were() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    hub.node("east", "garage-0", SECRET).await;
    let history = hub.finish().await;
    let before = u64::try_from(history.records.len() - 1).unwrap();
    assert_eq!(history.records.last().unwrap().event, Event::end(before));
}

#[tokio::test]
async fn new_lines_of_the_history_are_asked_for_by_their_number() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    hub.node("east", "garage-0", SECRET).await;
    let lines = async |from: usize| {
        let url = format!("{}/history?from={from}", hub.control);
        let text = hub.http.get(url).bearer_auth(CONTROL).send().await.unwrap().text().await.unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let first = lines(0).await;
    let next = first.len();
    assert_eq!(lines(next).await, Vec::<String>::new(), "nothing has happened since");
    hub.node("west", "garage-0", SECRET).await;
    let more = eventually(|| lines(next), |more: &Vec<String>| !more.is_empty()).await;
    let whole = first.into_iter().chain(more).map(|line| line + "\n").collect::<String>();
    assert_eq!(History::parse(&whole).unwrap().records.len(), whole.lines().count() - 1);
    hub.finish().await;
}

#[tokio::test]
async fn the_state_tells_how_far_a_mesh_is_behind() {
    let hub = TestHub::start().await;
    hub.mesh("mesh", SECRET).await;
    let (_, state) = hub.control("GET", "/state", Value::Null).await;
    assert_eq!(state["meshes"]["mesh"]["behindMs"], 0);
    hub.finish().await;
}
