//! The whole way: a hub on loopback, a mesh over two sites, a first layout, and what the history says about it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use onewriter_history::{CallBegin, CallEnd, Event, State};
use serde_json::{Value, json};
use support::{SECRET, TestHub, TestNode, events, eventually};

async fn four_nodes(hub: &TestHub) -> Vec<TestNode> {
    assert_eq!(hub.mesh("mesh", SECRET).await.0, 200);
    let mut nodes = Vec::new();
    for (site, pod) in
        [("east", "garage-0"), ("east", "garage-1"), ("west", "garage-0"), ("west", "garage-1")]
    {
        nodes.push(hub.node(site, pod, SECRET).await);
    }
    nodes
}

fn roles(nodes: &[TestNode]) -> Value {
    let role = |node: &TestNode| json!({"id": node.id, "zone": node.site, "capacity": 10_000_000_000_u64, "tags": []});
    json!({"roles": nodes.iter().map(role).collect::<Vec<_>>()})
}

async fn bootstrap(hub: &TestHub, nodes: &[TestNode]) {
    let entries: Vec<_> = nodes[1..].iter().map(TestNode::entry).collect();
    let (status, connected) =
        hub.admin(&nodes[0], "east", "POST", "/v2/ConnectClusterNodes", Some(json!(entries))).await;
    assert_eq!((status, connected), (200, json!(vec![json!({"success": true, "error": null}); 3])));
    let (status, _) =
        hub.admin(&nodes[0], "east", "POST", "/v2/UpdateClusterLayout", Some(roles(nodes))).await;
    assert_eq!(status, 200);
    let (status, applied) =
        hub.admin(&nodes[0], "east", "POST", "/v2/ApplyClusterLayout", Some(json!({"version": 1}))).await;
    assert_eq!(status, 200, "{applied}");
}

#[tokio::test]
async fn a_layout_applied_on_one_node_is_read_on_every_node() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    bootstrap(&hub, &nodes).await;
    for node in &nodes {
        let caller = node.site.clone();
        let layout = eventually(
            || async { hub.admin(node, &caller, "GET", "/v2/GetClusterLayout", None).await.1 },
            |layout| layout["version"] == 1,
        )
        .await;
        assert_eq!(layout["roles"].as_array().unwrap().len(), 4);
        let stored: u64 = layout["roles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|role| role["storedPartitions"].as_u64().unwrap())
            .sum();
        assert_eq!(stored, 512);
        eventually(
            || async { hub.admin(node, &caller, "GET", "/v2/GetClusterHealth", None).await.1 },
            |health| health["status"] == "healthy" && health["connectedNodes"] == 4,
        )
        .await;
    }
    let history = hub.finish().await;
    let begins: Vec<&CallBegin> = events(&history, |event| match event {
        Event::CallBegin(begin) => Some(begin),
        _ => None,
    });
    let ends: Vec<&CallEnd> = events(&history, |event| match event {
        Event::CallEnd(end) => Some(end),
        _ => None,
    });
    assert_eq!(begins.len(), ends.len(), "every call that began has ended");
    let writes: Vec<_> = begins.iter().filter(|begin| begin.layout_write).collect();
    assert_eq!(writes.len(), 2);
    assert!(writes.iter().all(|begin| begin.caller.as_deref() == Some("east")));
    assert!(writes.iter().all(|begin| begin.token.as_deref() == Some("east@east")));
    assert!(writes.iter().all(|begin| begin.node == "east/ns/garage-0" && begin.mesh == "mesh"));
    let apply = writes.iter().find(|begin| begin.path == "/v2/ApplyClusterLayout").unwrap();
    let end = ends.iter().find(|end| end.call == apply.call).unwrap();
    assert_eq!((apply.layout_version, end.layout_version, end.status), (0, 1, Some(200)));
    assert_ne!(apply.layout_digest, end.layout_digest);
    let layout_events: Vec<_> = events(&history, |event| match event {
        Event::State(State { subject, value, .. }) if subject == "layout" => Some(value),
        _ => None,
    });
    let of = |name: &str| layout_events.iter().filter(|value| value["event"] == name).count();
    // Version 0 counts for nothing: for the others the first layout replaces everything they have.
    assert_eq!((of("applied"), of("replaced"), of("conflict")), (1, 3, 0));
}

#[tokio::test]
async fn who_calls_is_told_by_the_token_and_who_may_by_the_target() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    let (own, _) = hub.admin(&nodes[2], "west", "GET", "/v2/GetClusterStatus", None).await;
    let (remote, _) = hub.admin(&nodes[2], "east", "GET", "/v2/GetClusterStatus", None).await;
    let (stranger, error) = hub.admin(&nodes[2], "nobody", "GET", "/v2/GetClusterStatus", None).await;
    assert_eq!((own, remote, stranger), (200, 200, 403));
    assert_eq!(error["message"], "Forbidden: Invalid bearer token");
    let (unknown, error) = hub.admin(&nodes[2], "west", "POST", "/v2/NoSuch", None).await;
    assert_eq!((unknown, error["code"].as_str()), (400, Some("InvalidRequest")));
    let history = hub.finish().await;
    let calls = events(&history, |event| match event {
        Event::CallBegin(begin) => {
            Some((begin.caller.as_deref(), begin.target.as_str(), begin.path.as_str()))
        }
        _ => None,
    });
    assert_eq!(
        calls,
        [
            (Some("west"), "west", "/v2/GetClusterStatus"),
            (Some("east"), "west", "/v2/GetClusterStatus"),
            (None, "west", "/v2/GetClusterStatus"),
            (Some("west"), "west", "/v2/NoSuch"),
        ]
    );
    let text = serde_json::to_string(&history.records).unwrap();
    assert!(!text.contains("mesh-west-west") && !text.contains(SECRET), "no secret is recorded");
}

#[tokio::test]
async fn a_service_name_leads_through_the_proxy_to_a_ready_node() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    let names = json!({"names": {"garage.ns.svc.cluster.local": [nodes[0].address], "empty.ns.svc.cluster.local": []}});
    assert_eq!(hub.control("PUT", "/routes/east", names).await.0, 200);
    let proxy = reqwest::Proxy::http(format!("http://{}", hub.proxy)).unwrap();
    let client = reqwest::Client::builder().proxy(proxy).build().unwrap();
    let ask = async |host: &str| {
        let url = format!("http://{host}:3903/v2/GetClusterHealth");
        let response = client.get(url).bearer_auth("mesh-east-east").send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(ask("garage.ns.svc.cluster.local").await.0, 200);
    assert_eq!(ask("empty.ns.svc.cluster.local").await.0, 503);
    let (status, text) = ask("nowhere.ns.svc.cluster.local").await;
    assert_eq!((status, text.as_str()), (502, "no such service nowhere.ns.svc.cluster.local at east"));
    let history = hub.finish().await;
    let hosts = events(&history, |event| match event {
        Event::CallBegin(begin) => begin.host.clone(),
        _ => None,
    });
    assert_eq!(hosts, ["garage.ns.svc.cluster.local:3903"]);
}

#[tokio::test]
async fn a_deleted_node_closes_its_connections_and_comes_back_as_it_was() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    bootstrap(&hub, &nodes).await;
    assert_eq!(hub.control("DELETE", "/nodes/east/ns/garage-0", Value::Null).await.0, 200);
    let url = format!("http://{}:3903/health", nodes[0].address);
    assert!(hub.http.get(&url).send().await.unwrap_err().is_connect());
    let again = hub.node("east", "garage-0", SECRET).await;
    assert_eq!((&again.id, &again.address), (&nodes[0].id, &nodes[0].address));
    let (_, layout) = hub.admin(&again, "east", "GET", "/v2/GetClusterLayout", None).await;
    assert_eq!(layout["version"], 1);
    hub.finish().await;
}

#[tokio::test]
async fn a_node_that_loses_its_layout_begins_a_new_incarnation() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    bootstrap(&hub, &nodes).await;
    assert_eq!(hub.control("DELETE", "/nodes/east/ns/garage-0?lose=layout-file", Value::Null).await.0, 200);
    let path = "/meshes/mesh/nodes/east/ns/garage-0/layout";
    let (status, state) = hub.control("GET", path, Value::Null).await;
    assert_eq!((status, &state["incarnation"], &state["layout"]["version"]), (200, &json!(1), &json!(0)));
    hub.finish().await;
}

#[tokio::test]
async fn nodes_of_two_meshes_refuse_each_other() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    let other_secret = "f".repeat(64);
    assert_eq!(hub.mesh("other", &other_secret).await.0, 200);
    let stranger = hub.node("east", "stranger", &other_secret).await;
    let (_, answer) = hub
        .admin(&nodes[0], "east", "POST", "/v2/ConnectClusterNodes", Some(json!([stranger.entry()])))
        .await;
    assert_eq!(answer[0]["success"], false);
    assert!(answer[0]["error"].as_str().unwrap().ends_with("Handshake error: i/o: unexpected end of file"));
    hub.finish().await;
}

#[tokio::test]
async fn the_control_api_says_what_is_wrong() {
    let hub = TestHub::start().await;
    let state = format!("{}/state", hub.control);
    assert_eq!(hub.http.get(&state).send().await.unwrap().status(), 401);
    assert_eq!(hub.mesh("mesh", SECRET).await.0, 200);
    assert_eq!(hub.mesh("mesh", SECRET).await.0, 200, "registering again is fine");
    let (status, error) = hub.mesh("second", SECRET).await;
    assert_eq!((status, error["error"].as_str()), (409, Some("mesh `mesh` has that rpc secret already")));
    let body = json!({"rpcSecret": "ab".repeat(32), "replicationFactor": 2, "hostname": "x"});
    let (status, error) = hub.control("PUT", "/nodes/east/ns/x", body).await;
    assert_eq!(status, 422, "{error}");
    let (status, _) = hub.control("PUT", "/nodes/east/ns/x", json!({"hostname": 1})).await;
    assert_eq!(status, 400);
    assert_eq!(hub.control("DELETE", "/nodes/east/ns/none", Value::Null).await.0, 404);
    assert_eq!(hub.control("GET", "/nothing", Value::Null).await.0, 404);
    hub.finish().await;
}

async fn rule(hub: &TestHub, rule: Value) -> u64 {
    let (status, answer) = hub.control("POST", "/rules", rule).await;
    assert_eq!(status, 200, "{answer}");
    answer["id"].as_u64().unwrap()
}

#[tokio::test]
async fn a_lost_answer_leaves_the_effect() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    bootstrap(&hub, &nodes).await;
    let body = json!({"code": "InternalError", "message": "Internal error: made up"});
    let pattern = json!({"path": "/v2/ApplyClusterLayout", "caller": "east"});
    let effect = json!({"kind": "answer", "status": 500, "body": body, "perform": true});
    rule(&hub, json!({"match": pattern, "effect": effect})).await;
    let apply = async |version: u64| {
        hub.admin(&nodes[0], "east", "POST", "/v2/ApplyClusterLayout", Some(json!({"version": version})))
            .await
    };
    assert_eq!(apply(2).await.0, 500);
    assert_eq!(hub.admin(&nodes[0], "east", "GET", "/v2/GetClusterLayout", None).await.1["version"], 2);
    assert_eq!(apply(3).await.0, 200, "it acts once");
    let history = hub.finish().await;
    let faults = events(&history, |event| match event {
        Event::Fault(fault) => Some(fault.action.clone()),
        _ => None,
    });
    assert_eq!(faults, ["rule", "call"]);
}

#[tokio::test]
async fn a_lost_race_is_answered_200_and_its_change_is_nowhere() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    bootstrap(&hub, &nodes).await;
    rule(&hub, json!({"match": {"path": "/v2/ApplyClusterLayout"}, "effect": {"kind": "lose-race"}})).await;
    let change =
        json!({"roles": [{"id": nodes[0].id, "zone": "east", "capacity": 5_000_000_000_u64, "tags": []}]});
    hub.admin(&nodes[0], "east", "POST", "/v2/UpdateClusterLayout", Some(change)).await;
    let (status, applied) =
        hub.admin(&nodes[0], "east", "POST", "/v2/ApplyClusterLayout", Some(json!({"version": 2}))).await;
    let capacity = |layout: &Value| {
        let roles = layout["roles"].as_array().unwrap();
        roles.iter().find(|role| role["id"] == nodes[0].id.as_str()).unwrap()["capacity"].as_u64()
    };
    assert_eq!((status, capacity(&applied["layout"])), (200, Some(5_000_000_000)));
    let (_, layout) = hub.admin(&nodes[0], "east", "GET", "/v2/GetClusterLayout", None).await;
    assert_eq!((&layout["version"], capacity(&layout)), (&json!(2), Some(10_000_000_000)));
    assert_eq!(layout["stagedRoleChanges"], json!([]));
    hub.finish().await;
}

#[tokio::test]
async fn a_held_call_waits_and_a_dropped_one_closes_the_connection() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    let path = json!({"path": "/v2/GetClusterStatus"});
    let held = rule(&hub, json!({"match": path, "effect": {"kind": "hold"}})).await;
    let (answer, released) =
        tokio::join!(hub.admin(&nodes[0], "east", "GET", "/v2/GetClusterStatus", None), async {
            let rules = || async { hub.control("GET", "/rules", Value::Null).await.1 };
            eventually(rules, |rules| rules[0]["acted"] == 1).await;
            hub.control("POST", &format!("/rules/{held}/release"), Value::Null).await.0
        });
    assert_eq!((answer.0, released), (200, 200));
    rule(&hub, json!({"match": {"path": "/v2/GetClusterHealth"}, "effect": {"kind": "drop"}})).await;
    let url = format!("http://{}:3903/v2/GetClusterHealth", nodes[0].address);
    let error = hub.http.get(url).bearer_auth("mesh-east-east").send().await.unwrap_err();
    assert!(error.is_request(), "{error:?}");
    let history = hub.finish().await;
    let unanswered = events(&history, |event| match event {
        Event::CallEnd(end) if end.status.is_none() => Some(end.call),
        _ => None,
    });
    assert_eq!(unanswered.len(), 1);
}

#[tokio::test]
async fn a_frozen_node_answers_once_it_goes_on() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    let fault = |action: &str| json!({"action": action, "node": "east/ns/garage-0"});
    assert_eq!(hub.control("POST", "/faults", fault("freeze")).await.0, 200);
    let call = hub.admin(&nodes[0], "east", "GET", "/v2/GetClusterHealth", None);
    let resume = async {
        let begun = || async { onewriter_history::History::read_live(&hub.journal()).unwrap().records };
        eventually(begun, |records| records.iter().any(|record| matches!(record.event, Event::CallBegin(_))))
            .await;
        hub.control("POST", "/faults", fault("resume")).await.0
    };
    let (answer, resumed) = tokio::join!(call, resume);
    assert_eq!((answer.0, resumed), (200, 200));
    hub.finish().await;
}

#[tokio::test]
async fn a_killed_node_closes_its_port_and_a_restart_opens_it_again() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    bootstrap(&hub, &nodes).await;
    let layout = || async { hub.admin(&nodes[3], "west", "GET", "/v2/GetClusterLayout", None).await.1 };
    eventually(layout, |layout| layout["version"] == 1).await;
    let fault = |action: &str| json!({"action": action, "node": "west/ns/garage-1"});
    assert_eq!(hub.control("POST", "/faults", fault("kill")).await.0, 200);
    let url = format!("http://{}:3903/health", nodes[3].address);
    assert!(hub.http.get(&url).send().await.unwrap_err().is_connect());
    assert_eq!(hub.control("POST", "/faults", fault("restart")).await.0, 200);
    let (status, layout) = hub.admin(&nodes[3], "west", "GET", "/v2/GetClusterLayout", None).await;
    assert_eq!((status, &layout["version"]), (200, &json!(1)));
    assert_eq!(hub.control("POST", "/faults", json!({"action": "purge", "mesh": "mesh"})).await.0, 200);
    for node in &nodes {
        let (_, layout) = hub.admin(node, &node.site, "GET", "/v2/GetClusterLayout", None).await;
        assert_eq!(layout["version"], 0, "all begin anew, so nobody gives the layout back");
    }
    hub.finish().await;
}

#[tokio::test]
async fn a_call_that_is_held_when_the_hub_ends_has_an_end_in_the_history() {
    let hub = TestHub::start().await;
    let nodes = four_nodes(&hub).await;
    rule(&hub, json!({"match": {}, "effect": {"kind": "hold"}})).await;
    let url = format!("http://{}:3903/v2/GetClusterHealth", nodes[0].address);
    let call = tokio::spawn(hub.http.get(url).bearer_auth("mesh-east-east").send());
    let begun = || async { onewriter_history::History::read_live(&hub.journal()).unwrap().records };
    eventually(begun, |records| records.iter().any(|record| matches!(record.event, Event::CallBegin(_))))
        .await;
    let history = hub.finish().await;
    assert!(call.await.unwrap().is_err());
    let ends = events(&history, |event| match event {
        Event::CallEnd(end) => Some(end.status),
        _ => None,
    });
    assert_eq!(ends, [None]);
}

#[tokio::test]
async fn the_history_can_be_read_from_an_event_on() {
    let hub = TestHub::start().await;
    four_nodes(&hub).await;
    let read = async |from: usize| {
        let url = format!("{}/history?from={from}", hub.control);
        let text =
            hub.http.get(url).bearer_auth(support::CONTROL).send().await.unwrap().text().await.unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(read(0).await[0]["schema"], "onewriter.history/1");
    let from_three = read(3).await;
    assert_eq!((from_three[0]["seq"].as_u64(), from_three.len()), (Some(3), 2));
    hub.finish().await;
}
